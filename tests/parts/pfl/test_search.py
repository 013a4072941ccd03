"""The search finds what trying every layout finds; its layouts are valid; its cost is the allocator's own time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu import lustre
from tarazu.allocate import timing
from tarazu.config import Weights as AllocatorWeights
from tarazu.layout.objects import component_object_bytes
from tarazu.layout.rules import check
from tarazu.layout.setstripe import format_layout, parse_layout
from tarazu.model import Component, CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.parts.pfl.cost import PARTS, Target, Weights, by_class_of, of_layout
from tarazu.parts.pfl.search import EXTENSIONS, Grid, cheapest, fewest_of, grid, kinds, layout_of
from tarazu.parts.pfl.sizes import Classes, Sizes, expected
from tarazu.units import GIB, KIB, MIB, TIB

ONE = st.tuples(
    st.one_of(st.integers(0, 4 * MIB), st.integers(0, 40 * GIB)),
    st.sampled_from((1, 1, 1, 2, 16)),
    st.sampled_from((1, 1, 8, 70)),
    st.integers(1, 1000),
)
WEIGHT = st.sampled_from((0.0, 0.5, 1.0, 2.0, 10.0))
WEIGHTS = st.builds(Weights, WEIGHT, WEIGHT, WEIGHT, WEIGHT, WEIGHT)


def classes(files: list[tuple[int, int, int, int]]) -> Classes:
    sizes = Sizes()
    for size, writers, at_once, count in files:
        sizes.add(size, writers, at_once, count)
    return sizes.classes()


def every(target: Target, on: Grid) -> list[Layout]:
    """All layouts of a grid whose stripe counts do not fall."""
    found = []
    for number in range(on.most_components):
        for ends in itertools.combinations(on.ends, number):
            edges = [0, *ends, lustre.EOF]
            options = [kinds(on, a, b) for a, b in itertools.pairwise(edges)]
            for chosen in itertools.product(*options):
                counts = [how.stripe_count for how in chosen]
                if counts == sorted(counts):
                    found.append(layout_of(target, list(zip(edges, edges[1:], chosen))))
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(ONE, min_size=1, max_size=8),
    st.sets(st.sampled_from([64 * KIB << n for n in range(18)]), min_size=1, max_size=3),
    st.sets(st.sampled_from([1, 2, 3, 8, 16, 35]), min_size=1, max_size=3),
    st.integers(1, 4),
    st.booleans(),
    WEIGHTS,
)
def test_the_cheapest_is_that_of_all_layouts_of_the_grid(
    files: list[tuple[int, int, int, int]],
    ends: set[int],
    counts: set[int],
    components: int,
    special: bool,
    weights: Weights,
) -> None:
    of, target = classes(files), Target(35, weights=weights)
    dom = tuple(sorted(e for e in ends if e <= MIB)) if special else ()
    on = Grid(tuple(sorted(ends)), tuple(sorted(counts)), components, dom, EXTENSIONS if special else ())
    found = cheapest(of, target, on)
    costs = [of_layout(of, target, layout).total for layout in every(target, on)]
    assert found[-1].cost == pytest.approx(min(costs), rel=1e-9, abs=1e-15)
    assert of_layout(of, target, found[-1].layout).total == pytest.approx(min(costs), rel=1e-9, abs=1e-15)
    steps = [f.cost for f in found]
    assert steps == sorted(steps, reverse=True) and len(fewest_of(found).layout.components) <= components


@settings(max_examples=40, deadline=None)
@given(st.lists(ONE, min_size=1, max_size=12), st.integers(1, 3000), st.booleans())
def test_what_is_found_on_the_own_grid_is_accepted_and_reads_back(
    files: list[tuple[int, int, int, int]], osts: int, special: bool
) -> None:
    of, target = classes(files), Target(osts)
    on = grid(of, target, 3, extending=special, dom_bytes=1e30 if special else 0)
    assert all(end % (64 * KIB) == 0 for end in on.ends) and max(on.counts) == min(osts, 2000)
    assert bool(on.dom_ends) == bool(on.extensions) == special
    few = on._replace(ends=on.ends[::4], counts=on.counts[::3])
    for found in cheapest(of, target, few):
        check(found.layout)
        assert parse_layout(format_layout(found.layout))[0] == found.layout


@pytest.mark.parametrize("files", [1, 5, 35, 64])
@pytest.mark.parametrize("counts", [(1,), (8,), (1, 3, 8, 16), (1, 12, 32)])
def test_time_and_balance_are_the_allocators_bound_for_files_that_are_alike(
    files: int, counts: tuple[int, ...]
) -> None:
    """Of files of one writer: the allocator's own time knows no process that keeps at most so many OSTs busy, and its
    bound no loss of an OST by several streams."""
    osts, size, rate = 35, 4 * GIB, 500e6
    ends = ([128 * MIB, 512 * MIB, 2 * GIB] if len(counts) > 2 else [128 * MIB, 2 * GIB])[: len(counts) - 1]
    edges = [0, *ends, lustre.EOF]
    layout = Layout(
        tuple(Component(a, b, MIB, c) for a, b, c in zip(edges, edges[1:], counts)), len(counts) > 1
    )
    target = Target(osts, ost_bytes_per_s=rate)
    seconds = float(by_class_of(classes([(size, 1, files, files)]), target, layout)[1:3].sum())
    view = SystemView(
        "",
        0.0,
        tuple(Ost(i, "oss", TIB, TIB, TIB, peak_bytes_per_s=rate) for i in range(osts)),
        (Oss("oss"),),
    )
    bound = timing.bound_s(view, [CreateRequest(size, layout)] * files, AllocatorWeights())
    waited = 1 - 32 * MIB / size
    assert bound * waited * (1 - 1e-6) <= seconds
    if files * max(counts) <= osts and max(counts) <= 5:
        assert seconds == pytest.approx(bound * waited, rel=1e-3)
    # No more than the loss by streams and what one process may write beyond it.
    assert seconds <= bound * (1 + 0.02 * files * max(counts) / osts) * max(1, max(counts) / 5.6) * 1.15


def test_the_parts_add_up_and_follow_their_weights() -> None:
    of = classes([(10 * KIB, 1, 1, 900), (3 * GIB, 1, 64, 64), (200 * GIB, 512, 1, 2)])
    layout, _ = parse_layout("-E 64K -L mdt -E 1G -c 1 -S 1M -E -1 -c 16 -S 1M -z 1G")
    cost = of_layout(of, Target(35), layout)
    assert cost.total == pytest.approx(sum(cost.parts.values()))
    assert set(cost.parts) == set(PARTS) and min(cost.parts.values()) >= 0
    weighed = of_layout(of, Target(35, weights=Weights(2.0, 3.0, 0.0, 5.0, 0.5)), layout)
    factors = dict(zip(PARTS, (2.0, 3.0, 0.0, 5.0, 0.5)))
    assert weighed.total == pytest.approx(sum(weighed.parts[p] * f for p, f in factors.items()))


def test_objects_are_those_of_all_components_that_a_file_reaches() -> None:
    layout, _ = parse_layout("-E 128M -c 1 -S 1M -E 512M -c 3 -S 1M -E 2G -c 8 -S 1M -E -1 -c 16 -S 1M")
    for size, objects in ((0, 1), (128 * MIB, 1), (128 * MIB + 1, 4), (GIB, 12), (3 * GIB, 28)):
        assert of_layout(classes([(size, 1, 1, 1)]), Target(35), layout).objects == objects
        assert of_layout(classes([(size, 1, 1, 1)]), Target(8), layout).objects <= objects


@given(st.integers(1, 3 * GIB), st.integers(1, 40))
def test_the_largest_object_is_lustres(size: int, count: int) -> None:
    """By the part of room, which is a sum of squares for files of one object each."""
    component = Component(0, lustre.EOF, MIB, count)
    largest = max(component_object_bytes(component, size))
    width = MIB * count
    assert largest == size // width * MIB + min(size % width, MIB)


def test_what_is_expected_has_the_files_that_were_seen_and_keeps_the_order() -> None:
    seen = classes([(GIB, 1, 48, 96), (8 * GIB, 64, 1, 1), (MIB, 1, 1, 100), (0, 1, 1, 3)])
    more = expected(seen)
    assert (np.diff(more.size_bytes) <= 0).all()
    assert more.files.sum() == 200 and more.weight.sum() == pytest.approx(1) == seen.weight.sum()
    assert more.size_bytes.max() == 512 * GIB and more.at_once.max() > 150 and more.at_once.min() == 1
