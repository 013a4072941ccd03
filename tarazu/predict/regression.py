"""Sizes and counts that a number known before the run explains: an argument, ranks, nodes, the task of a job array."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tarazu.model import JobStep

TOLERANCE = 1e-3
"""Largest residual, as a share of the largest value, of an explanation."""
FURTHEST = 64.0
"""A regression is not trusted beyond this multiple of the largest value in history."""

_OTHERS = ("ranks", "nodes", "array index")


class Explanation(msgspec.Struct, frozen=True):
    value: float
    """For the step to come."""
    regressor: str
    detail: str


def regressors(step: JobStep, in_array: bool = False) -> tuple[float, ...]:
    """The numbers of a step: its arguments, then ranks and nodes, last the index of a task of a job array."""
    numbers = (*step.numbers, float(step.ranks), float(step.nodes))
    return (*numbers, float(step.array_index or 0)) if in_array else numbers


def explain(steps: Sequence[JobStep], series: Sequence[float], step: JobStep) -> Explanation | None:
    """An affine function of one regressor that gives every value of the series, and its value for `step`.

    Three runs at least; two are enough when only one regressor changed between them. None when nothing
    explains the series, when it does not change, or when the command line has another shape than before.
    """
    if len(series) < 2 or min(series) == max(series):
        return None
    if any(len(s.numbers) != len(step.numbers) for s in steps):
        return None
    # Every task of an array has another index: with two of them it would explain anything.
    in_array = len(series) > 2 and all(s.array_index is not None for s in (*steps, step))
    rows = [regressors(s, in_array) for s in steps]
    target = regressors(step, in_array)
    changing = [j for j in range(len(target)) if len({row[j] for row in rows}) > 1]
    if len(series) == 2 and len(changing) != 1:
        return None
    arguments = len(step.numbers)
    for j in changing:
        fitted = _affine([row[j] for row in rows], series)
        if fitted is None:
            continue
        intercept, slope = fitted
        value = intercept + slope * target[j]
        if not 0 < value <= FURTHEST * max(series):
            continue
        name = f"argument {j + 1}" if j < arguments else _OTHERS[j - arguments]
        return Explanation(value, name, f"{intercept:.6g} + {slope:.6g} × {name} ({target[j]:g})")
    return None


def identity(
    steps: Sequence[JobStep], series: Sequence[float], step: JobStep, least: float
) -> Explanation | None:
    """An argument that is the value itself in every run (steps, a block size) and differs now.

    Values below `least` are too likely to be equal by chance.
    """
    if not series or min(series) < least:
        return None
    for j, value in enumerate(step.numbers):
        given = [s.numbers[j] if len(s.numbers) == len(step.numbers) else None for s in steps]
        if given == list(series) and 0 < value <= FURTHEST * max(series) and value != series[-1]:
            return Explanation(value, f"argument {j + 1}", f"equals argument {j + 1} ({value:g})")
    return None


def _affine(x: Sequence[float], y: Sequence[float]) -> tuple[float, float] | None:
    """(intercept, slope) by least squares when every residual is within TOLERANCE."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((v - mean_x) ** 2 for v in x)
    if spread == 0:
        return None
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    intercept = mean_y - slope * mean_x
    limit = TOLERANCE * max(map(abs, y))
    if any(abs(intercept + slope * a - b) > limit for a, b in zip(x, y, strict=True)):
        return None
    return intercept, slope


def unseen(steps: Sequence[JobStep], step: JobStep) -> list[str]:
    """Arguments that the step changes and history never did: nothing is known of their effect."""
    rows = [s.numbers for s in steps]
    if any(len(row) != len(step.numbers) for row in rows):
        return ["the command line has another number of numeric arguments than before"] if rows else []
    texts = []
    for j, value in enumerate(step.numbers):
        before = {row[j] for row in rows}
        if len(before) == 1 and value not in before:
            texts.append(f"argument {j + 1} is {value:g}, in all runs before it was {before.pop():g}")
    return texts
