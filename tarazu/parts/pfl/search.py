"""The cheapest progressive layout on a grid of component ends and stripe counts, by dynamic programming: exact there.

A layout's cost is a sum over its components, so the cheapest one up to an end is the cheapest component that ends there
behind the cheapest layout up to its start. Stripe counts do not fall from one component to the next: where no file
is seen, a later component has no fewer stripes than what comes before it (paper, section 8.6; Lustre's manual).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tarazu import lustre
from tarazu.layout.rules import check
from tarazu.model import Component, Layout
from tarazu.parts.pfl.cost import Striped, Target, parts_of_each, per_second, plain_counts, stripe_size
from tarazu.parts.pfl.sizes import Array, Classes, rounded_up
from tarazu.units import GIB, KIB, MIB

MOST_COMPONENTS = 4
"""Of a layout, unless more are asked for."""
MOST_FROM_SIZES = 12
"""Ends that are no powers of two: just above sizes of which there are many."""
LARGEST_END_BYTES = 1 << 50
DOM_ENDS = tuple(64 * KIB << n for n in range(5))
"""64 KiB to 1 MiB, the most that an MDS allows by default (`lod.*.dom_stripesize`)."""
EXTENSIONS = (GIB, 16 * GIB)
"""Extension sizes that are tried (SEL)."""
EQUAL = 1e-9
"""Relative: a layout with more components has to be cheaper by more."""

SAME = 0.002
"""A layout with fewer components is taken where it costs no more than that above the cheapest."""


class Grid(NamedTuple):
    """What is searched."""

    ends: tuple[int, ...]
    """Without EOF, ascending: multiples of 64 KiB."""
    counts: tuple[int, ...]
    """Ascending."""
    most_components: int = MOST_COMPONENTS
    dom_ends: tuple[int, ...] = ()
    """Where a first component on the MDT may end."""
    extensions: tuple[int, ...] = ()


def grid(
    of: Classes,
    target: Target,
    most_components: int = MOST_COMPONENTS,
    *,
    extending: bool = False,
    dom_bytes: float = 0.0,
) -> Grid:
    """Powers of two from 64 KiB to the largest file, and sizes of which there are many, rounded up; counts in steps of
    about 1.4 to all OSTs.

    extending: also components that extend themselves (SEL); dom_bytes: of these files that may lie on MDTs (DoM).
    """
    largest = min(int(of.size_bytes.max(initial=1)), LARGEST_END_BYTES)
    ends = {64 * KIB << n for n in range(max(1, (max(largest, 2) - 1).bit_length() - 15))}
    # Half of them by weight, half by number.
    for weight in (of.weight, of.files):
        for at in np.argsort(-weight, kind="stable")[: MOST_FROM_SIZES // 2].tolist():
            size = of.size_bytes[at]
            if 0 < size <= LARGEST_END_BYTES:
                # A sixteenth above the mean of a class holds all of its files.
                unit = max(64 * KIB, 1 << max(0, int(size).bit_length() - 4))
                ends.add(rounded_up(size * (1 + 1 / 16), unit))
    return Grid(
        tuple(sorted(ends)),
        plain_counts(target.osts),
        most_components,
        tuple(
            e for e in DOM_ENDS if dom_bytes and (np.minimum(of.size_bytes, e) * of.files).sum() <= dom_bytes
        ),
        tuple(rounded_up(z, extension_unit(target.stripe_size_bytes)) for z in EXTENSIONS if extending),
    )


def extension_unit(stripe_size_bytes: int) -> int:
    """What sizes of extensions are multiples of: of all stripe sizes that components may have (`cost.stripe_size`), and
    of what `lfs` takes: it counts them in KiB, which it wants aligned as it wants stripe sizes.
    """
    power = 1 << stripe_size_bytes.bit_length() - 1
    return math.lcm(stripe_size_bytes, power, lustre.EXTENSION_UNIT_BYTES)


def kinds(of: Grid, start: int, end: int) -> list[Striped]:
    """How the component [start, end) may lie, with the fewest stripes first."""
    found = [Striped(0)] if start == 0 and end in of.dom_ends else []
    for count in of.counts:
        found.append(Striped(count))
        found += [Striped(count, z) for z in of.extensions if z * 2 <= end - start and z >= MIB]
    return found


def component(target: Target, start: int, end: int, how: Striped) -> Component:
    size = stripe_size(end, target.stripe_size_bytes)
    if how.stripe_count == 0:
        return Component(start, end, min(end, 1 << 30), 0, pattern="mdt")
    return Component(start, end, size, how.stripe_count, extension_bytes=how.extension_bytes)


def layout_of(target: Target, pieces: Sequence[tuple[int, int, Striped]]) -> Layout:
    """The layout of these (start, end, how); a plain one where one component without extension is enough."""
    components = tuple(component(target, *piece) for piece in pieces)
    result = Layout(components, len(components) > 1 or bool(components[0].extension_bytes))
    check(result)
    return result


class Found(NamedTuple):
    """The cheapest layout of at most so many components."""

    components: int
    layout: Layout
    cost: float


def cheapest(of: Classes, target: Target, on: Grid) -> list[Found]:
    """The cheapest layout of one component, of two and so on, as long as one more makes it cheaper. The last is the
    cheapest of all.
    """
    edges = [0, *on.ends, lustre.EOF]
    last = len(edges) - 1
    worth, weights = per_second(of, target), target.weights.array
    levels = [0, *on.counts]
    # cost[i][j]: of the components [edge i, edge j), by the number of stripes: the cheapest kind of each.
    cost = np.full((last + 1, last + 1, len(levels)), np.inf)
    kind: dict[tuple[int, int, int], Striped] = {}
    for i in range(last):
        # The classes are sorted: those that reach beyond edge i come first.
        reach = len(of.files) if i == 0 else int((of.size_bytes > edges[i]).sum())
        some = Classes(*(column[:reach] for column in of))
        weight = worth[:reach]
        for j in range(i + 1, last + 1):
            size = stripe_size(edges[j], target.stripe_size_bytes)
            ways = kinds(on, edges[i], edges[j])
            of_each = weights @ (parts_of_each(some, target, edges[i], edges[j], ways, size) @ weight)
            for how, added in zip(ways, of_each.tolist(), strict=True):
                level = levels.index(how.stripe_count)
                if added < cost[i, j, level]:
                    cost[i, j, level] = added
                    kind[i, j, level] = how
    return _chained(target, edges, cost, kind, on.most_components)


def _chained(
    target: Target,
    edges: Sequence[int],
    cost: Array,
    kind: dict[tuple[int, int, int], Striped],
    most_components: int,
) -> list[Found]:
    last, levels = len(edges) - 1, cost.shape[2]
    best = np.full((last + 1, levels), np.inf)
    best[0, 0] = 0.0
    back: list[dict[tuple[int, int], tuple[int, int]]] = []
    found: list[Found] = []
    for number in range(1, most_components + 1):
        # lowest[i, c]: up to edge i with at most c stripes in the last component.
        lowest = np.minimum.accumulate(best, axis=1)
        reached = np.full_like(best, np.inf)
        came: dict[tuple[int, int], tuple[int, int]] = {}
        for j in range(1, last + 1):
            total = lowest[:j] + cost[:j, j]
            at = total.argmin(axis=0)
            reached[j] = total[at, np.arange(levels)]
            for c in np.flatnonzero(np.isfinite(reached[j])).tolist():
                i = int(at[c])
                came[j, c] = (i, int(best[i, : c + 1].argmin()))
        back.append(came)
        best = reached
        c = int(best[last].argmin())
        cheapest_now = float(best[last, c])
        if found and cheapest_now >= found[-1].cost * (1 - EQUAL):
            continue
        pieces = []
        j = last
        for came in reversed(back):
            i, before = came[j, c]
            pieces.append((edges[i], edges[j], kind[i, j, c]))
            j, c = i, before
        found.append(Found(number, layout_of(target, pieces[::-1]), cheapest_now))
    return found


def fewest_of(found: Sequence[Found]) -> Found:
    """The cheapest layout, or one of fewer components that costs next to nothing more."""
    return next(of for of in found if of.cost <= found[-1].cost * (1 + SAME))
