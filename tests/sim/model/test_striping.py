"""Which bytes of an operation lie in which object, beside an oracle that looks at each of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import LayoutError
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim.model import striping
from tarazu.units import GIB, MIB

K = 64
"""Small stripes: the arithmetic is the same."""


@st.composite
def small_layouts(draw: st.DrawFn) -> Layout:
    ends = sorted(draw(st.sets(st.integers(1, 400), max_size=3)))
    starts = [0, *ends]
    components = [
        Component(start, end, draw(st.integers(1, 40)), draw(st.integers(1, 5)))
        for start, end in zip(starts, [*ends, EOF])
    ]
    if draw(st.booleans()):
        components[0] = Component(0, components[0].end_bytes, 1, 0, pattern="mdt")
    return Layout(tuple(components), composite=len(components) > 1)


def by_byte(layout: Layout, offset: int, size: int) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for byte in range(offset, offset + size):
        number = next(n for n, c in enumerate(layout.components) if c.start_bytes <= byte < c.end_bytes)
        component = layout.components[number]
        if component.stripe_count:
            place = (number, byte // component.stripe_size_bytes % component.stripe_count)
            found[place] = found.get(place, 0) + 1
    return found


def as_dict(pieces: tuple[striping.Piece, ...]) -> dict[tuple[int, int], int]:
    for piece in pieces:
        assert piece.bytes == piece.object_bytes.sum()
    return {
        (piece.component, int(obj)): int(size)
        for piece in pieces
        for obj, size in zip(piece.objects, piece.object_bytes)
    }


@given(small_layouts(), st.integers(0, 500), st.integers(0, 500))
def test_every_byte_lies_in_the_object_that_lustre_puts_it_in(layout: Layout, offset: int, size: int) -> None:
    assert as_dict(striping.pieces(layout, offset, size, size)) == by_byte(layout, offset, size)


@given(small_layouts(), st.integers(0, 500), st.integers(1, 500), st.integers(1, 2000))
def test_bytes_spread_over_a_span_lie_in_objects_by_their_share(
    layout: Layout, offset: int, span: int, size: int
) -> None:
    found = as_dict(striping.pieces(layout, offset, size, span))
    shares = by_byte(layout, offset, span)
    assert found.keys() <= shares.keys()
    for place, share in shares.items():
        assert abs(found.get(place, 0) - size * share / span) <= 1
    if layout.components[0].stripe_count:
        assert sum(found.values()) == size


def test_rules_by_name_are_those_of_the_scenarios() -> None:
    for name, table in (("plain", striping.PLAIN), ("pfl-1", striping.PFL_1), ("pfl-2", striping.PFL_2)):
        for size in (1, 100 * MIB, 2 * GIB, 14 * GIB):
            (ours,) = striping.layouts(striping.rule(name), [striping.Expected(size)], 35)
            expected = striping.layout(table, size)
            assert [(c.start_bytes, c.end_bytes, c.stripe_count) for c in ours] == [
                (c.start_bytes, c.end_bytes, c.stripe_count) for c in expected
            ]


def test_contiguous_is_one_piece_per_object() -> None:
    (layout,) = striping.layouts(striping.rule("contiguous"), [striping.Expected(GIB)], 35)
    assert [list(p.object_bytes) for p in striping.pieces(layout, 0, GIB, GIB)] == [[GIB // 8] * 8]


def test_rules_as_text() -> None:
    size = [striping.Expected(GIB)]
    (setstripe,) = striping.layouts(striping.rule("-c -1 -S 4M"), size, 6)
    assert setstripe == Layout((Component(0, EOF, 4 * MIB, 6),))
    (pfl,) = striping.layouts(striping.rule("0-64M:1, 64M-EOF:4"), size, 3)
    assert [(c.start_bytes, c.stripe_count) for c in pfl] == [(0, 1), (64 * MIB, 3)]
    (shared,) = striping.layouts(striping.rule("auto"), [striping.Expected(8 * GIB, writers=8)], 35)
    assert shared.components[0].stripe_count == 35


@pytest.mark.parametrize(
    ("text", "expected"),
    [("pfl-3", "expected one of plain, pfl-1"), ("-c", "each with its value"), ("-c 2 -o 1,2", "no OSTs")],
)
def test_rules_that_are_none_are_refused(text: str, expected: str) -> None:
    with pytest.raises(LayoutError, match=expected):
        striping.rule(text)
