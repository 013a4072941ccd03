"""A day of traffic of 11,392 nodes at 10 s, analysed by `tarazu change bursts report`: seconds and memory.

Once with every node in every interval, which no more rows can be; once as dense as what is published of CS19 makes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tarazu.batch.jobs import Job
from tarazu.parts.bursts.burstd.jobs import Jobs
from tarazu.parts.bursts.measures.published import HARDWARE
from tarazu.parts.bursts.study import system as generated
from tarazu.parts.bursts.study.generator import queue
from tarazu.parts.bursts.study.replay import replay
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tarazu.parts.bursts.traffic.traffic import Traffic
from tests.benchmarks.figure import Figure

NODES, PER_CABINET, INTERVAL_S, DAY_S = 11_392, 128, 10, 86_400
DAY = 1_700_006_400
"""2023-11-15 00:00 UTC."""
JOBS = 12_000
"""Of the generated queue: enough for two days and more."""
MOST_S, MOST_BYTES = 60.0, 2e9


def measure(short: bool) -> list[Figure]:
    length = 3600 if short else DAY_S
    machine = regular(NODES, PER_CABINET)
    found = _of(
        "every node in every interval", machine, _every(machine, length), _jobs(machine, length), length
    )
    return found + _of("as published of CS19", *_generated(length), length)


def _of(what: str, machine: Machine, chunks: Iterator[Traffic], jobs: list[Job], length: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="bursts-day-") as name:
        folder = Path(name)
        rows = 0

        def counted() -> Iterator[Traffic]:
            nonlocal rows
            for chunk in chunks:
                rows += len(chunk)
                yield chunk

        traffic = folder / "tarazu-burstd" / "traffic"
        for chunk in counted():
            days.append(traffic, chunk)
        days.tidy(traffic, DAY + 3 * DAY_S)
        size = days.size(traffic)
        at = [
            f"cabinet={machine.cabinets[cabinet]} io_node={machine.io_nodes[io_node]}"
            for cabinet, io_node in zip(machine.cabinet, machine.served_by, strict=True)
        ]
        lines = (f"{node} {where}\n" for node, where in zip(machine.nodes, at, strict=True))
        (folder / "machine").write_text("".join(lines))
        with contextlib.closing(Jobs(folder / "tarazu-burstd" / "jobs.db")) as kept:
            kept.put(jobs)
        seconds, cpu_s, memory, said = report(folder)
    assert 0 < said["intervals"] <= length // INTERVAL_S and said["nodes"] == NODES
    assert said["jobs"]["jobs"] + said["partly"] > 0
    return [
        Figure(f"{what}: rows", rows / 1e6, "million"),
        Figure(f"{what}: jobs", len(jobs), ""),
        Figure(f"{what}: file", size / 1e6, "MB"),
        Figure(f"{what}: analysed in", seconds, "s", most=MOST_S),
        Figure(f"{what}: processor time", cpu_s, "s"),
        Figure(f"{what}: most memory", memory / 1e6, "MB", most=MOST_BYTES / 1e6),
    ]


def report(folder: Path) -> tuple[float, float, int, dict]:  # type: ignore[type-arg]
    """Seconds, those of processors, most bytes of memory, and what is said of the files in a folder."""
    (folder / "tarazu.toml").write_text(
        f"[state]\ndirectory = '{folder}'\n[part.bursts]\nmachine = '{folder}/machine'\n"
    )
    command = [sys.executable, "-m", "tarazu", "change", "bursts", "report", "--json"]
    command += ["--config", str(folder / "tarazu.toml")]
    with open(folder / "out", "w+b") as out:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"tarazu change bursts report: status {process.returncode}"
        out.seek(0)
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, json.load(out)


def _every(machine: Machine, length: int) -> Iterator[Traffic]:
    """Chunks of 90 intervals, which are about what is read at a time."""
    random = np.random.default_rng(1)
    most = 90
    for low in range(0, length, most * INTERVAL_S):
        times = np.arange(DAY + low, DAY + min(low + most * INTERVAL_S, length), INTERVAL_S)
        rows = len(times) * NODES
        yield Traffic(
            machine.nodes,
            float(INTERVAL_S),
            np.repeat(times, NODES),
            np.tile(np.arange(NODES, dtype=np.int32), len(times)),
            *(random.integers(0, 1 << 30, rows) for _ in range(3)),
        )


def _jobs(machine: Machine, length: int) -> list[Job]:
    """Each run of neighbouring nodes has one job after another."""
    random = np.random.default_rng(2)
    jobs: list[Job] = []
    at = 0
    while at < NODES:
        size = min(int(2 ** random.uniform(0, 10)), NODES - at)
        hosts = machine.nodes[at : at + size]
        begin = 0.0
        while (end := begin + random.exponential(3600) + 60) < length:
            number = len(jobs)
            who = f"user{number % 37}", f"model{size % 11}"
            jobs.append(Job(str(number), *who, hosts, DAY + begin, DAY + end, DAY + begin, "COMPLETED"))
            begin = end + 5
        at += size
    return jobs


def _generated(length: int) -> tuple[Machine, Iterator[Traffic], list[Job]]:
    """The second day of a generated queue, placed as Slurm would."""
    machine = HARDWARE["cs19"].machine()
    jobs = queue("cs19", JOBS, 1)
    placed = replay(machine, jobs)
    chunks = generated.traffic(
        "cs19", jobs, machine, placed.start_s, placed.end_s, placed.nodes, DAY_S, DAY_S + length
    )
    ran = []
    shift = DAY - DAY_S
    for job in range(len(jobs)):
        hosts = tuple(machine.nodes[node] for node in placed.nodes[job])
        ran.append(jobs.batch_job(job, hosts, placed.start_s[job] + shift, placed.end_s[job] + shift))
    return machine, (replace(chunk, time_s=chunk.time_s + shift) for chunk in chunks), ran
