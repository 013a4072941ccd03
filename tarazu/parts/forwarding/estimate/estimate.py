"""The bandwidth curve of an application from its phases (paper E, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.curve import Curve, Point
from tarazu.parts.forwarding.estimate.database import BenchmarkPattern, Benchmarks
from tarazu.parts.forwarding.estimate.match import Benchmarked, Index
from tarazu.parts.forwarding.estimate.wanted import WantedBenchmark, wanted
from tarazu.trace.phases.phase import Phase

Floats = NDArray[np.float64]

DRAWS = 201
"""Of each phase's bandwidth, for the distribution of the whole."""
QUANTILES = 11
"""Of that distribution, as the curve keeps it: from 5 % to 95 %, the middle one being the median."""
LEAST_COVERED = 0.5
"""Of the bytes: below that there is no estimate."""
MOST_PHASES = 1000
"""The largest; further ones are not looked at."""
_SEED = 12
_INDEXES: WeakKeyDictionary[Benchmarks, Index] = WeakKeyDictionary()
"""What was learned of benchmarks, for as long as they are there."""


class Estimate(msgspec.Struct, frozen=True):
    """The application's curve, and what it rests on."""

    curve: Curve
    """Its points hold quantiles of what is to be expected, the middle one being the estimate."""
    parts: tuple[tuple[BenchmarkPattern, Benchmarked | None], ...]
    """What the phases' requests of one size were taken for, each once, and what is known of that; None: nothing is."""
    covered: float
    """Share of the bytes whose phases were matched."""


def estimate(phases: Sequence[Phase], benchmarks: Benchmarks, nodes: int, kind: Kind) -> Estimate | None:
    """From an application's phases and its number of nodes; None where less than half of its bytes are like any
    benchmark, or there are none.

    Its bandwidth with n resources is its bytes over the sum of what its phases take: each of them its bytes over
    the bandwidth of what is like it.
    """
    if benchmarks not in _INDEXES:
        _INDEXES[benchmarks] = Index(benchmarks)
    index = _INDEXES[benchmarks]
    by_size = sorted(range(len(phases)), key=lambda i: -phases[i].bytes)[:MOST_PHASES]
    draws = np.random.default_rng(_SEED).random((len(by_size), 2, DRAWS))
    benchmarked: dict[WantedBenchmark, Benchmarked | None] = {}
    each: dict[int, list[tuple[WantedBenchmark, Benchmarked | None]]] = {}
    for draw, number in enumerate(sorted(by_size)):
        each[number] = []
        for want in wanted(phases[number], nodes, kind):
            if want not in benchmarked:
                benchmarked[want] = index.find(want.pattern, draws[draw])
            each[number].append((want, benchmarked[want]))
    matched = {n: [(w, f) for w, f in of if f] for n, of in each.items() if of and all(f for _, f in of)}
    whole = sum(phase.bytes for phase in phases)
    covered = sum(phases[n].bytes for n in matched) / whole if whole else 0.0
    known = [pair for of in matched.values() for pair in of]
    numbers = _numbers([f for _, f in known])
    if covered < LEAST_COVERED or not numbers:
        return None
    seconds = _seconds(known, numbers)
    moved = sum(phases[n].bytes for n in matched)
    middle = moved / seconds[:, 0]
    spread = moved / seconds[:, 1:]
    spread *= (middle / np.median(spread, axis=1))[:, None]
    quantiles = np.sort(np.quantile(spread, np.linspace(0.05, 0.95, QUANTILES), axis=1).T, axis=1)
    points = tuple(Point(n, tuple(row)) for n, row in zip(numbers, quantiles.tolist(), strict=True))
    return Estimate(
        Curve(points),
        tuple({want.pattern: found for want, found in benchmarked.items()}.items()),
        covered,
    )


def _numbers(found: Sequence[Benchmarked]) -> tuple[int, ...]:
    """Numbers of resources that all of them know, or have between two that they know."""
    if not found:
        return ()
    low, high = max(f.numbers[0] for f in found), min(f.numbers[-1] for f in found)
    return tuple(sorted({n for f in found for n in f.numbers if low <= n <= high}))


def _seconds(of: Sequence[tuple[WantedBenchmark, Benchmarked]], numbers: tuple[int, ...]) -> Floats:
    """(numbers, 1 + draws) that these take together: the middle, then the draws."""
    taken = np.zeros((len(numbers), 1 + DRAWS))
    for want, benchmarked in of:
        rates = np.interp(numbers, benchmarked.numbers, benchmarked.bytes_per_s)
        nearest = np.abs(np.subtract.outer(numbers, benchmarked.numbers)).argmin(1)
        taken[:, 0] += want.bytes / rates
        taken[:, 1:] += want.bytes / (rates[:, None] * benchmarked.spread[nearest])
    return taken
