"""ARMA(p, q) with p ≤ 2 and q ≤ 1 for short series: the exact Gaussian likelihood, its maximum, the next values.

The likelihood is that of the Kalman filter in Harvey's form (Time Series Models, 1993, section 4.4), which for q ≤ 1 is
one number for each value of the series. The mean and the variance that fit best are known in closed form. So the search
is over one or two numbers between -1 and 1: partial autocorrelations and the moving average's coefficient, for all of
which the model is stationary and invertible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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


class Fitted(NamedTuple):
    likelihood: float
    """Its logarithm, at its maximum."""
    values: tuple[float, ...]
    """The next ones."""


class _Model(NamedTuple):
    phi1: float
    phi2: float
    theta: float


class _Filtered(NamedTuple):
    likelihood: float
    mean: float
    after: float
    """What the last value's noise, and the value before it, add to the next value."""


def fit(series: Sequence[float], p: int, q: int, constant: bool, steps: int) -> Fitted:
    """The most likely ARMA(p, q), with a mean other than 0 if `constant`, and the next `steps` values."""

    def badness(parameters: tuple[float, ...]) -> float:
        return -_filter(_model(parameters, p, q), series, constant).likelihood

    model = _model(_lowest(badness, p + q), p, q)
    found = _filter(model, series, constant)
    value, rest = series[-1] - found.mean, found.after
    values = []
    for _ in range(steps):
        value, rest = model.phi1 * value + rest, model.phi2 * value
        values.append(found.mean + value)
    return Fitted(found.likelihood, tuple(values))


def _model(parameters: tuple[float, ...], p: int, q: int) -> _Model:
    theta = parameters[p] if q else 0.0
    if p == 2:
        return _Model(parameters[0] * (1 - parameters[1]), parameters[1], theta)
    return _Model(parameters[0] if p else 0.0, 0.0, theta)


def _filter(model: _Model, series: Sequence[float], constant: bool) -> _Filtered:
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
    return _Filtered(likelihood, mean, after - mean * after_one)


def _lowest(badness: Callable[[tuple[float, ...]], float], count: int) -> tuple[float, ...]:
    """From the best point of the grid on, along and across the parameters, in ever smaller steps."""
    ways = [way for way in product((-1, 0, 1), repeat=count) if any(way)]
    best = min(product(GRID, repeat=count), key=badness)
    least, step = badness(best), 0.1
    while step > FINEST:
        near = [tuple(min(max(b + w * step, -EDGE), EDGE) for b, w in zip(best, way)) for way in ways]
        found = min(near, key=badness)
        if badness(found) < least - FINEST * step:
            best, least = found, badness(found)
        else:
            step /= 2
    return best
