"""Forecast of one short series of non-negative numbers: ARIMA, and what stands in for it when it cannot.

Every model here commutes with shifting and scaling, so series of one shape (`x - last`, scaled) are
fitted once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from tarazu.predict import arma

MODELS = ("arima", "last", "mean", "drift")

LONGEST = 40
"""Only so many of the latest values are used."""
SHORTEST_ARIMA = 4
DRIFT_T = 1.5
"""A drift is kept when the mean difference is this many standard errors from zero."""
HIGHEST_GROWTH, LOWEST_SHRINK = 2.0, 0.5
"""A forecast stays between the least value times LOWEST_SHRINK and the largest times HIGHEST_GROWTH."""


LONGEST_FITTING_S = 5.0
"""All fits of one forecast; series that come later get models in closed form."""


class SeriesEstimate(msgspec.Struct, frozen=True):
    """The next values of a series, how they were found, and what else was considered."""

    values: tuple[float, ...]
    method: str
    """`arima`, `drift`, `mean` or `last`."""
    detail: str
    alternatives: tuple[tuple[str, float], ...] = ()
    """(model, its first value)."""


class _Fit(msgspec.Struct, frozen=True):
    """One candidate on a normalised series."""

    label: str
    aicc: float
    values: tuple[float, ...]


class SeriesModel:
    """Forecasts series with one of MODELS; remembers the shapes that it has fitted."""

    def __init__(self, model: str = "arima") -> None:
        if model not in MODELS:
            raise ValueError(f"expected a model out of {', '.join(MODELS)}, found {model!r}")
        self.model = model
        self.fits = 0
        """Number of ARIMA fits that were really made."""
        self.warnings: list[str] = []
        self._fitting_s = 0.0
        self._fitted: dict[tuple[tuple[float, ...], int], tuple[_Fit, ...]] = {}

    def ahead(self, series: Sequence[float], steps: int = 1) -> SeriesEstimate:
        """The next `steps` values. `series` is not empty; the oldest value is first."""
        y = [float(v) for v in series[-LONGEST:]]
        if self.model == "last":
            return SeriesEstimate((y[-1],) * steps, "last", "last value")
        if self.model == "mean":
            return SeriesEstimate((sum(y) / len(y),) * steps, "mean", f"mean of {len(y)}")
        if self.model == "drift":
            return _bounded(_drift(y, steps), y)
        return _bounded(self._arima(y, steps), y)

    def _arima(self, y: list[float], steps: int) -> SeriesEstimate:
        differences = [b - a for a, b in pairwise(y)]
        if not any(differences):
            method = "arima" if len(y) >= SHORTEST_ARIMA else "last"
            return SeriesEstimate((y[-1],) * steps, method, f"constant over {len(y)}")
        if len(y) < SHORTEST_ARIMA:
            return _short(y, steps)
        if max(differences) - min(differences) <= 1e-9 * max(map(abs, y)):
            values = tuple(y[-1] + differences[0] * (k + 1) for k in range(steps))
            return SeriesEstimate(values, "arima", "ARIMA(0,1,0) with drift, exact", (("last value", y[-1]),))
        scale = max(abs(v - y[-1]) for v in y)
        shape = tuple(round((v - y[-1]) / scale, 4) for v in y)
        fits = self._fitted.get((shape, steps))
        if fits is None:
            fits = self._fitted[shape, steps] = self._fit(shape, steps)
        best = min(fits, key=lambda f: f.aicc)
        others = tuple((f"{f.label}, AICc {f.aicc:.1f}", y[-1] + scale * f.values[0]) for f in fits)
        values = tuple(y[-1] + scale * v for v in best.values)
        return SeriesEstimate(
            values, "arima", f"{best.label}, AICc {best.aicc:.1f}", (*others, ("last value", y[-1]))
        )

    def _fit(self, shape: tuple[float, ...], steps: int) -> tuple[_Fit, ...]:
        """Candidates of one degree of differencing; their likelihoods are of the same numbers."""
        self.fits += 1
        d = _differencing(shape)
        z = _difference(shape, d)
        constant = d == 0 or (d == 1 and abs(_t_value(z)) >= DRIFT_T)
        fits = [_white(shape, z, d, constant, steps)]
        orders = [(1, 0), (0, 1)] + ([(2, 0), (1, 1)] if len(z) >= 10 else [])
        started = time.perf_counter()
        for p, q in orders if self._fitting_s < LONGEST_FITTING_S else ():
            if len(z) - (p + q + constant + 1) - 1 > 0:
                fits.append(_candidate(shape, z, (p, d, q), constant, steps))
        if self._fitting_s < LONGEST_FITTING_S <= self._fitting_s + time.perf_counter() - started:
            self._warn(f"more than {LONGEST_FITTING_S:g} s of fits: further series get simpler models")
        self._fitting_s += time.perf_counter() - started
        return tuple(fits)

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def _bounded(estimate: SeriesEstimate, y: Sequence[float]) -> SeriesEstimate:
    """Keep every value between bounds that history gives; growth continues over several steps."""
    low = LOWEST_SHRINK * min(y)
    values = tuple(min(max(v, low), HIGHEST_GROWTH * (1 + k) * max(y)) for k, v in enumerate(estimate.values))
    if values == estimate.values:
        return estimate
    return msgspec.structs.replace(estimate, values=values, detail=f"{estimate.detail}, kept within bounds")


def _drift(y: Sequence[float], steps: int) -> SeriesEstimate:
    slope = (y[-1] - y[0]) / max(len(y) - 1, 1)
    values = tuple(y[-1] + slope * (k + 1) for k in range(steps))
    return SeriesEstimate(
        values, "drift" if len(y) > 1 else "last", f"drift over {len(y)}", (("last value", y[-1]),)
    )


def _short(y: Sequence[float], steps: int) -> SeriesEstimate:
    """Two or three values: a drift where they agree on one, else the last."""
    differences = [b - a for a, b in pairwise(y)]
    steady = all(v > 0 for v in differences) or all(v < 0 for v in differences)
    if steady and (len(y) > 2 or abs(differences[0]) <= 0.5 * max(y)):
        return _drift(y, steps)
    return SeriesEstimate((y[-1],) * steps, "last", f"{len(y)} values without a trend")


def _differencing(shape: Sequence[float]) -> int:
    """0, 1 or 2: the least spread wins, with a bias towards 1; 2 only for longer series.

    Differencing noise widens it by 1.41; a single change of level, which users make, widens it less.
    """
    spreads = [_spread(_difference(shape, d)) for d in (0, 1, 2)]
    d = 0 if spreads[0] < 0.75 * spreads[1] else 1
    if len(shape) >= 6 and spreads[2] < 0.5 * spreads[d]:
        d = 2
    return d


def _difference(values: Sequence[float], d: int) -> list[float]:
    current = list(values)
    for _ in range(d):
        current = [b - a for a, b in pairwise(current)]
    return current


def _integrate(values: Sequence[float], shape: Sequence[float], d: int) -> tuple[float, ...]:
    """Undo `_difference` for values that follow the series."""
    result = list(values)
    for level in range(d - 1, -1, -1):
        total = _difference(shape, level)[-1]
        for k, value in enumerate(result):
            total += value
            result[k] = total
    return tuple(result)


def _candidate(
    shape: Sequence[float], z: Sequence[float], order: tuple[int, int, int], constant: bool, steps: int
) -> _Fit:
    """Fit p and q on the differenced series `z`."""
    p, d, q = order
    fitted = arma.fit(z, p, q, constant, steps)
    aicc = _aicc(fitted.likelihood, len(z), p + q + constant + 1)
    return _Fit(_label(order, constant), aicc, _integrate(fitted.values, shape, d))


def _white(shape: Sequence[float], z: Sequence[float], d: int, constant: bool, steps: int) -> _Fit:
    """ARIMA(0,d,0), in closed form."""
    mean = sum(z) / len(z) if constant else 0.0
    variance = max(sum((v - mean) ** 2 for v in z) / len(z), arma.LEAST_VARIANCE)
    likelihood = -0.5 * len(z) * (math.log(2 * math.pi * variance) + 1)
    aicc = _aicc(likelihood, len(z), 1 + constant)
    return _Fit(_label((0, d, 0), constant), aicc, _integrate([mean] * steps, shape, d))


def _aicc(likelihood: float, n: int, k: int) -> float:
    """Akaike's criterion for small samples; the correction is held where n is too small for it."""
    return 2 * k - 2 * likelihood + 2 * k * (k + 1) / max(n - k - 1, 1)


def _label(order: tuple[int, int, int], constant: bool) -> str:
    term = {0: " with mean", 1: " with drift"}.get(order[1], "") if constant else ""
    return f"ARIMA({order[0]},{order[1]},{order[2]}){term}"


def _spread(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))


def _t_value(values: Sequence[float]) -> float:
    """Mean in units of its standard error."""
    n = len(values)
    if n < 3:
        return 0.0
    mean = sum(values) / n
    variance = sum((v - mean) ** 2 for v in values) / (n - 1)
    return mean / math.sqrt(variance / n) if variance > 0 else math.copysign(math.inf, mean)
