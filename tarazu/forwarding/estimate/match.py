"""Benchmarks that stand in for a pattern, and the bandwidth that follows from them.

What has no order (operation, API, sharing, spatiality) must be the same, or one of the stand-ins below. Among those
the bandwidth is interpolated over four numbers: request size, bytes of a process, processes, nodes. All five are taken
as logarithms, for bandwidths and what they depend on go by factors. The method is ordinary kriging: of all
weights that sum up to 1 those that err least, where a bandwidth is expected to follow the numbers by a slope that is
the same everywhere, and to depart from that the more the farther away one looks. A benchmark that is the pattern itself
gets (nearly) all the weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.forwarding.estimate.database import Benchmarks
from tarazu.forwarding.estimate.pattern import Benchmark, BenchmarkPattern
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
SLOPE = 0.5
"""Doublings of the bandwidth for a doubling of one of the numbers: usual size."""
DEPARTURE = 0.5
"""Doublings of the bandwidth that it departs from such a slope far away."""
REACH = 4.0
"""Doublings over which departures are alike."""
LEAST_NOISE = 0.01
"""Of one benchmark's median, in doublings."""


class Match(msgspec.Struct, frozen=True):
    """One benchmark among those that stand in for a pattern."""

    pattern: BenchmarkPattern
    weight: float
    """All of a match sum up to 1; the logarithms of bandwidths are added with them."""
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

    def find(self, pattern: BenchmarkPattern, draws: Floats) -> Benchmarked | None:
        """What is known of it; None where no benchmark is like it. draws: (2, draws) numbers from 0 to 1."""
        for other in _stand_ins(pattern):
            candidates = self._by.get(category(other))
            benchmarked = _interpolated(other, candidates, draws) if candidates else None
            if benchmarked:
                return benchmarked._replace(stand_in=_differences(pattern, other))
        return None


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


def _interpolated(
    pattern: BenchmarkPattern, candidates: Sequence[Benchmark], draws: Floats
) -> Benchmarked | None:
    away = np.array([place(b.pattern) for b in candidates]) - place(pattern)
    distance = np.sqrt((away**2).sum(1))
    order = np.argsort(distance, kind="stable")[:NEIGHBOURS]
    order = order[distance[order] <= FARTHEST]
    if not len(order):
        return None
    near, away, distance = [candidates[i] for i in order.tolist()], away[order], distance[order]
    numbers = sorted({p.resources for b in near for p in b.curve.points})
    known = np.array([[_covers(b, n) for n in numbers] for b in near])
    rates = np.array([[b.curve.bandwidth(n) for n in numbers] for b in near])
    reached, spreads = np.empty(len(numbers)), np.empty((len(numbers), draws.shape[1]))
    weights: dict[bytes, tuple[Floats, float]] = {}
    heaviest = np.zeros(len(near))
    for at, number in enumerate(numbers):
        there = known[:, at]
        key = there.tobytes()
        if key not in weights:
            weights[key] = _kriging(away[there], np.array([_noise(b) for b, t in zip(near, there) if t]))
        weight, error = weights[key]
        reached[at] = 2 ** float(weight @ np.log2(rates[there, at]))
        repeated = [b for b, t in zip(near, there) if t]
        spreads[at] = _spread(repeated, number, weight, error, draws)
        heaviest[there] += weight / len(numbers)
    by_weight = np.argsort(-np.abs(heaviest), kind="stable").tolist()
    matches = tuple(Match(near[i].pattern, float(heaviest[i]), float(distance[i])) for i in by_weight)
    return Benchmarked(tuple(numbers), reached, spreads, matches, float(distance[0]), "")


def _covers(benchmark: Benchmark, number: int) -> bool:
    points = benchmark.curve.points
    return points[0].resources <= number <= points[-1].resources


def _noise(benchmark: Benchmark) -> float:
    """Variance of the logarithm of a median: that of its repetitions over how many there are."""
    variances = []
    for point in benchmark.curve.points:
        if len(point.bytes_per_s) > 1:
            logs = np.log2(point.bytes_per_s)
            variances.append(float(logs.var(ddof=1)) / len(logs))
    return LEAST_NOISE**2 + (float(np.mean(variances)) if variances else 0.0)


def _kriging(away: Floats, noise: Floats) -> tuple[Floats, float]:
    """Weights that sum up to 1, and the standard error of what they give (doublings); away: (benchmarks, 4)."""
    count = len(away)
    between = np.sqrt(((away[:, None] - away[None]) ** 2).sum(2))
    covariance = DEPARTURE**2 * _alike(between) + SLOPE**2 * (away @ away.T) + np.diag(noise)
    here = DEPARTURE**2 * _alike(np.sqrt((away**2).sum(1)))
    system = np.ones((count + 1, count + 1))
    system[:count, :count] = covariance
    system[count, count] = 0.0
    solved = np.linalg.solve(system, np.append(here, 1.0))
    weight: Floats = solved[:count]
    variance = DEPARTURE**2 - float(weight @ here) - float(solved[count])
    return weight, math.sqrt(max(0.0, variance))


def _alike(distance: Floats) -> Floats:
    """Matérn's function of order 3/2: 1 at no distance, falling smoothly."""
    scaled = math.sqrt(3) / REACH * distance
    alike: Floats = (1 + scaled) * np.exp(-scaled)
    return alike


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
