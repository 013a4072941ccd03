"""Layouts print as `lfs setstripe` options and read back; OST lists fold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import LayoutError
from tarazu.layout.setstripe import format_layout, parse_layout, unfold
from tarazu.lustre import EOF
from tarazu.model import Component, Layout

K64 = 65536
MIB = 1 << 20


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    ends = sorted(draw(st.sets(st.integers(1, 1 << 20), max_size=4)))
    composite = draw(st.booleans()) or len(ends) > 0
    components = []
    start = 0
    for end in [*(e * K64 for e in ends), EOF]:
        components.append(
            Component(
                start,
                end,
                draw(st.integers(1, 1000)) * K64,
                draw(st.integers(1, 2000)),
                pattern=draw(st.sampled_from(["raid0", "overstriped"])),
                pool=draw(st.sampled_from(["", "flash", "p1"])),
                extension_bytes=draw(st.sampled_from([0, 64 * MIB])),
            )
        )
        start = end
    return Layout(tuple(components), composite)


@given(layouts())
def test_text_round_trip(layout: Layout) -> None:
    assert parse_layout(format_layout(layout))[0] == layout


def test_the_options_are_those_of_lfs() -> None:
    layout = Layout((Component(0, 128 * MIB, MIB, 1), Component(128 * MIB, EOF, 4 * MIB, 4)), composite=True)
    text = format_layout(layout, [(3,), (9, 8, 1, 2)])
    assert text == "-E 128M -c 1 -S 1M -o 3 -E -1 -c 4 -S 4M -o 9,8,1,2"
    assert parse_layout(text) == (layout, ((3,), (9, 8, 1, 2)))
    assert format_layout(layout, [(3,), (7,)]).endswith("-i 7")


def test_dom_first_component_round_trips() -> None:
    layout = Layout((Component(0, MIB, MIB, 0, pattern="mdt"), Component(MIB, EOF, MIB, 2)), composite=True)
    assert parse_layout(format_layout(layout))[0] == layout


def test_ost_lists_keep_their_order_and_are_bounded() -> None:
    assert unfold("7,0-3") == (7, 0, 1, 2, 3)
    for text in ("", "a-b", "3-1", "0-70000", "0-99999999999", "0-3,"):
        with pytest.raises(LayoutError, match="indices such as 0-3,7"):
            unfold(text)


@pytest.mark.parametrize("text", ["-Q 1", "-c", "-S 1X -c 1", "-c 1 -o a-b"])
def test_bad_text_is_one_line(text: str) -> None:
    with pytest.raises(LayoutError) as error:
        parse_layout(text)
    assert "\n" not in str(error.value) and "expected" in str(error.value)
