"""What a placed file costs its program on a CephFS of this machine: `python -m tests.ceph.cost`.

Times of one file (open; open, write and close) in a program without the library, under it without a row in the map,
placed, and planned where it lies anyway; then of files that several processes make at once. The modes take turns. What
placing adds is `tarazu.filesystem.ceph.PLACE_S`.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.ceph.cluster import Cluster, why_not
from tests.ceph.library import OnCeph, made

SOURCE = """
import os, sys, time
kind, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data, opens, wholes = bytes(size), [], []
for i in range(count):
    began = time.perf_counter()
    fd = os.open(f"{kind}{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    opened = time.perf_counter()
    os.write(fd, data)
    os.close(fd)
    opens.append(opened - began)
    wholes.append(time.perf_counter() - began)
print(sorted(opens)[count // 2] * 1e3, sorted(wholes)[count // 2] * 1e3)
"""
KINDS = {"without": {"LD_PRELOAD": ""}, "missed": {}, "placed": {}, "shared": {}, "default": {}}
PLANNED = {"placed": "third", "shared": "third", "default": "first"}
"""Kind → pool."""
SIZES = {4096: 60, 16 << 20: 8}
ROUNDS = 4
AT_ONCE = (1, 4)
"""Processes."""


def measured(on: OnCeph) -> dict[tuple[int, str], tuple[float, float]]:
    """Size, kind → median ms of an open, and of all."""
    count = max(SIZES.values())
    on.map(
        *(on.row(f"/{k}{i}", p, shared=k == "shared") for k, p in PLANNED.items() for i in range(count)),
        *(on.row(f"/{n}/placed{i}") for n in range(max(AT_ONCE)) for i in range(count)),
    )
    times: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        for size, files in SIZES.items():
            for kind, setting in KINDS.items():
                for old in on.mount.iterdir():
                    old.unlink()
                done = on.python(SOURCE, kind, str(size), str(files), **setting)
                first, second = map(float, done.stdout.split())
                times.setdefault((size, kind), []).append((first, second))
    return {
        key: (statistics.median(a for a, _ in of), statistics.median(b for _, b in of))
        for key, of in times.items()
    }


def at_once(on: OnCeph, kind: str, processes: int) -> float:
    """ms for each file of 4 KiB, of all that so many processes make in directories of their own."""
    files = SIZES[4096]
    for n in range(processes):
        (on.mount / str(n)).mkdir(exist_ok=True)
        for old in (on.mount / str(n)).iterdir():
            old.unlink()
    began = time.monotonic()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SOURCE, kind, "4096", str(files)],
            env=on.environ(),
            cwd=on.mount / str(n),
            stdout=subprocess.DEVNULL,
        )
        for n in range(processes)
    ]
    ended = [process.wait() for process in running]
    if any(ended):
        raise RuntimeError(f"{kind}: a process failed")
    return (time.monotonic() - began) / files / processes * 1e3


def main() -> None:
    reason = why_not()
    if reason is not None:
        raise SystemExit(reason)
    directory = Path(tempfile.mkdtemp(prefix="ceph-"))
    directory.chmod(0o755)
    cluster = Cluster(directory, {"first": "hdd", "second": "ssd", "third": "nvme"})
    try:
        work = directory / "work"
        work.mkdir()
        on = made(cluster, cluster.mount(directory / "mnt"), work)
        times = measured(on)
        several = {
            (n, kind): statistics.median(at_once(on, kind, n) for _ in range(ROUNDS))
            for n in AT_ONCE
            for kind in ("missed", "placed")
        }
    finally:
        cluster.end()
        shutil.rmtree(directory)
    for (size, kind), (opened, whole) in times.items():
        bare = times[size, "without"]
        print(
            f"{size:>9} bytes, {kind:<8} open {opened:6.2f} ms ({opened / bare[0]:4.1f}×), "
            f"all {whole:7.2f} ms ({whole / bare[1]:4.1f}×)"
        )
    for n in AT_ONCE:
        missed, placed = several[n, "missed"], several[n, "placed"]
        print(f"{n} processes at once, of 4096 bytes: each file {missed:.2f} ms, placed {placed:.2f} ms")


if __name__ == "__main__":
    main()
