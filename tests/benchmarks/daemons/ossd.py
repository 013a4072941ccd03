"""ossd: memory and processor time with 8 OSTs, and one collection of 20 OSTs with 10,000 jobs each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.daemons.usage import cpu_s, memory_bytes
from tests.benchmarks.figure import Figure

DATA = Path(__file__).parents[2] / "data" / "lustre"
OSTS, JOB_OSTS, JOBS = 8, 20, 10_000
INTERVAL_S = 60.0
OPERATIONS = (
    *("read", "write", "getattr", "setattr", "punch", "sync", "destroy", "create", "statfs", "get_info"),
    *("set_info", "quotactl", "prealloc", "fallocate", "seek"),
)
"""Beside `read_bytes` and `write_bytes`: 13 that 2.17 has, and two more, for 17 rows an entry."""


def measure(short: bool) -> list[Figure]:
    """`short`: a tenth of the jobs, and less than a minute of ossd."""
    jobs = JOBS // 10 if short else JOBS
    with tempfile.TemporaryDirectory(prefix="tarazu-ossd-") as directory:
        return [
            *_steady(Path(directory), 2.0 if short else 0.5, 10 if short else 60),
            *_jobs(Path(directory), jobs),
        ]


def _steady(directory: Path, interval_s: float, seconds: float) -> Iterator[Figure]:
    """The real daemon: its start apart, the processor time of one collection is the same at any interval."""
    root = Path(shutil.copytree(DATA / "oss", directory / "oss"))
    for parent in list(root.rglob("lustre-OST0000")):
        for index in range(5, OSTS):
            shutil.copytree(parent, parent.with_name(f"lustre-OST{index:04x}"))
    times = root / "proc/fs/lustre/obdfilter/lustre-OST0004/job_stats"
    times.parent.mkdir(exist_ok=True)
    shutil.copy(times.parents[1] / "lustre-OST0003/job_stats", times)
    config = directory / "tarazu.toml"
    config.write_text(
        f"[ossd]\ninterval_s = {interval_s}\n[keys]\ninsecure = true\n"
        f'[mdsd]\nstatistics = "ipc://{directory}/statistics"\n'
    )
    command = [
        sys.executable,
        "-m",
        "tarazu.daemons.ossd.service",
        "--config",
        str(config),
        "--root",
        str(root),
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as ossd:
        time.sleep(3.0)
        begin, before = time.monotonic(), cpu_s(ossd.pid)
        time.sleep(seconds)
        used, collections = cpu_s(ossd.pid) - before, (time.monotonic() - begin) / interval_s
        most = memory_bytes(ossd.pid, most=True)
        ossd.terminate()
    yield Figure(f"ossd's memory with {OSTS} OSTs, at most", most / 1e6, "MB", 40.0 * 1.048576)
    yield Figure(f"processor time of one report of {OSTS} OSTs", 1e3 * used / collections, "ms")
    yield Figure("share of a core, a report a minute", 100 * used / collections / INTERVAL_S, "%", 0.1)


def entry(job: int, more: int) -> str:
    """Of `job_stats` as 2.17 prints it."""
    total = (job + 1) * 1_048_576 + more
    rows = [
        f"- job_id:          ior.{job}.{1000 + job % 7}",
        "  snapshot_time:   1795166037.972731240 secs.nsecs",
        f"  start_time:      1795166011.{247072830 + job:09d} secs.nsecs",
        "  elapsed_time:    26.725658410 secs.nsecs",
    ]
    histogram = f"hist: {{ 4K: 12, 64K: 3, 1M: 20, 4M: {job % 50 + 1} }}"
    for name, value in (("read_bytes", total // 3), ("write_bytes", total)):
        rows.append(
            f"  {name + ':':<16} {_row(36 + job % 50, 'bytes', 4096, 4194304, value)}, {histogram} }}"
        )
    rows += [f"  {name + ':':<16} {_row(36, 'usecs', 94, 893866, 988812 + job)} }}" for name in OPERATIONS]
    return "\n".join(rows) + "\n"


def _row(samples: int, unit: str, low: int, high: int, total: int) -> str:
    return (
        f"{{ samples: {samples:11d}, unit: {unit:>5}, min: {low:8d}, max: {high:8d}, sum: {total:16d}, "
        f"sumsq: {total * high % 10**18:18d}"
    )


COLLECT = """
import json, sys, time
from tarazu.stats.collector import Collector
collector = Collector(sys.argv[1], "oss1")
for now in range(3):
    begin = time.process_time()
    report = collector.collect(60.0 * now)
    print(json.dumps([time.process_time() - begin, len(report.jobs), len(report.osts)]), flush=True)
    sys.stdin.readline()
"""


def _jobs(directory: Path, jobs: int) -> Iterator[Figure]:
    """Three collections in a process of its own: the first, one in which every job on every OST has moved data, one in
    which none has.
    """
    root = directory / "jobs"
    texts = [directory / name for name in ("before", "after")]
    for more, path in enumerate(texts):
        path.write_text("job_stats:\n" + "".join(entry(job, more * 4096) for job in range(jobs)))
    size = texts[0].stat().st_size
    for index in range(JOB_OSTS):
        target = f"scratch-OST{index:04x}"
        for name in ("kbytestotal", "kbytesfree", "kbytesavail", "filesfree"):
            file = root / "sys/fs/lustre/obdfilter" / target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("1000000\n")
        (root / "proc/fs/lustre/obdfilter" / target).mkdir(parents=True)

    def put(text: Path) -> None:
        for path in (root / "proc/fs/lustre/obdfilter").iterdir():
            (path / "job_stats").unlink(missing_ok=True)
            os.link(text, path / "job_stats")

    put(texts[0])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", COLLECT, str(root)], text=True, **pipes) as process:  # type: ignore[call-overload]
        seconds = []
        for moment in range(3):
            took, named, osts = json.loads(process.stdout.readline())
            seconds.append(took)
            assert osts == JOB_OSTS and named == (1000 if moment == 1 else 0), (named, osts)
            most = memory_bytes(process.pid, most=True)
            put(texts[1])
            process.stdin.write("\n")
            process.stdin.flush()
    limit_s = 2.0
    yield Figure(
        f"{JOB_OSTS} OSTs with {jobs} jobs: bytes of job_stats a collection", JOB_OSTS * size / 1e6, "MB"
    )
    for what, took in zip(("the first", "all jobs moved data", "none did"), seconds, strict=True):
        yield Figure(f"processor time of one collection, {what}", took, "s", limit_s)
    yield Figure("memory of the collector, at most", most / 1e6, "MB", 100.0)
