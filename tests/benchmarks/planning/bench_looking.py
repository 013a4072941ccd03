"""What the leader's look at a running step costs: the first one, and those in which every process made one file more.

Run: python -m tests.benchmarks planning, or python tests/benchmarks/planning/bench_looking.py [--ranks N] [--files N]
The spools are written byte by byte, in memory. Goal: a look at 200 ranks that made 1,000 files each before takes
less than 0.25 s, a twentieth of `predict.look_s`.
"""

from __future__ import annotations

import argparse
import os
import resource
import struct
import tempfile
import threading
import time
from pathlib import Path

from tarazu.model import JobStep
from tarazu.run.watch import SpoolWatch
from tests.trace.conftest import START_NS, close_record, create_record, spool


def records_of(rank: int, number: int) -> list[bytes]:
    """One file, made and closed."""
    key = f"/project/run/ckpt.{number:06}/data.{rank:05}"
    return [
        create_record(
            key, key, "/project/run/ckpt.#/data.#", row_id=rank * 100_000 + number + 1, layout=bytes(56)
        ),
        close_record(key, 1 << 30),
    ]


class Rank:
    """One process and its spool."""

    def __init__(self, directory: Path, rank: int, files: int, ranks: int) -> None:
        self.rank, self.files = rank, files
        self.path = directory / f"n1.{1000 + rank}.{START_NS:x}.tzs"
        records = [record for n in range(files) for record in records_of(rank, n)]
        data = bytearray(spool(records, rank=rank, ranks=ranks, capacity=4 << 20))
        data[248:256] = struct.pack("<Q", len(records))
        self.path.write_bytes(data)
        self.used, self.changes = struct.unpack_from("<Q", data, 16)[0], len(records)
        self.last = self.used - len(records[-1])

    def add(self) -> None:
        """One file more."""
        new = b"".join(records_of(self.rank, self.files))
        self.files += 1
        self._write(self.used, new, self.used + len(new), 2)

    def change(self) -> None:
        """The last file is closed again."""
        self._write(self.last, records_of(self.rank, self.files - 1)[1], self.used, 1)

    def _write(self, at: int, data: bytes, used: int, changes: int) -> None:
        self.used, self.changes = used, self.changes + changes
        with self.path.open("r+b") as file:
            os.pwrite(file.fileno(), data, at)
            os.pwrite(file.fileno(), struct.pack("<Q", self.used), 16)
            os.pwrite(file.fileno(), struct.pack("<Q", self.changes), 248)


def measure(directory: Path, ranks: int, files: int) -> list[tuple[str, float]]:
    """(what, CPU seconds) of each look, then the reading of the whole run."""
    step = JobStep("lustre", os.getuid(), "app", "1", ranks=ranks)
    watch = SpoolWatch(str(directory), directory, step, threading.Event())
    all_ranks = [Rank(directory, rank, files, ranks) for rank in range(ranks)]
    found = [("first", timed(watch.look)), ("nothing new", timed(watch.look)), ("settled", timed(watch.look))]
    for title in ("1 file more a rank", "and another"):
        for rank in all_ranks:
            rank.add()
        found.append((title, timed(watch.look)))
    for title in ("1 file closed again a rank", "and again"):
        for rank in all_ranks:
            rank.change()
        found.append((title, timed(watch.look)))
    return [*found, ("the run, to plan from it", timed(watch.runs))]


def timed(work: object) -> float:
    started = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=200)
    parser.add_argument("--files", type=int, default=1000, help="of each rank before")
    options = parser.parse_args()
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="tarazu-", dir=shared) as directory:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{options.ranks} ranks, {options.files} files each before\n| look | CPU s |\n|---|---|")
        for title, seconds in measure(Path(directory), options.ranks, options.files):
            print(f"| {title} | {seconds:.3f} |")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"\nmemory: {grown / 1024:.0f} MiB more")


if __name__ == "__main__":
    main()
