"""Histories of made-up applications, as large as wanted, written as run files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tarazu import ranges
from tarazu.model import ANY_RANK, JobStep
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run

UNIT = 100
"""Bytes; small, so that a hundred thousand files fit the few GiB of the captured OSTs."""
KINDS = ("volatile", "steps", "serial", "shared")


def write_histories(directory: Path, kind: str, runs: int, files: int) -> list[Path]:
    """`runs` run files of `files` files each, oldest first."""
    paths = []
    for number in range(runs):
        run = RunRecord(step_of(kind, files, number), 1.7e9 + 86400 * number, 600.0, "full",
                        tuple(FILES[kind](files, number)), 1, 1)  # fmt: skip
        path = directory / f"{kind}-{number:02}.run"
        path.write_bytes(encode_run(run))
        paths.append(path)
    return paths


def step_of(kind: str, files: int, number: int) -> JobStep:
    """The job step that is planned; its history are those of lower numbers."""
    ranks = {"volatile": files, "steps": max(files // 20, 1), "serial": 1, "shared": 10_000}[kind]
    return JobStep("lustre", 0, kind, f"{4000 + number}", ranks, max(ranks // 100, 1), (float(ranks),))


def sizes(number: int) -> random.Random:
    return random.Random(number)


def volatile(files: int, number: int) -> Iterator[FileRecord]:
    """File per process, job id and date in the names, every size another one."""
    size = sizes(number)
    for rank in range(files):
        yield FileRecord(
            key=f"/scratch/project/run-{4000 + number}/20260{number % 9 + 1}01T120000/checkpoint.{rank:06}.dat",
            precise="/scratch/project/run-{job}/{date}/checkpoint.{rank}.dat",
            loose="/scratch/project/run-#/#/checkpoint.#.dat",
            rank=rank, creators=(rank,), nth_precise=0, nth_loose=0, at_s=2.0 + rank * 1e-5, until_s=9.0,
            size_bytes=int((64 + 4 * number) * UNIT * size.uniform(0.9, 1.1)), counted=True, contiguous=True,
            outcome="hit", found="precise", row_id=rank + 1, generation=1,
        )  # fmt: skip


def steps(files: int, number: int) -> Iterator[FileRecord]:
    """Twenty steps of a file per process; the run's number in the names, which differ in every run."""
    size = sizes(number)
    ranks = max(files // 20, 1)
    for step in range(20):
        for rank in range(ranks):
            yield FileRecord(
                key=f"/scratch/run{number:04}/step{step:05}/part.{rank:05}",
                precise=f"/scratch/run{number:04}/step{step:05}/part.{{rank}}",
                loose="/scratch/run#/step#/part.#",
                rank=rank, creators=(rank,), nth_precise=0, nth_loose=step, at_s=2.0 + 10 * step + rank * 1e-5,
                until_s=9.0 + 10 * step,
                size_bytes=int((64 + step) * UNIT * size.uniform(0.9, 1.1)), counted=True,
            )  # fmt: skip


def serial(files: int, number: int) -> Iterator[FileRecord]:
    """One process without ranks that creates one numbered file after the other."""
    size = sizes(number)
    for i in range(files):
        name = f"/scratch/run{number}/out/frame{i:06}.h5"
        yield FileRecord(
            key=name, precise=name, loose="/scratch/run#/out/frame#.h#",
            rank=ANY_RANK, creators=(), nth_precise=0, nth_loose=i, at_s=2.0 + i * 0.005,
            until_s=2.004 + i * 0.005,
            size_bytes=int((64 + i % 7) * UNIT * size.uniform(0.9, 1.1)), counted=True,
        )  # fmt: skip


def shared(files: int, number: int) -> Iterator[FileRecord]:
    """Files that 10,000 ranks write together, a few ranks missing in each."""
    size = sizes(number)
    lists = [ranges.unfold(ranges.fold([r for r in range(10_000) if r % 5000 != k])) for k in range(64)]
    for i in range(files):
        name = f"/scratch/field{i:06}.h5"
        yield FileRecord(
            key=name, precise=name, loose="/scratch/field#.h#",
            rank=ANY_RANK, creators=lists[i % 64], nth_precise=0, nth_loose=i, at_s=2.0 + i * 0.005,
            until_s=2.004 + i * 0.005,
            size_bytes=int((64 + i % 7 + number) * UNIT * size.uniform(0.99, 1.01)), writers=9_998, counted=True,
        )  # fmt: skip


FILES = {"volatile": volatile, "steps": steps, "serial": serial, "shared": shared}
