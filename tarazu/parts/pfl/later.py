"""A layout that widens no earlier than its files say: of layouts that cost about the same, the one whose components end
later, with fewer objects for sizes that were hardly seen.

The cheapest layout of a search follows single runs: one file of 300 MiB among thousands moves the end of a component
from 1 GiB to 64 MiB. An end is moved up where that costs no more than `MOST` and no more than the standard error of the
difference, over folds of what was tuned on: where one run or directory alone speaks for the earlier end. (As the "one
standard error rule" of Breiman et al., Classification and Regression Trees, 1984.)
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.model import Layout
from tarazu.parts.pfl.cost import Target, by_class_of, per_second, stripe_size
from tarazu.parts.pfl.sizes import Array, Classes, Half, alike, larger

MOST = 0.01
"""Of the cost, that all ends together may cost more: as much as a tuned layout has to save (our choice)."""
ROUNDING = 1e-9


def widened_later(layout: Layout, of: Half, by_bytes: float, target: Target, ends: Sequence[int]) -> Layout:
    """ends: where components may end, ascending."""
    groups = _groups(of, by_bytes)
    if len(groups) < 3 or len(layout.components) < 2:
        return layout  # larger ones and one fold: nothing to compare
    worth = [per_second(group, target) for group in groups]

    def costs(of_layout: Layout) -> Array:
        return np.array(
            [
                float(target.weights.array @ (by_class_of(group, target, of_layout) @ each))
                for group, each in zip(groups, worth, strict=True)
            ]
        )

    cheapest = costs(layout)
    number = 0
    while number < len(layout.components) - 1:
        this = layout.components[number]
        for end in reversed([] if this.pattern == "mdt" else ends):
            if end <= this.end_bytes:
                break
            other = ended_at(layout, number, end, target)
            if _can(other) and _no_dearer(costs(other) - cheapest, float(cheapest.sum())):
                layout = other
                break
        number += 1
    return layout


def _can(layout: Layout) -> bool:
    """Whether what extends itself has room for two extensions, as in the search."""
    return all(2 * c.extension_bytes <= c.end_bytes - c.start_bytes for c in layout.components)


def ended_at(layout: Layout, number: int, end: int, target: Target) -> Layout:
    """The layout with a later end of one component; those that it covers are gone."""
    before, this = layout.components[:number], layout.components[number]
    size = stripe_size(end, target.stripe_size_bytes)
    found = [*before, msgspec.structs.replace(this, end_bytes=end, stripe_size_bytes=size)]
    found += [
        msgspec.structs.replace(c, start_bytes=max(end, c.start_bytes))
        for c in layout.components[number + 1 :]
        if c.end_bytes > end
    ]
    return Layout(tuple(found), layout.composite)


def _groups(of: Half, by_bytes: float) -> list[Classes]:
    """What is tuned for, by folds, with their shares of the whole; the last are larger files than any that was seen."""
    whole = of.classes(by_bytes)
    found = []
    for fold in of.folds:
        if not fold.files:
            continue
        some = fold.classes()
        held = some.files * some.size_bytes
        share = by_bytes if of.bytes else 0.0
        weight = (1 - share) * some.files / of.files + share * held / max(1, of.bytes)
        found.append(alike(some._replace(weight=weight)))
    return [*found, larger(whole)]


def _no_dearer(more: Array, cheapest: float) -> bool:
    """more: of each fold, and of larger files."""
    total, folds = float(more.sum()), more[:-1]
    if total > MOST * cheapest:
        return False
    error = float(np.sqrt(len(folds) * np.var(folds, ddof=1)))
    return total <= error * (1 + ROUNDING)
