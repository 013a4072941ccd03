"""A million files in 1,000 directories on 360 OSTs, one of them slow: time and memory of the advice."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

from tarazu.lustre import EOF
from tarazu.model import Component, Ost, SystemView
from tarazu.native import Decoded, DecodedComponent
from tarazu.parts.rebalance.advice import RebalanceOptions, advise
from tarazu.parts.rebalance.datasets import of_directories
from tarazu.parts.rebalance.files import Files, Stat
from tarazu.parts.rebalance.targets import targets
from tests.benchmarks.figure import Figure

OSTS, DIRECTORIES, TOTAL = 360, 1000, 10**14
NOW_S = 1_700_000_000


def one(count: int) -> tuple[float, float, float, float]:
    """CPU seconds of taking the files in and of the advice, the most memory (bytes), moves."""
    rng = np.random.default_rng(1)
    starts, sizes = rng.integers(0, OSTS, count).tolist(), rng.integers(1 << 27, 1 << 31, count).tolist()
    parts = {stripes: Component(0, EOF, 1 << 20, stripes) for stripes in (1, 4)}
    began = time.process_time()
    files = Files()
    for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        stripes = 4 if i % 10 == 0 else 1
        osts = tuple((start + k) % OSTS for k in range(stripes))
        decoded = Decoded(False, 1, (DecodedComponent(parts[stripes], 0, osts),))
        stat = Stat(size, size, 0, NOW_S - 86_400, NOW_S - 10**6)
        files.add(f"/scratch/project/some/where/d{i % DIRECTORIES:05}/file.{i:08}.dat", stat, decoded)
    taken = time.process_time()
    osts_ = tuple(
        Ost(i, f"oss{i // 8}", TOTAL, TOTAL // 2, TOTAL // 2, write_bytes_per_s=1e8 if i == 7 else 1e9)
        for i in range(OSTS)
    )
    to = targets(SystemView("scratch", float(NOW_S), osts_))
    advice = advise(files, to, of_directories(files, 24.0, NOW_S), RebalanceOptions())
    moves = sum(len(w.step.moves) for w in advice.steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return taken - began, time.process_time() - taken, peak, moves


def measure(short: bool) -> list[Figure]:
    count = 20_000 if short else 1_000_000
    words = [sys.executable, "-m", "tests.benchmarks.rebalance.million", str(count)]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    taking, advising, peak, moves = map(float, told.split())
    return [
        Figure(f"{count:,} files taken in, layouts decoded already", taking, "s CPU", most=60.0),
        Figure("datasets, steps, order, bounds", advising, "s CPU", most=60.0),
        Figure("memory at most, the interpreter included", peak / 2**20, "MiB", most=700.0),
        Figure("files to move", moves, ""),
    ]


if __name__ == "__main__":
    print(*one(int(sys.argv[1])))
