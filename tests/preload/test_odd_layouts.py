"""Layouts that are not ours to make, copy or complete: EC, compression, mirrors, released, foreign, of a later Lustre.

The library's reader in C says so, and every part in Python that reads a layout leaves such files and directories alone.
"""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

import pytest

from tarazu import native
from tarazu.cli.explain import actual_layout
from tarazu.errors import LayoutError
from tarazu.layout.manager import LayoutPolicy, UsableOsts
from tarazu.left import (
    COMPRESSED,
    ERASURE_CODED,
    MIRRORED,
    OWN_DEFAULT,
    OWN_LAYOUT,
    REASONS,
    UNKNOWN_KIND,
    of_text,
)
from tarazu.lustre import EOF, LCME_FL_INIT, directory_default
from tarazu.model import Component, FileName, Forecast, Layout
from tarazu.plan.configure import configure
from tarazu.plan.left_to_lustre import default_layout
from tarazu.report.replay import decoded
from tarazu.store.placed import ost_bytes
from tarazu.trace.records import FileRecord
from tarazu.units import MIB
from tarazu.wire.local import DirectoryLayouts
from tests import odd_layouts
from tests.odd_layouts import ODD, REFUSED

WHY = {
    odd_layouts.EC: ERASURE_CODED,
    odd_layouts.COMPRESSED: COMPRESSED,
    odd_layouts.MIRRORED: MIRRORED,
    odd_layouts.RELEASED: UNKNOWN_KIND,
    odd_layouts.UNKNOWN: UNKNOWN_KIND,
}
ALL = {name: blob for name, (blob, _) in ODD.items()} | REFUSED


@pytest.mark.parametrize("name", ODD)
def test_the_reader_says_what_is_odd(name: str) -> None:
    blob, kind = ODD[name]
    assert native.decode_lov(blob).odd == (kind,)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_layout_is_refused(name: str) -> None:
    with pytest.raises(LayoutError, match="expected a plain or composite layout"):
        native.decode_lov(REFUSED[name])


@pytest.mark.parametrize("path", sorted(odd_layouts.CAPTURED.glob("*.lov.bin")), ids=lambda p: p.name)
def test_of_the_captured_ones_only_mirrors_are_odd(path: Path) -> None:
    mirrored = path.name.startswith("flr")
    assert native.decode_lov(path.read_bytes()).odd == ((odd_layouts.MIRRORED,) if mirrored else ())


def test_what_the_mds_left_in_an_entry_says_nothing() -> None:
    """lod_generate_lovea up to 2.17.0 clears the head alone, in a buffer that its thread has used before."""
    usual, stale = (
        native.decode_lov(b) for b in (odd_layouts.captured("pfl4_explicit"), odd_layouts.stale())
    )
    assert stale == usual and stale.odd == ()


def test_what_is_asked_for_is_never_odd() -> None:
    parts = (
        Component(0, MIB, MIB, 0, "mdt"),
        Component(MIB, 64 * MIB, MIB, 2, "overstriped", pool="flash"),
        Component(64 * MIB, EOF, 4 * MIB, 4, extension_bytes=128 * MIB),
    )
    assert native.decode_lov(native.encode_lov(Layout(parts, composite=True), [(), (7, 3), (5,)])).odd == ()


@pytest.mark.parametrize("name", ALL)
def test_such_a_default_is_no_template(name: str) -> None:
    """Neither the root's nor a directory's own, whatever `layout.foreign_defaults` says."""
    blob = ALL[name]
    why = WHY[ODD[name][1]] if name in ODD else UNKNOWN_KIND
    assert default_layout(blob) == why
    assert of_text(why) == OWN_LAYOUT and OWN_LAYOUT in REASONS
    usual = native.encode_lov(Layout((Component(0, EOF, 4 * MIB, 1),)), [()])
    forecast = Forecast(FileName("/d/x", "/d/x", "/d/x", False, 0, 0, 0), 1 << 30)
    for answer in (DirectoryLayouts(usual, {"/d": blob}), DirectoryLayouts(blob, {"/d": blob})):
        for foreign in (True, False):
            made = configure(
                [forecast], UsableOsts(35), lambda _, a=answer: a, LayoutPolicy(), foreign_defaults=foreign
            )
            (file,) = made.files
            assert file.layout is None
            assert file.left_because == why or (file.left_because == OWN_DEFAULT and not foreign)


@pytest.mark.parametrize("name", ALL)
def test_such_a_layout_counts_for_no_ost(name: str) -> None:
    assert decoded(ALL[name]) is None
    record = FileRecord("/f", "/f", "/f", 0, (0,), 0, 0, 0.0, 1 << 20, layout=ALL[name])
    assert ost_bytes([record]) == ({}, 0)


@pytest.mark.parametrize("name", ALL)
def test_explain_does_not_tell_it_in_options(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getxattr", lambda *_: ALL[name])
    told = actual_layout("/x")
    assert told["setstripe"] == "" and told["problem"]
    if name in ODD:
        assert ODD[name][1] in told["problem"]


def test_a_foreign_default_is_seen_by_the_ioctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def answer(_: int, __: int, buffer: bytearray) -> int:
        buffer[: len(REFUSED["foreign"])] = REFUSED["foreign"]
        return 0

    monkeypatch.setattr(fcntl, "ioctl", answer)
    assert default_layout(directory_default(tmp_path)) == UNKNOWN_KIND


def late(bits: int) -> bytes:
    """The layout of the fuzzer's two components, the second without objects: with these flags of the second."""
    parts = (Component(0, MIB, 65536, 1), Component(MIB, EOF, 65536, 2))
    blob = bytearray(native.encode_lov(Layout(parts, composite=True), [(0,), (1, 2)]))
    struct.pack_into("<I", blob, 32 + 4, LCME_FL_INIT)
    struct.pack_into("<I", blob, 32 + 48 + 4, bits)
    return bytes(blob)


def test_the_fuzzers_corpus_has_them() -> None:
    """So that the comparison with a plan is tried on them: none is taken for ours (`fuzz_lov.c`)."""
    corpus = Path(__file__).parents[1] / "fuzz" / "corpus" / "lov"
    for blob in (*(late(1 << bit) for bit in (0, 7, 8, 10, 11)), odd_layouts.erasure_coded()):
        path = corpus / hashlib.sha256(blob).hexdigest()[:12]
        assert path.exists() and path.read_bytes() == blob
