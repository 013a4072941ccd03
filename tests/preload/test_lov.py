"""The lustre.lov codec: captured blobs say what `lfs getstripe -y` says, and hostile ones do no harm."""

from __future__ import annotations

import re
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu import native
from tarazu.errors import LayoutError
from tarazu.lustre import EOF, LCME_FL_INIT
from tarazu.model import Component, Layout
from tarazu.sim.testbed import lov

CAPTURED = Path(__file__).parent.parent / "data" / "lustre" / "layout"
BLOBS = sorted(CAPTURED.glob("*.lov.bin"))
FILES = [p for p in BLOBS if p.name.endswith(".lustre.lov.bin") and not p.name.startswith("dir")]
MIB = 1 << 20


def test_the_captured_blobs_are_there() -> None:
    assert len(BLOBS) == 30


@pytest.mark.parametrize("path", BLOBS, ids=lambda p: p.name)
def test_decodes_to_what_the_testbeds_codec_says(path: Path) -> None:
    decoded = native.decode_lov(path.read_bytes())
    told = lov.decode(path.read_bytes(), file=not path.name.startswith("dir"))
    assert Layout(tuple(c.component for c in decoded.components), decoded.composite) == told.layout
    assert tuple(c.osts for c in decoded.components) == told.osts


def _sections(text: str) -> list[dict[str, list[str]]]:
    """getstripe -y as fields per component: each `lcme_id`, or the whole of a plain file."""
    parts = re.split(r"(?m)^\s+- lcme_id:", text)
    bodies = [f"lcme_id: {p}" for p in parts[1:]] if len(parts) > 1 else [text]
    found = []
    for body in bodies:
        fields: dict[str, list[str]] = {}
        for name, value in re.findall(r"(?m)^[\s-]*([a-z_.]+):[ \t]*(\S+)", body):
            fields.setdefault(name, []).append(value)
        found.append(fields)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_decodes_to_what_getstripe_says(path: Path) -> None:
    decoded = native.decode_lov(path.read_bytes())
    text = path.with_name(path.name.replace(".lustre.lov.bin", ".getstripe-y.yaml")).read_text()
    sections = _sections(text)
    assert len(sections) == len(decoded.components)
    if decoded.composite:
        assert decoded.mirrors == int(re.search(r"lcm_mirror_count:\s+(\d+)", text)[1])  # type: ignore[index]
    for said, entry in zip(sections, decoded.components, strict=True):
        c = entry.component
        if "lcme_id" in said:
            flags = set(said["lcme_flags"][0].split(","))
            assert ("extension" in flags) == entry.extension
            assert ("init" in flags) == bool(entry.flags & LCME_FL_INIT)
            assert said["lcme_extent.e_start"] == [str(c.start_bytes)]
            assert said["lcme_extent.e_end"] == ["EOF" if c.end_bytes == EOF else str(c.end_bytes)]
        if entry.extension:
            assert said["lmm_extension_size"] == [str(c.extension_bytes)]
        else:
            assert said["lmm_stripe_count"] == [str(c.stripe_count)]
            assert said["lmm_stripe_size"] == [str(c.stripe_size_bytes)]
        assert said["lmm_pattern"] == [{"overstriped": "raid0,overstriped"}.get(c.pattern, c.pattern)]
        assert said.get("lmm_pool", [""]) == [c.pool]
        assert said.get("l_ost_idx", []) == [str(o) for o in entry.osts]


def test_a_sel_entry_folds_into_the_component_it_extends() -> None:
    decoded = native.decode_lov((CAPTURED / "sel_mixed.lustre.lov.bin").read_bytes())
    assert decoded.layout() == Layout(
        (
            Component(0, 64 * MIB, MIB, 1),
            Component(64 * MIB, EOF, MIB, 2, extension_bytes=128 * MIB),
        ),
        composite=True,
    )


def test_what_is_asked_for_decodes_again() -> None:
    layout = Layout(
        (
            Component(0, MIB, MIB, 0, "mdt"),
            Component(MIB, 64 * MIB, MIB, 2, pool="flash"),
            Component(64 * MIB, EOF, 4 * MIB, 4, "overstriped", extension_bytes=128 * MIB),
        ),
        composite=True,
    )
    blob = native.encode_lov(layout, [(), (7, 3), (5,)])
    decoded = native.decode_lov(blob)
    assert decoded.layout() == layout
    assert [c.osts for c in decoded.components] == [(), (7, 3), (), ()]
    assert lov.decode(blob).hints == (None, 7, 5, None)
    # A component that extends begins empty, its extension where it begins.
    assert [(c.component.start_bytes, c.component.end_bytes) for c in decoded.components[2:]] == [
        (64 * MIB, 64 * MIB),
        (64 * MIB, EOF),
    ]


def test_a_plain_list_is_what_lfs_sends() -> None:
    blob = native.encode_lov(Layout((Component(0, EOF, MIB, 3),)), [(3, 1, 5)])
    assert len(blob) == 48 + 3 * 24
    assert struct.unpack_from("<IIQQIHH16s", blob) == (0x0BD50BD0, 1, 0, 0, MIB, 3, 3, bytes(16))
    assert [struct.unpack_from("<I", blob, 48 + 24 * i + 20)[0] for i in range(3)] == [3, 1, 5]


@st.composite
def requests(draw: st.DrawFn) -> tuple[Layout, list[tuple[int, ...]], list[bool]]:
    """A layout, and for each component a list (True), a start hint or nothing."""
    ends = sorted(draw(st.sets(st.integers(1, 1 << 20), max_size=4)))
    bounds = [0, *(end * 65536 for end in ends), EOF]
    components, osts, listed = [], [], []
    for start, end in pairwise(bounds):
        count = draw(st.integers(1, 20))
        pattern, pool = (
            draw(st.sampled_from(["raid0", "overstriped"])),
            draw(st.sampled_from(["", "flash", "p" * 15])),
        )
        components.append(Component(start, end, draw(st.integers(1, 65535)) * 65536, count, pattern, pool))
        listed.append(draw(st.booleans()))
        wanted = count if listed[-1] else draw(st.integers(0, int(count > 1)))
        osts.append(tuple(draw(st.lists(st.integers(0, 2000), min_size=wanted, max_size=wanted))))
    return Layout(tuple(components), len(components) > 1 or draw(st.booleans())), osts, listed


@given(requests())
def test_asks_with_the_bytes_of_the_testbeds_codec(
    asked: tuple[Layout, list[tuple[int, ...]], list[bool]],
) -> None:
    layout, osts, listed = asked
    lists = tuple(of if explicit else () for of, explicit in zip(osts, listed, strict=True))
    hints = tuple(of[0] if of and not explicit else None for of, explicit in zip(osts, listed, strict=True))
    assert native.encode_lov(layout, osts) == lov.encode(layout, lists, hints)


@pytest.mark.parametrize(
    ("layout", "osts"),
    [
        (Layout((Component(0, EOF, MIB, 3),)), [(1, 2)]),
        (Layout((Component(0, EOF, MIB, 3),)), []),
        (Layout((Component(0, EOF, MIB, 2, pool="a" * 16),)), [()]),
        (Layout((Component(0, EOF, MIB, 2, "raid9"),)), [()]),
        (Layout((Component(0, EOF, MIB, 1),)), [(70000,)]),
        (Layout((Component(0, MIB, MIB, 1), Component(MIB, EOF, MIB, 1))), [(1,), (2,)]),
    ],
)
def test_impossible_requests_are_errors(layout: Layout, osts: list[tuple[int, ...]]) -> None:
    with pytest.raises(LayoutError):
        native.encode_lov(layout, osts)


@given(st.binary(max_size=600))
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    _survives(data)


@settings(max_examples=400)
@given(
    st.sampled_from([p.read_bytes() for p in BLOBS]),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=6),
    st.integers(0, 1 << 16),
)
def test_damaged_blobs_are_refused_or_read(blob: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(blob[: cut % (2 * len(blob))])
    for at, value in changes:
        if data:
            data[at % len(data)] = value
    _survives(bytes(data))


def _survives(data: bytes) -> None:
    try:
        decoded = native.decode_lov(data)
    except LayoutError:
        return
    plain = native.without_identity(data)
    assert native.decode_lov(plain) == decoded
    assert native.without_identity(plain) == plain
