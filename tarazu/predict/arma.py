"""ARMA(p, q) with p ≤ 2 and q ≤ 1 for short series: the exact Gaussian likelihood, its maximum, the next values.

The likelihood is that of the Kalman filter in Harvey's form (Time Series Models, 1993, section 4.4), which for q ≤ 1 is
one number for each value of the series. The mean and the variance that fit best are known in closed form. So the search
is over one to three numbers between -1 and 1: partial autocorrelations and the moving average's coefficient, for all of
which the model is stationary and invertible. statsmodels searches where it is installed and nobody waits; `searched` is
the way of nodes that are to stay light.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product
from typing import NamedTuple

EDGE = 0.9999
"""What lies beyond is the matter of another degree of differencing."""
GRID = (-EDGE, -0.95, -0.8, -0.6, -0.35, -0.1, 0.1, 0.35, 0.6, 0.8, 0.95, EDGE)
"""Where the search begins: at the best of these, for the likelihood of a short series may have several maxima."""
FINEST = 1e-4
"""Of a parameter."""
LEAST_VARIANCE = 1e-8
"""Of a series whose largest values are about 1."""
ITERATIONS = 200
"""Of statsmodels' search, which has 50 by default: some of 480 drawn series need more."""

Search = Callable[[Sequence[float], int, int, bool], tuple[float, ...]]
"""(series, p, q, with a mean other than 0) → the p + q parameters that fit best."""


class Fitted(NamedTuple):
    """A fitted model, and how the series ended: all that its next values follow from."""

    likelihood: float
    """Its logarithm, at its maximum."""
    mean: float
    phi1: float = 0.0
    phi2: float = 0.0
    value: float = 0.0
    """The last one, from the mean."""
    rest: float = 0.0
    """What its noise, and the value before it, add to the next one."""

    def ahead(self, steps: int) -> list[float]:
        values, value, rest = [], self.value, self.rest
        for _ in range(steps):
            value, rest = self.phi1 * value + rest, self.phi2 * value
            values.append(self.mean + value)
        return values


class _Model(NamedTuple):
    phi1: float
    phi2: float
    theta: float


def fit(series: Sequence[float], p: int, q: int, constant: bool, search: Search) -> Fitted:
    """The most likely ARMA(p, q), with a mean other than 0 if `constant`."""
    return _filter(_model(search(series, p, q, constant), p, q), series, constant)


def best_search() -> Search:
    """statsmodels' where it is installed. It takes a second and 190 MB to load."""
    return by_statsmodels if find_spec("statsmodels") else searched


def searched(series: Sequence[float], p: int, q: int, constant: bool) -> tuple[float, ...]:
    """From the best point of the grid on, along and across the parameters, in ever smaller steps."""

    def badness(parameters: tuple[float, ...]) -> float:
        return -_filter(_model(parameters, p, q), series, constant).likelihood

    ways = [way for way in product((-1, 0, 1), repeat=p + q) if any(way)]
    best = _begun(series, p, q, constant)
    least, step = badness(best), 0.1
    while step > FINEST:
        near = [tuple(_within(b + w * step) for b, w in zip(best, way)) for way in ways]
        nearest = min(near, key=badness)
        if badness(nearest) < least - FINEST * step:
            best, least = nearest, badness(nearest)
        else:
            step /= 2
    return best


def by_statsmodels(series: Sequence[float], p: int, q: int, constant: bool) -> tuple[float, ...]:
    """The same by statsmodels' ARIMA; from where it begins by itself it ends at a lower maximum now and then."""
    parameters = _begun(series, p, q, constant)
    begun = _model(parameters, p, q)
    means = [_filter(begun, series, True).mean] if constant else []
    start = [*means, *(begun.phi1, begun.phi2)[:p], *(begun.theta,)[:q]]
    try:
        from statsmodels.tsa.arima.model import ARIMA

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of searches that end at the edge
            trend = "c" if constant else "n"
            model = ARIMA(list(series), order=(p, 0, q), trend=trend, concentrate_scale=True)
            fitted = model.fit(start, method_kwargs={"maxiter": ITERATIONS})
    except (ImportError, ValueError):  # no memory to load it, or a series without spread
        return searched(series, p, q, constant)
    most_likely = [float(each) for each in fitted.params[constant:]]
    if p == 2:
        most_likely[0] /= 1 - _within(most_likely[1])
    return tuple(map(_within, most_likely)) if all(map(math.isfinite, most_likely)) else parameters


def _begun(series: Sequence[float], p: int, q: int, constant: bool) -> tuple[float, ...]:
    """The best point of the grid."""
    at = {point: _filter(_model(point, p, q), series, constant) for point in product(GRID, repeat=p + q)}
    return max(at, key=lambda point: at[point].likelihood)


def _within(parameter: float) -> float:
    return min(max(parameter, -EDGE), EDGE)


def _model(parameters: tuple[float, ...], p: int, q: int) -> _Model:
    theta = parameters[p] if q else 0.0
    if p == 2:
        return _Model(parameters[0] * (1 - parameters[1]), parameters[1], theta)
    return _Model(parameters[0] if p else 0.0, 0.0, theta)


def _filter(model: _Model, series: Sequence[float], constant: bool) -> Fitted:
    """The series and one of ones go through the filter together: what is not foreseen of them gives the mean."""
    phi1, phi2, theta = model
    noise = 1 + theta * phi1 + theta * theta
    gamma0 = (noise + phi1 * theta * (1 + phi2) / (1 - phi2)) / (
        1 - phi2 * phi2 - phi1 * phi1 * (1 + phi2) / (1 - phi2)
    )
    gamma1 = (phi1 * gamma0 + theta) / (1 - phi2)
    shared = phi2 * gamma1 + theta
    variance, unknown = gamma0, phi2 * phi2 * gamma0 + theta * theta
    foreseen = foreseen_one = before = before_one = 0.0
    after = after_one = 0.0
    logs = squares = products = ones = 0.0
    for value in series:
        new, new_one = value - foreseen, 1.0 - foreseen_one
        logs += math.log(variance)
        squares += new * new / variance
        products += new * new_one / variance
        ones += new_one * new_one / variance
        gain = shared / variance
        after, after_one = phi2 * before + gain * new, phi2 * before_one + gain * new_one
        foreseen, foreseen_one = phi1 * value + after, phi1 + after_one
        before, before_one = value, 1.0
        variance, unknown = 1 + unknown - gain * shared, theta * theta
        shared = theta
    mean = products / ones if constant else 0.0
    n = len(series)
    spread = max((squares - 2 * mean * products + mean * mean * ones) / n, LEAST_VARIANCE)
    likelihood = -0.5 * (n * (math.log(2 * math.pi * spread) + 1) + logs)
    return Fitted(likelihood, mean, phi1, phi2, series[-1] - mean, after - mean * after_one)
