"""Interleaved pairs: two processes do the same in turn, one of them with the library preloaded."""

from __future__ import annotations

import os
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu import built

HERE = Path(__file__).parent
PRELOAD = HERE.parent.parent.parent / "preload"


class Figure(NamedTuple):
    """Nanoseconds: medians over the rounds, and the quartiles of what is added."""

    without: float
    with_: float
    added: float
    low: float
    high: float

    def __str__(self) -> str:
        added = f"{self.added:+8.0f}  {self.low:+6.0f} … {self.high:<+6.0f}"
        return f"{self.without:8.0f} {self.with_:8.0f} {added} {self.with_ / self.without:6.2f}"


HEADER = f"{'ns per operation':42} {'without':>8} {'with':>8} {'added':>8}  {'interquartile':>15}  ratio"


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """(first quartile, median, third quartile)."""
    low, median, high = statistics.quantiles(values, n=4)
    return low, median, high


def compile_c(out: Path, sources: Sequence[Path], *options: str) -> Path:
    """An optimised program; raises CalledProcessError where the compiler refuses."""
    subprocess.run(
        ["cc", "-O2", "-std=gnu11", "-pthread", *map(str, sources), "-o", str(out), *options], check=True
    )
    return out


class Driver:
    """One running `driver.c`."""

    def __init__(
        self, program: Path, arguments: Sequence[str], environment: Mapping[str, str] | None
    ) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("TARAZU_", "LD_"))}
        library = {} if environment is None else {"LD_PRELOAD": str(built.library_path("libtarazu.so"))}
        self.process = subprocess.Popen(
            [str(program), *arguments],
            env={**clean, **library, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, case: str, threads: int, iterations: int) -> float:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{case} {threads} {iterations}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait() != 0:
            raise RuntimeError(f"the driver ended with {self.process.returncode}")


def compare(without: Driver, with_: Driver, case: str, threads: int, iterations: int, rounds: int) -> Figure:
    """Many short rounds, in turn first without and first with; the first rounds only warm up."""
    a, b = [], []
    for i in range(rounds + 3):
        if i % 2:
            a.append(without(case, threads, iterations))
            b.append(with_(case, threads, iterations))
        else:
            b.append(with_(case, threads, iterations))
            a.append(without(case, threads, iterations))
    a, b = a[3:], b[3:]
    low, added, high = quartiles([y - x for x, y in zip(a, b, strict=True)])
    return Figure(statistics.median(a), statistics.median(b), added, low, high)
