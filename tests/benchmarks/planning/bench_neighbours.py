"""How long a small plan of one user takes, alone and while another one's of 100,000 files is made.

Run: python -m tests.benchmarks planning, or python tests/benchmarks/planning/bench_neighbours.py [--files N] [--place]
The daemons are real, and each leader is a process of its own. Goal: no small plan takes 100 ms longer. With --place
also mdsd is asked, which allocates one request after the other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from tarazu.wire import local
from tarazu.wire.channel import connect
from tests.benchmarks.planning.bench_planning import PATIENCE_S, start
from tests.benchmarks.planning.histories import step_of, write_histories
from tests.daemons.conftest import Site

ALONE = 15
PAUSE_S = 0.02
SMALL = 8
SMALL_UID, LARGE_UID = 12345, 12346


class Neighbours(NamedTuple):
    alone_s: list[float]
    beside_s: list[float]
    large_s: float


def measure(directory: Path, kind: str, runs: int, files: int, *, place: bool) -> Neighbours:
    """A small plan, again and again, before and during a large one of another user."""
    site = Site(directory)
    try:
        socket, osts, _ = start(site)
        small = write_histories(_made(directory / "small"), kind, 2, SMALL)
        large = write_histories(_made(directory / "large"), kind, runs, files)

        def small_one() -> float:
            time.sleep(PAUSE_S)
            begin = time.monotonic()
            ask(socket, small, kind, SMALL, osts, SMALL_UID, place)
            return time.monotonic() - begin

        small_one()
        alone_s = [small_one() for _ in range(ALONE)]
        words = [str(socket), kind, str(files), ",".join(map(str, osts)), str(int(place)), *map(str, large)]
        begin = time.monotonic()
        leader = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.planning.bench_neighbours", "--ask", *words]
        )
        beside_s = []
        while leader.poll() is None:
            beside_s.append(small_one())
        if leader.returncode:
            raise RuntimeError("the large plan did not come")
        return Neighbours(alone_s, beside_s, time.monotonic() - begin)
    finally:
        site.stop()


def ask(
    socket: Path, paths: Sequence[Path], kind: str, files: int, osts: tuple[int, ...], uid: int, place: bool
) -> None:
    """As a leader of that user does; where we may not be another one, as one of our own."""
    descriptors = [os.open(path, os.O_RDONLY) for path in paths]
    root, here = os.geteuid() == 0, os.open(".", os.O_RDONLY)
    try:
        os.chdir(socket.parent)  # not every directory above need be open to that user
        if root:
            os.seteuid(uid)
        request = local.PlanRequest(step_of(kind, files, len(paths)), len(paths), osts, osts, place=place)
        with connect(socket.name, PATIENCE_S) as channel:
            answer = channel.ask(request, descriptors)
            if isinstance(answer, local.DirectoriesWanted):
                answer = channel.ask(local.DirectoryLayouts(b"", dict.fromkeys(answer.keys, b"")))
    finally:
        if root:
            os.seteuid(0)
        os.fchdir(here)
        for descriptor in (here, *descriptors):
            os.close(descriptor)
    expected = "planned" if place else "forecast"
    if not isinstance(answer, local.PlanReply) or answer.status != expected:
        raise RuntimeError(f"expected a plan, found {msgspec.structs.replace(answer, files=())}")


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def main() -> None:
    if sys.argv[1:2] == ["--ask"]:
        socket, kind, files, osts, place, *paths = sys.argv[2:]
        indices = tuple(map(int, osts.split(",")))
        ask(Path(socket), [*map(Path, paths)], kind, int(files), indices, LARGE_UID, place == "1")
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000, help="files per run of the large history")
    parser.add_argument("--runs", type=int, default=10, help="runs in the large history")
    parser.add_argument("--place", action="store_true", help="have them placed too")
    options = parser.parse_args()
    columns = "application, runs × files, large plan s, small alone: median - worst ms, beside: number - median - worst"
    print(f"| {columns.replace(', ', ' | ')} |")
    print("|---|---|---|---|---|")
    for kind in ("shared", "volatile"):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            m = measure(Path(directory), kind, options.runs, options.files, place=options.place)
        alone, beside = sorted(m.alone_s), sorted(m.beside_s)
        print(
            f"| {kind} | {options.runs} × {options.files:,} | {m.large_s:.1f} "
            f"| {1e3 * median(alone):.0f}, {1e3 * alone[-1]:.0f} "
            f"| {len(beside)}, {1e3 * median(beside):.0f}, {1e3 * beside[-1]:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
