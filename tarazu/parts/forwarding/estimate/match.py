"""Benchmarks that stand in for a pattern, and the bandwidth that follows from them.

What has no order (operation, API, sharing, spatiality) must be the same, or one of the stand-ins below. Among those
the bandwidth is interpolated over four numbers: request size, bytes of a process, processes, nodes. All five are taken
as logarithms, for bandwidths and what they depend on go by factors. The method is ordinary kriging (`kriging`), a
curve's level and its shape apart: a level may follow the numbers by a slope that is the same everywhere, and departs
from it the more the farther away one looks. A benchmark that is the pattern itself gets (nearly) all the weight, the
less the more its repetitions differ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.estimate.database import Benchmark, BenchmarkPattern, Benchmarks
from tarazu.parts.forwarding.estimate.kriging import Group, Scales, fit, kriging, parts
from tarazu.trace.phases.phase import Api, Spatiality

Floats = NDArray[np.float64]

STAND_IN_API: dict[Api, tuple[Api, ...]] = {
    "POSIX": ("MPI-IO",),
    "STDIO": ("POSIX", "MPI-IO"),
    "MPI-IO": ("POSIX",),
    "HDF5": ("MPI-IO", "POSIX"),
    "PNETCDF": ("MPI-IO", "POSIX"),
}
"""Whose benchmarks stand in where an interface has none: the interface that it calls; then the other one."""
STAND_IN_SPATIALITY: dict[Spatiality, tuple[Spatiality, ...]] = {
    "contiguous": (),
    "sequential": ("random", "contiguous"),
    "random": ("sequential",),
    "collective": ("contiguous",),
    "unknown": ("contiguous",),
}
FARTHEST = 6.0
"""Doublings, all four numbers together, beyond which a benchmark says nothing."""
NEIGHBOURS = 48
MEDIAN = 1.4
"""Variance of the median of a few values, in that of their mean."""
POOLED = 4.0
"""Degrees of freedom that the mean of all benchmarks' noise counts for beside a benchmark's own."""


class Match(msgspec.Struct, frozen=True):
    """One benchmark among those that stand in for a pattern."""

    pattern: BenchmarkPattern
    weight: float
    """Of its level: all of a match sum up to 1; logarithms are added with them."""
    distance: float
    """Doublings of request size, bytes of a process, processes and nodes (the root of the sum of squares)."""


class Benchmarked(NamedTuple):
    """What benchmarks say of a pattern."""

    numbers: tuple[int, ...]
    """Of resources, ascending."""
    bytes_per_s: Floats
    """(numbers,)"""
    spread: Floats
    """(numbers, draws) factors of these with a median near 1."""
    matches: tuple[Match, ...]
    """The heaviest first."""
    distance: float
    """Of the nearest."""
    stand_in: str
    """What of the pattern the benchmarks do not have; empty: nothing."""


class Index:
    """The benchmarks by what must be the same."""

    def __init__(self, benchmarks: Benchmarks) -> None:
        self._by: dict[tuple[str, ...], list[Benchmark]] = {}
        for benchmark in benchmarks.all:
            self._by.setdefault(category(benchmark.pattern), []).append(benchmark)
        self.noise = _noises(benchmarks.all)
        """Variance of the logarithm (to the base 2) of each one's medians."""
        self._scales: dict[str, Scales] = {}

    def find(self, pattern: BenchmarkPattern, draws: Floats) -> Benchmarked | None:
        """What is known of it; None where no benchmark is like it, or none of them ran with two numbers of resources
        and they differ in theirs. draws: (2, draws) numbers from 0 to 1."""
        for other in _stand_ins(pattern):
            candidates = self._by.get(category(other))
            benchmarked = self._interpolated(other, candidates, draws) if candidates else None
            if benchmarked:
                return benchmarked._replace(stand_in=_differences(pattern, other))
        return None

    def scales(self, kind: Kind) -> Scales:
        """How far one may look, as all benchmarks over such resources say."""
        if kind not in self._scales:
            groups = [self._group(of) for key, of in self._by.items() if key[0] == kind]
            self._scales[kind] = fit(groups)
        return self._scales[kind]

    def _group(self, benchmarks: Sequence[Benchmark]) -> Group:
        """Those that have the numbers of resources that most of them have."""
        by_numbers = Counter(_numbers(b) for b in benchmarks)
        ((numbers, _),) = by_numbers.most_common(1)
        whole = [b for b in benchmarks if _numbers(b) == numbers]
        logs = np.log2([[p.median for p in b.curve.points] for b in whole])
        return Group(
            np.array([place(b.pattern) for b in whole]),
            logs,
            np.array([self.noise[b.pattern] for b in whole]),
        )

    def _interpolated(
        self, pattern: BenchmarkPattern, candidates: Sequence[Benchmark], draws: Floats
    ) -> Benchmarked | None:
        away = np.array([place(b.pattern) for b in candidates]) - place(pattern)
        distance = np.sqrt((away**2).sum(1))
        within = np.flatnonzero(distance <= FARTHEST)
        if not len(within):
            return None
        scales = self.scales(pattern.kind)
        far = np.sqrt(((away[within] / scales.reach) ** 2).sum(1))
        order = within[np.argsort(far, kind="stable")[:NEIGHBOURS]]
        near, away, distance = [candidates[i] for i in order.tolist()], away[order], distance[order]
        numbers = sorted({p.resources for b in near for p in b.curve.points})
        known = np.array([[_covers(b, n) for n in numbers] for b in near])
        if len(numbers) > 1 and known.sum(1).max() < 2:
            # Each with one number, not the same: it may be the pattern or the number that differs.
            return None
        logs = np.log2([[b.curve.bandwidth(n) for n in numbers] for b in near])
        noise = np.array([self.noise[b.pattern] for b in near]) + scales.noise**2
        level, shape = parts(logs, known, numbers)
        weight, error = kriging(away, noise / known.sum(1), scales.departure, scales.slope, scales.reach)
        reached, spreads = np.empty(len(numbers)), np.empty((len(numbers), draws.shape[1]))
        by_mask: dict[bytes, tuple[Floats, float]] = {}
        for at, number in enumerate(numbers):
            there = known[:, at]
            mask = there.tobytes()
            if mask not in by_mask:
                by_mask[mask] = kriging(away[there], noise[there], scales.shape, 0.0, scales.reach)
            of_shape, error_of_shape = by_mask[mask]
            reached[at] = 2 ** float(weight @ level + of_shape @ shape[there, at])
            repeated = [b for b, t in zip(near, there) if t]
            spreads[at] = _spread(repeated, number, of_shape, math.sqrt(error + error_of_shape), draws)
        by_weight = np.argsort(-np.abs(weight), kind="stable").tolist()
        matches = tuple(Match(near[i].pattern, float(weight[i]), float(distance[i])) for i in by_weight)
        return Benchmarked(tuple(numbers), reached, spreads, matches, float(distance.min()), "")


def category(pattern: BenchmarkPattern) -> tuple[str, ...]:
    """What must be the same. A process that is alone shares with nobody."""
    sharing = "unique" if pattern.processes == 1 else pattern.sharing
    return (pattern.kind, pattern.operation, pattern.api, sharing, pattern.spatiality)


def _stand_ins(pattern: BenchmarkPattern) -> Iterator[BenchmarkPattern]:
    """The pattern, then others that may stand in for it, the best first: rather another interface than another order
    of accesses.
    """
    for spatiality in (pattern.spatiality, *STAND_IN_SPATIALITY[pattern.spatiality]):
        for api in (pattern.api, *STAND_IN_API[pattern.api]):
            yield msgspec.structs.replace(pattern, api=api, spatiality=spatiality)


def _differences(pattern: BenchmarkPattern, other: BenchmarkPattern) -> str:
    names = ("api", "spatiality")
    return ", ".join(
        f"{getattr(other, name)} for {getattr(pattern, name)}"
        for name in names
        if getattr(other, name) != getattr(pattern, name)
    )


def place(pattern: BenchmarkPattern) -> Floats:
    """(4,) where it lies among others, in doublings."""
    numbers = (pattern.request_bytes, pattern.process_bytes, pattern.processes, pattern.nodes)
    return np.array([math.log2(n) for n in numbers])


def _covers(benchmark: Benchmark, number: int) -> bool:
    points = benchmark.curve.points
    return points[0].resources <= number <= points[-1].resources


def _numbers(benchmark: Benchmark) -> tuple[int, ...]:
    return tuple(p.resources for p in benchmark.curve.points)


def _noises(benchmarks: Sequence[Benchmark]) -> dict[BenchmarkPattern, float]:
    """Variance of the logarithm of each benchmark's medians: that of its repetitions over how many there are, and what
    few repetitions leave open by that of all benchmarks."""
    squares, freedom, of_a_median = np.zeros((3, len(benchmarks)))
    for at, benchmark in enumerate(benchmarks):
        repeated = [np.log2(p.bytes_per_s) for p in benchmark.curve.points if len(p.bytes_per_s) > 1]
        squares[at] = sum(float(((logs - logs.mean()) ** 2).sum()) for logs in repeated)
        freedom[at] = sum(len(logs) - 1 for logs in repeated)
        times = float(np.mean([len(p.bytes_per_s) for p in benchmark.curve.points]))
        of_a_median[at] = (1.0 if times <= 2 else MEDIAN) / times
    usual = squares.sum() / max(freedom.sum(), 1.0)
    variances = of_a_median * (squares + POOLED * usual) / (freedom + POOLED)
    return {b.pattern: v for b, v in zip(benchmarks, variances.tolist(), strict=True)}


def _spread(
    benchmarks: Sequence[Benchmark], number: int, weight: Floats, error: float, draws: Floats
) -> Floats:
    """(draws,) factors: what repetitions of these benchmarks were over their medians, and the error of the weights."""
    shares = np.abs(weight) / np.abs(weight).sum()
    values, masses = [], []
    for benchmark, share in zip(benchmarks, shares.tolist()):
        point = min(benchmark.curve.points, key=lambda p: (abs(p.resources - number), p.resources))
        values += [rate / point.median for rate in point.bytes_per_s]
        masses += [share / len(point.bytes_per_s)] * len(point.bytes_per_s)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(np.array(masses)[order])
    picked = np.minimum(np.searchsorted(below, draws[0] * below[-1]), len(values) - 1)
    factors: Floats = np.array(values)[order][picked] * 2 ** (error * _normal(draws[1]))
    return factors


def _normal(part: Floats) -> Floats:
    """The normal distribution's value below which such a part of it lies (by the logistic one, to 0.03)."""
    inside = np.clip(part, 1e-6, 1 - 1e-6)
    value: Floats = np.log(inside / (1 - inside)) / 1.702
    return value
