"""What tarazu-burstd costs on 11,392 nodes at 10 s, every node in every interval: reports, files, sums of jobs, memory.

A process of its own does what the daemon does of an hour: 40 OSSs report each 10 s, a minute's traffic is written and
added up to its jobs, hours are put together.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tarazu.batch.jobs import Job, Listed
from tarazu.parts.bursts.burstd.batch import SlurmAnswer
from tarazu.parts.bursts.burstd.gathering import Gathering
from tarazu.parts.bursts.burstd.history import BurstHistory, Saved
from tarazu.parts.bursts.burstd.jobs import Jobs
from tarazu.parts.bursts.burstd.reports import Names, Reports
from tarazu.parts.bursts.measures.characteristics import Thresholds
from tarazu.parts.bursts.traffic import days
from tarazu.wire.reports import ClientRate, OssReport
from tests.benchmarks.figure import Figure

NODES, OSSS, INTERVAL_S, MINUTE_S = 11_392, 40, 10, 60
BEGIN = 1_795_305_600
"""2026-11-22 00:00 UTC."""
JOBS = 178
"""Of 64 nodes, one after the other."""
SEED = 5
MOST_SHARE, MOST_MEMORY_MB = 0.5, 1500.0
"""Of a core, and half of what its unit allows."""


def measure(short: bool) -> list[Figure]:
    minutes = 3 if short else 21
    child = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.bursts.traffic", str(minutes)],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(child.stdout)
    of_a_minute = [found[name] / minutes for name in ("reports", "close", "keep")]
    return [
        Figure("reports of 40 OSSs: CPU a minute", of_a_minute[0], "s"),
        Figure("intervals closed: CPU a minute", of_a_minute[1], "s"),
        Figure("written and added up to jobs: CPU a minute", of_a_minute[2], "s"),
        Figure("all of it, of a core", sum(of_a_minute) / MINUTE_S, "", most=MOST_SHARE),
        Figure("parts put together: CPU an hour of traffic", found["tidy"] * 60 / minutes, "s"),
        Figure("file: bytes a row", found["bytes"] / found["rows"], "B"),
        Figure("most memory", found["memory"] / 1e6, "MB", most=MOST_MEMORY_MB),
        Figure("bytes that jobs are missing", found["missing"], "B", most=0.0),
    ]


def child(minutes: int) -> dict[str, float]:

    random = np.random.default_rng(SEED)
    spent = dict.fromkeys(("reports", "close", "keep", "tidy"), 0.0)

    @contextlib.contextmanager
    def counting(what: str):  # type: ignore[no-untyped-def]
        begin = time.process_time()
        yield
        spent[what] += time.process_time() - begin

    names = [f"n{i:05}" for i in range(NODES)]
    nids = [f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}@o2ib" for i in range(NODES)]
    end_s = BEGIN + minutes * MINUTE_S
    with tempfile.TemporaryDirectory(prefix="bursts-traffic-") as name:
        folder = Path(name)
        (folder / "nids").write_text("".join(f"{n} {nid}\n" for n, nid in zip(names, nids, strict=True)))
        known = Names(str(folder / "nids"))
        known.look([])
        reports = Reports(Gathering(INTERVAL_S), known)
        history = BurstHistory(
            folder / "traffic",
            folder / "jobs.db",
            interval_s=INTERVAL_S,
            limits=Thresholds(),
            limit_bytes=1 << 40,
        )
        history.until_s = float(BEGIN)
        history._tidy_at = float("inf")
        jobs = [
            Job(str(i), "u", "a", tuple(names[64 * i : 64 * i + 64]), BEGIN, end_s, state="COMPLETED")
            for i in range(JOBS)
        ]
        total = 0
        for minute in range(minutes):
            for tick in range(0, MINUTE_S, INTERVAL_S):
                now_s = float(BEGIN + minute * MINUTE_S + tick + INTERVAL_S)
                moved = random.integers(1, 1 << 24, (OSSS, NODES)).tolist()
                sequence = minute * 6 + tick // INTERVAL_S + 1
                told = [
                    OssReport(
                        f"oss{oss}", sequence, now_s, INTERVAL_S, 0, 0, 0, (), clients=clients, incarnation=1
                    )
                    for oss, row in enumerate(moved)
                    if (clients := tuple(map(ClientRate, nids, row)))
                ]
                total += sum(map(sum, moved))
                with counting("reports"):
                    for report in told:
                        reports.take(report, now_s)
            with counting("close"):
                traffic = reports.gathering.close(now_s)
            with counting("keep"):
                history.save(Saved(traffic, now_s, now_s))
                history.answer(SlurmAnswer(now_s + 600, Listed(jobs, 0, ""), False))
                history.step(now_s + 600)
        assert not history.trouble, history.trouble
        got = added_up(folder / "jobs.db")
        history.close()
        with counting("tidy"):
            days.tidy(folder / "traffic", BEGIN + 3 * days.DAY_S)
        rows = sum(map(len, days.read(folder / "traffic", 0, 1e12)))
        size = days.size(folder / "traffic")
    return {
        **spent,
        "rows": rows,
        "bytes": size,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "missing": float(total - got),
    }


def added_up(path: Path) -> int:
    """Bytes of all jobs."""

    with contextlib.closing(Jobs(path, read_only=True)) as jobs:
        found = jobs._db.execute("SELECT moved FROM job").fetchall()
        return sum(int(np.frombuffer(row[0], "<i8").sum()) for row in found)


if __name__ == "__main__":
    print(json.dumps(child(int(sys.argv[1]))))
