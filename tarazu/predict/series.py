"""Forecast of one short series of non-negative numbers: ARIMA, and what stands in for it when it cannot.

Every model here commutes with shifting and scaling, so series of one shape (`x - last`, scaled) are
fitted once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from tarazu.predict import RUNS, arma

MODELS = ("arima", "last", "mean", "drift")
ORDERS = ((1, 0), (0, 1), (2, 0), (1, 1))
MORE_ORDERS_FROM = 10
"""The last two are for series of so many values: with fewer, AICc never chooses them."""

LONGEST = 100
"""Only so many of the latest values are used: as many runs as a history keeps."""
SHORTEST_ARIMA = 4
DRIFT_T = 1.5
"""A drift is kept when the mean difference is this many standard errors from zero."""
HIGHEST_GROWTH, LOWEST_SHRINK = 2.0, 0.5
"""A forecast stays between the least value times LOWEST_SHRINK and the largest times HIGHEST_GROWTH."""


LONGEST_FITTING_S = 5.0
"""All fits of one forecast; series that come later get models in closed form."""

Shape = tuple[float, ...]


class SeriesEstimate(msgspec.Struct, frozen=True):
    """The next values of a series, how they were found, and what else was considered."""

    values: tuple[float, ...]
    method: str
    """`arima`, `drift`, `mean` or `last`."""
    detail: str
    alternatives: tuple[tuple[str, float], ...] = ()
    """(model, its first value)."""


class SeriesFit(msgspec.Struct, frozen=True, array_like=True):
    """The model of a series, in units of the spread of its newest values; kept after a run for the next one."""

    label: str
    degree: int
    """Of differencing."""
    fitted: arma.Fitted
    others: tuple[tuple[str, float], ...]
    """Models that were considered, the first value of each."""


class SeriesModel:
    """Forecasts series with one of MODELS; remembers the shapes that it has fitted."""

    def __init__(
        self,
        model: str = "arima",
        search: arma.Search = arma.searched,
        fits: Mapping[Shape, SeriesFit] | None = None,
    ) -> None:
        """`fits`: of an earlier one, so that series that have not changed since are not fitted again."""
        if model not in MODELS:
            raise ValueError(f"expected a model out of {', '.join(MODELS)}, found {model!r}")
        self.model = model
        self.made = 0
        """Fits of ARIMA that were really made."""
        self.fits = dict(fits or {})
        """Shape of the newest values → model of the whole series."""
        self.warnings: list[str] = []
        self._search = search
        self._fitting_s = 0.0

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
        newest = y[-RUNS:]
        differences = [b - a for a, b in pairwise(newest)]
        if not any(differences):
            method = "arima" if len(y) >= SHORTEST_ARIMA else "last"
            return SeriesEstimate((y[-1],) * steps, method, f"constant over {len(newest)}")
        if len(y) < SHORTEST_ARIMA:
            return _short(y, steps)
        if max(differences) - min(differences) <= 1e-9 * max(map(abs, newest)):
            values = tuple(y[-1] + differences[0] * (k + 1) for k in range(steps))
            return SeriesEstimate(values, "arima", "ARIMA(0,1,0) with drift, exact", (("last value", y[-1]),))
        scale = max(abs(v - y[-1]) for v in newest)
        key = shape(newest)
        best = self.fits.get(key)
        if best is None:
            best = self.fits[key] = self._fit([(v - y[-1]) / scale for v in y])
        values = _integrate(best.fitted.ahead(steps), key, best.degree)
        others = tuple((label, y[-1] + scale * value) for label, value in best.others)
        return SeriesEstimate(
            tuple(y[-1] + scale * v for v in values), "arima", best.label, (*others, ("last value", y[-1]))
        )

    def _fit(self, x: Sequence[float]) -> SeriesFit:
        """The order of the least AICc over all values but the last, if it foresees that one better than none does."""
        self.made += 1
        d = _differencing(x)
        z = _difference(x, d)
        constant = d == 0 or (d == 1 and abs(_t_value(z)) >= DRIFT_T)
        known, last = z[:-1], z[-1]
        tried = {(0, 0): _white(known, constant)}
        started = time.process_time()
        for p, q in ORDERS if len(z) >= MORE_ORDERS_FROM else ORDERS[:2]:
            if len(known) - (p + q + constant + 1) - 1 > 0 and self._fitting_s < LONGEST_FITTING_S:
                tried[p, q] = arma.fit(known, p, q, constant, self._search)
        badness = {
            (p, q): _aicc(fitted.likelihood, len(known), p + q + constant + 1)
            for (p, q), fitted in tried.items()
        }
        errors = {order: abs(fitted.ahead(1)[0] - last) for order, fitted in tried.items()}
        best = min(badness, key=badness.__getitem__)
        if errors[best] >= errors[0, 0]:
            best = (0, 0)
        fitted = arma.fit(z, *best, constant, self._search) if any(best) else _white(z, constant)
        spent_s = time.process_time() - started
        if self._fitting_s < LONGEST_FITTING_S <= self._fitting_s + spent_s:
            self._warn(f"more than {LONGEST_FITTING_S:g} s of fits: further series get simpler models")
        self._fitting_s += spent_s
        labels = {
            (p, q): f"{_label((p, d, q), constant)}, AICc {badness[p, q]:.1f}, off by {errors[p, q]:.2g}"
            for p, q in tried
        }
        others = tuple(
            (labels[order], _integrate(of.ahead(2)[1:], x, d)[0])
            for order, of in tried.items()
            if order != best
        )
        return SeriesFit(labels[best], d, fitted, others)

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def shape(values: Sequence[float]) -> Shape:
    """A series without its level and scale; empty for one that is constant."""
    scale = max(abs(v - values[-1]) for v in values)
    return tuple(round((v - values[-1]) / scale, 4) for v in values) if scale else ()


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


def _white(z: Sequence[float], constant: bool) -> arma.Fitted:
    """ARIMA(0,d,0), in closed form."""
    mean = sum(z) / len(z) if constant else 0.0
    variance = max(sum((v - mean) ** 2 for v in z) / len(z), arma.LEAST_VARIANCE)
    return arma.Fitted(-0.5 * len(z) * (math.log(2 * math.pi * variance) + 1), mean)


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
