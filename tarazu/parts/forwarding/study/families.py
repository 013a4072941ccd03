"""The four families of bandwidth curves (paper A, figure 1), and one function for each of them (figure 10).

Ascent: more resources, more bandwidth. Descent: more resources, less. Peak: more up to a point, then less. Neutral: no
difference. The paper names and draws them and says no more; how a curve is told into its family is our assumption:

- By the medians at the least number, the best and the largest one. It rises where the best is above the first, falls
  where the last is below the best; both: Peak, one: Ascent or Descent, none: Neutral, whatever lies between the ends.
- What counts as a difference: 10 % of the best (`LEAST`), and twice the standard error of the difference of two
  medians, as the spread of the repetitions gives it. Where nothing was repeated, 10 % alone.

The function of a family is the regression of all its curves, each divided by its best value (as the figures draw them),
by a polynomial in n of degree 3 (`DEGREE`) at most: of the degrees that the different numbers allow, the one with the
least Bayesian information criterion, so that Neutral is a constant and has no best number by chance. Its value is taken
at the numbers that were measured, between them the line is straight: a polynomial swings between points.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log, sqrt
from typing import Literal, get_args

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Application
from tarazu.parts.forwarding.curve import Curve, Point

Family = Literal["ascent", "descent", "peak", "neutral"]
FAMILIES: tuple[Family, ...] = get_args(Family)

LEAST = 0.1
"""Share of the best below which a difference is none."""
DEGREE = 3
EXACT = 1e-12
"""Mean square of what a polynomial leaves over below which it goes through everything."""
FLOOR = 0.01
"""Least value of a family's function, its best being 1: bandwidth is positive."""


def classify(curve: Curve) -> Family:
    """The family of a curve, by its medians and the spread of its repetitions."""
    medians = [p.median for p in curve.points]
    best = max(medians)
    difference = max(LEAST, 2 * spread(curve)) * best
    rises = best - medians[0] > difference
    falls = best - medians[-1] > difference
    if rises and falls:
        return "peak"
    return "ascent" if rises else "descent" if falls else "neutral"


def spread(curve: Curve) -> float:
    """Standard error of the difference of two of its medians, as a share of them; 0 where nothing was repeated."""
    repeated = [p for p in curve.points if len(p.bytes_per_s) > 1]
    if not repeated:
        return 0.0
    squares = sum(((b / p.median) - 1) ** 2 for p in repeated for b in p.bytes_per_s)
    freedom = sum(len(p.bytes_per_s) - 1 for p in repeated)
    repetitions = min(len(p.bytes_per_s) for p in curve.points)
    of_a_median = 1.2533 if repetitions > 2 else 1.0  # of 1 or 2 values the median is the mean
    return of_a_median * sqrt(squares / freedom) * sqrt(2 / repetitions)


def regressions(curves: Iterable[Curve]) -> dict[Family, Curve]:
    """The function of each family that occurs among these curves; its best value is 1."""
    members: dict[Family, list[Curve]] = {}
    for curve in curves:
        members.setdefault(classify(curve), []).append(curve)
    return {family: regression(members[family]) for family in FAMILIES if family in members}


def regression(curves: list[Curve]) -> Curve:
    """One function for these curves, whatever families they are of."""
    resources = [p.resources for c in curves for p in c.points]
    values = [p.median / max(q.median for q in c.points) for c in curves for p in c.points]
    different = sorted(set(resources))
    fits = [_fit(resources, values, degree) for degree in range(max(1, min(DEGREE, len(different) - 2) + 1))]
    _, coefficients = min(fits, key=lambda fit: fit[0])
    at = np.polynomial.polynomial.polyval(np.array(different, float), coefficients)
    at = np.maximum(at / max(at.max(), FLOOR), FLOOR)
    points = tuple(Point(n, (float(v),)) for n, v in zip(different, at, strict=True))
    return Curve(points)


def _fit(resources: list[int], values: list[float], degree: int) -> tuple[float, list[float]]:
    """Bayesian information criterion and coefficients of the polynomial of that degree."""
    fitted = np.polynomial.Polynomial.fit(resources, values, degree, domain=[0, max(resources)])
    rest = float(np.square(fitted(np.array(resources, float)) - values).sum())
    criterion = len(values) * log(rest / len(values) + EXACT) + (degree + 1) * log(len(values))
    return criterion, fitted.convert().coef.tolist()


def profile_level(application: Application, families: Mapping[Family, Curve]) -> Application:
    """The application as one knows it who knows its family only (paper A, section 6.2).

    Its curve is its family's, so high that the highest bandwidth is the right one: the figures have every curve divided
    by its best value, and what an application reached at best is known from its runs. Volume, compute time, phases and
    nodes stay. (The paper does not say how high it puts a family's function.) An application of a family that is not in
    `families` stays as it is.
    """
    family = classify(application.curve)
    if family not in families:
        return application
    best = max(p.median for p in application.curve.points)
    points = tuple(Point(p.resources, (p.median * best,)) for p in families[family].points)
    return msgspec.structs.replace(application, curve=Curve(points))
