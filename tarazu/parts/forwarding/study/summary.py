"""Rows of the study by policy and level: means and the bands that paper A's figures have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Kind, Need
from tarazu.parts.forwarding.study import schedulers
from tarazu.parts.forwarding.study.cases import OURS, ForwardingRow, Told
from tarazu.parts.forwarding.tables import Array
from tarazu.sim.study.statistics import estimate

Metric = Callable[[ForwardingRow], float]
slowdown: Metric = attrgetter("mean_slowdown")
rho_io: Metric = attrgetter("rho_io")
rho_con: Metric = attrgetter("rho_con")
spread: Metric = attrgetter("spread")
idletime: Metric = attrgetter("idletime")

METRICS = {"Mean-I/O-SlowDown": slowdown, "Machine-Idletime": idletime}
"""For users; for the machine."""
PERCENTILES = (10, 90)
CURVES: frozenset[Need] = frozenset({"n_perf", "curve"})
"""What a policy may need that its application's family does not tell."""


class Band(msgspec.Struct, frozen=True):
    """The mean of several sets, and what lies around it."""

    mean: float
    low: float
    high: float


Series = dict[float, Band]
"""By level."""


def percentiles(values: Sequence[float]) -> Band:
    """Mean, 10th and 90th percentile."""
    low, high = np.percentile(values, PERCENTILES)
    return Band(float(np.mean(values)), float(low), float(high))


def confidence(values: Sequence[float]) -> Band:
    """Mean and its 95 % interval; of one value, of which nothing is known, the value alone."""
    if len(values) == 1:
        return Band(values[0], values[0], values[0])
    interval = estimate(values)
    return Band(interval.mean, interval.low, interval.high)


class ForwardingSummary:
    """Rows, found by what they are of."""

    def __init__(self, rows: Iterable[ForwardingRow]) -> None:
        self._rows: dict[tuple[Kind, Told, str], dict[float, dict[tuple[int, int], ForwardingRow]]] = {}
        for row in rows:
            levels = self._rows.setdefault((row.kind, row.told, row.policy), {})
            levels.setdefault(row.level, {})[row.block, row.seed] = row
        self.kinds: list[Kind] = list(dict.fromkeys(kind for kind, _, _ in self._rows))
        self.policies = list(dict.fromkeys(policy for _, _, policy in self._rows))
        self.papers = [policy for policy in self.policies if policy != OURS]
        """Those of paper A."""
        self.levels = sorted({level for levels in self._rows.values() for level in levels})
        self.sets = min((len(sets) for levels in self._rows.values() for sets in levels.values()), default=0)
        """At each level, at least."""

    def has(self, kind: Kind, policy: str, told: Told = "truth") -> bool:
        return (kind, told, policy) in self._rows

    def values(
        self, kind: Kind, policy: str, metric: Metric, level: float, told: Told = "truth"
    ) -> list[float]:
        """One for each set."""
        return [metric(row) for row in self._rows[kind, told, policy][level].values()]

    def series(
        self,
        kind: Kind,
        policy: str,
        metric: Metric,
        told: Told = "truth",
        band: Callable[[Sequence[float]], Band] = percentiles,
    ) -> Series:
        return {level: band(self.values(kind, policy, metric, level, told)) for level in self.levels}

    def ratios(
        self, kind: Kind, ours: tuple[str, Told], theirs: tuple[str, Told], metric: Metric
    ) -> dict[float, list[float]]:
        """Ours / theirs, set by set."""
        by_level = {}
        for level in self.levels:
            a = self._rows[kind, ours[1], ours[0]][level]
            b = self._rows[kind, theirs[1], theirs[0]][level]
            by_level[level] = [metric(a[key]) / metric(b[key]) for key in a]
        return by_level

    def mean(self, kind: Kind, policy: str, metric: Metric, level: float, told: Told = "truth") -> float:
        return float(np.mean(self.values(kind, policy, metric, level, told)))

    def means(self, kind: Kind, policy: str, metric: Metric, told: Told = "truth") -> Array:
        """(levels,)"""
        return np.array([self.mean(kind, policy, metric, level, told) for level in self.levels])

    def best(self, kind: Kind, metric: Metric, level: float, told: Told = "truth") -> tuple[str, float]:
        """Of the paper's policies that were told so much the one with the lowest mean, and that."""
        means = {
            policy: self.mean(kind, policy, metric, level, told if self.has(kind, policy, told) else "truth")
            for policy in self.papers
            if self.has(kind, policy, told) or not schedulers.named(policy).needs & CURVES
        }
        name = min(means, key=means.__getitem__)
        return name, means[name]


class Beside(msgspec.Struct, frozen=True):
    """Our policy beside the best of the paper's, which are told the same, at one level and by one metric."""

    kind: Kind
    told: Told
    level: float
    metric: str
    ours: float
    best_by: str
    best: float

    @property
    def ratio(self) -> float:
        return self.ours / self.best


def beside(of: ForwardingSummary) -> list[Beside]:
    """For both kinds, all levels and metrics, with the curves and with families alone; empty where our policy is not in
    the study.
    """
    tolds: tuple[Told, ...] = ("truth", "profile")
    return [
        Beside(
            *(kind, told, level, name),
            of.mean(kind, OURS, metric, level, told),
            *of.best(kind, metric, level, told),
        )
        for kind in of.kinds
        for told in tolds
        if of.has(kind, OURS, told)
        for level in of.levels
        for name, metric in METRICS.items()
    ]
