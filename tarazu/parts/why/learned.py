"""How the system's state slows an application down, learned from its own many earlier runs.

The time of a run per byte, in logarithms, is a level plus the effect of each column of the state:

    log(seconds per byte) = level + sum over columns of f(column)

Each f never falls (more load, a fuller OST do not make a run faster) and is a sum of ramps between quantiles of what
was seen, so that nothing is extrapolated: non-negative least squares with a ridge. Level and ramps are taken as
differences from what was usual lately (exponential means over about `LATELY` runs): an application that has been slow
for a week, and a file system that fills over a month, are no evidence for each other. Effects add up in logarithms,
so causes multiply in time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_RUNS = 30
"""Fewer tell nothing of five columns."""
LATELY = 5.0
"""Runs."""
RIDGE = 20.0
"""Runs' worth of doubt about each ramp."""
KNOTS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)
"""Quantiles between which a ramp rises."""


class Learned:
    """Of one application: what a state costs it beside the usual one, as `effects`."""

    def __init__(self, slowness: Floats, state: Floats) -> None:
        """slowness: (runs,) log of seconds per byte, oldest first; state: (runs, columns), more is worse."""
        self._knots = [np.unique(np.quantile(column, KNOTS)) for column in state.T]
        ramps = self._ramps(state)
        self.level = float(lately(slowness)[-1])
        """What is expected of the next run in the usual state."""
        self._usual = lately(ramps)[-1]
        differences = (ramps - before(ramps))[1:], (slowness - before(slowness))[1:]
        self._weights = np.zeros(ramps.shape[1])
        if len(slowness) >= LEAST_RUNS:
            self._weights = non_negative(*differences, RIDGE)

    def effects(self, state: Floats) -> Floats:
        """(columns,) above or below what this column (of `state`, (columns,)) usually costs: log of time."""
        found: Floats = self._by_column(self._ramps(state[None]) - self._usual)[0]
        return found

    def walk(self, state: Floats) -> Floats:
        """(runs, columns) effects of each run, oldest first, beside what was usual before it."""
        ramps = self._ramps(state)
        return self._by_column(ramps - before(ramps))

    def _by_column(self, ramps: Floats) -> Floats:
        ends = np.cumsum([len(knots) - 1 for knots in self._knots])[:-1]
        return np.stack([part.sum(1) for part in np.split(ramps * self._weights, ends, axis=1)], axis=1)

    def _ramps(self, state: Floats) -> Floats:
        """(runs, ramps) 0 below each ramp, 1 above."""
        parts = [
            np.clip((column[:, None] - knots[:-1]) / np.diff(knots), 0.0, 1.0)
            for column, knots in zip(state.T, self._knots, strict=True)
        ]
        return np.concatenate(parts, axis=1)


def non_negative(columns: Floats, values: Floats, ridge: float) -> Floats:
    """The weights w >= 0 that make |columns w - values|^2 + ridge |w|^2 least: coordinate descent."""
    products = columns.T @ columns + ridge * np.eye(columns.shape[1])
    target = columns.T @ values
    weights = np.zeros(columns.shape[1])
    for _ in range(200):
        before = weights.copy()
        for j in range(len(weights)):
            rest = target[j] - products[j] @ weights + products[j, j] * weights[j]
            weights[j] = max(0.0, rest / products[j, j])
        if np.abs(weights - before).max(initial=0.0) < 1e-6:
            break
    return weights


def lately(values: Floats) -> Floats:
    """Exponential mean over the first axis, each run in its own; of the first ones the plain mean."""
    means = np.empty_like(values)
    mean = np.zeros_like(values[0])
    for n, value in enumerate(values):
        mean = mean + max(1 / (n + 1), 1 / LATELY) * (value - mean)
        means[n] = mean
    return means


def before(values: Floats) -> Floats:
    """`lately` up to the run before; the first is that run itself."""
    return np.concatenate([values[:1], lately(values)[:-1]])
