"""Ordinary kriging of bandwidths in logarithms, and how far it may look: learned from the benchmarks themselves.

What a benchmark says has two parts: its *level*, the mean of its logarithms over all numbers of resources, and its
*shape*, what each number differs by from that. Levels differ by factors of a hundred and follow the size of requests;
shapes are much alike among benchmarks of one kind. So each part has weights of its own: of all that sum up to 1 those
that err least, far from every benchmark the mean of all of them.

`Scales` says what is usual: over how many doublings of each of the four numbers values are alike, and by how much they
differ. Machines differ in that, so it is fitted: restricted maximum likelihood on the benchmarks, with a wide
log-normal prior around `USUAL`, which is what a handful of benchmarks leaves. Noise comes from repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_FITTED, MOST_OF_ALL, MOST_NUMBERS = 64, 384, 16
"""What the fit looks at: benchmarks of one kind, of all kinds, numbers of resources."""
PRIOR = 0.7
"""Standard deviation of the logarithm of each scale."""
STEPS = (math.log(2), math.log(2) / 2, math.log(2) / 4)
SWEEPS = 6
"""Through all scales, at most, with each step."""
ENOUGH = 0.1
"""Gain of a sweep, in the logarithm of the likelihood, below which the next step comes."""


class Scales(NamedTuple):
    """In doublings of the bandwidth, but for `reach`: doublings of request size, bytes a process, processes, nodes."""

    reach: tuple[float, float, float, float]
    """Over which departures are alike."""
    slope: float
    """Of the level, for a doubling of one of the numbers: usual size."""
    departure: float
    """Of the level from such a slope, far away."""
    shape: float
    """Of one number's part in the shape, far away."""
    noise: float
    """Of one benchmark's median, beside what its repetitions say."""


USUAL = Scales((4.0, 4.0, 4.0, 4.0), 0.5, 0.5, 0.3, 0.03)


class Group(NamedTuple):
    """Benchmarks of one kind, for the fit: all know the same numbers of resources."""

    places: Floats
    """(benchmarks, 4)"""
    logs: Floats
    """(benchmarks, numbers) of their medians, to the base 2."""
    noise: Floats
    """(benchmarks,) variance of one of these."""


class _Prepared(NamedTuple):
    """What of a group stays while scales change."""

    squares: Floats
    inner: Floats
    level: Floats
    """(benchmarks, 1)"""
    shape: Floats
    noise: Floats


def kriging(
    away: Floats, noise: Floats, departure: float, slope: float, reach: Sequence[float]
) -> tuple[Floats, float]:
    """Weights that sum up to 1, and the variance of what they give; away: (benchmarks, 4) from where it is wanted."""
    count = len(away)
    here = departure**2 * _alike(away**2, reach)
    system = np.ones((count + 1, count + 1))
    alike = _alike(_squares(away), reach)
    system[:count, :count] = departure**2 * alike + slope**2 * (away @ away.T) + np.diag(noise)
    system[count, count] = 0.0
    solved = np.linalg.solve(system, np.append(here, 1.0))
    weight: Floats = solved[:count]
    return weight, max(0.0, departure**2 - float(weight @ here) - float(solved[count]))


def parts(logs: Floats, known: NDArray[np.bool_], numbers: Sequence[int]) -> tuple[Floats, Floats]:
    """(benchmarks,) levels and (benchmarks, numbers) shapes, where not all know all numbers: what does not is at a
    number as the others are there. Benchmarks that share no number are joined by the slope that all have in common."""
    at = np.where(known, logs, 0.0)
    along = np.log2(numbers)
    shape = _slope(at, known, along) * (along - along.mean())
    level = np.zeros(len(logs))
    for _ in range(1 if known.all() else 20):
        level = (np.where(known, at - shape, 0.0)).sum(1) / known.sum(1)
        shape = np.where(known, at - level[:, None], 0.0).sum(0) / np.maximum(known.sum(0), 1)
        shape -= shape.mean()
    return level, np.where(known, at - level[:, None], 0.0)


def _slope(at: Floats, known: NDArray[np.bool_], along: Floats) -> float:
    """For a doubling of the number of resources, within benchmarks; 0 where each knows one number."""
    count = known.sum(1)[:, None]
    apart = np.where(known, along - (known * along).sum(1)[:, None] / count, 0.0)
    squares = float((apart**2).sum())
    return float((apart * (at - at.sum(1)[:, None] / count)).sum()) / squares if squares else 0.0


def fit(groups: Sequence[Group]) -> Scales:
    """The likeliest scales, one for all groups; `USUAL` where there are none."""
    groups = [group for group in groups if len(group.places) > 1]
    if not groups:
        return USUAL
    most = max(2, min(MOST_FITTED, MOST_OF_ALL // len(groups)))
    prepared = [_prepared(group, most) for group in groups]
    middle = _flat(USUAL)
    best, value = middle, _unlikely(middle, middle, prepared)
    for step in STEPS:
        for _ in range(SWEEPS):
            before = value
            for at in range(len(best)):
                for sign in (1.0, -1.0):
                    other = best.copy()
                    other[at] += sign * step
                    tried = _unlikely(other, middle, prepared)
                    if tried < value:
                        best, value = other, tried
                        break
            if before - value < ENOUGH:
                break
    return _scales(best)


def _flat(scales: Scales) -> Floats:
    flat: Floats = np.log(np.array([*scales.reach, *scales[1:]]))
    return flat


def _scales(flat: Floats) -> Scales:
    first, second, third, fourth, *others = np.exp(flat).tolist()
    return Scales((first, second, third, fourth), *others)


def _prepared(group: Group, most: int) -> _Prepared:
    chosen, numbers = (
        np.linspace(0, many - 1, min(many, bound)).round().astype(int)
        for many, bound in zip(group.logs.shape, (most, MOST_NUMBERS))
    )
    places, logs = group.places[chosen], group.logs[chosen][:, numbers]
    places = places - places.mean(0)
    level = logs.mean(1)[:, None]
    return _Prepared(_squares(places), places @ places.T, level, logs - level, group.noise[chosen])


def _unlikely(flat: Floats, middle: Floats, groups: Sequence[_Prepared]) -> float:
    """Minus the logarithm of the posterior, but for a constant."""
    scales = _scales(flat)
    value = 0.5 * float((((flat - middle) / PRIOR) ** 2).sum())
    for of in groups:
        numbers = of.shape.shape[1]
        noise = of.noise + scales.noise**2
        alike = _alike(of.squares, scales.reach)
        of_level = scales.departure**2 * alike + scales.slope**2 * of.inner + np.diag(noise / numbers)
        value += _restricted(of_level, of.level, 1)
        if numbers > 1:
            value += _restricted(scales.shape**2 * alike + np.diag(noise), of.shape, numbers - 1)
    return value


def _restricted(covariance: Floats, values: Floats, freedom: int) -> float:
    """Minus the restricted log likelihood of columns with unknown means, of which so many are free."""
    lower = np.linalg.cholesky(covariance)
    solved = np.linalg.solve(lower, np.column_stack([np.ones(len(values)), values]))
    one, rest = solved[:, 0], solved[:, 1:]
    of_one = float(one @ one)
    squares = float((rest**2).sum()) - float(((one @ rest) ** 2).sum()) / of_one
    return 0.5 * squares + freedom * (float(np.log(np.diag(lower)).sum()) + 0.5 * math.log(of_one))


def _squares(places: Floats) -> Floats:
    """(benchmarks, benchmarks, 4)"""
    found: Floats = (places[:, None] - places[None]) ** 2
    return found


def _alike(squares: Floats, reach: Sequence[float]) -> Floats:
    """Matérn's function of order 3/2 of the distance: 1 at none, falling smoothly."""
    scaled = np.sqrt(squares @ (3.0 / np.square(reach)))
    alike: Floats = (1.0 + scaled) * np.exp(-scaled)
    return alike
