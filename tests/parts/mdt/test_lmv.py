"""Defaults of new subdirectories: words of `lfs setdirstripe`, and bytes as an MDS keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import LayoutError
from tarazu.parts.mdt import lmv
from tarazu.parts.mdt.lmv import ANY_MDT, HASHES, UNLIMITED, DefaultLmv

ROOT = bytes.fromhex("d00cd30c01000000ffffffff000000000000000000030000" + "00" * 24)
"""`trusted.dmv` of the root of a 2.17 (`getfattr -d -m -`)."""

defaults = st.builds(
    DefaultLmv,
    st.integers(0, lmv.LARGEST_INDEX),
    st.sampled_from([0, 1]),
    st.just("none"),
    st.integers(UNLIMITED, lmv.LARGEST),
    st.just(0),
) | st.builds(
    DefaultLmv,
    st.just(ANY_MDT),
    st.integers(2, lmv.LARGEST_COUNT),
    st.sampled_from(HASHES),
    st.integers(UNLIMITED, lmv.LARGEST),
    st.integers(UNLIMITED, lmv.LARGEST),
)


def test_the_root_s_default_of_2_17() -> None:
    root = lmv.of_blob(ROOT)
    assert root == DefaultLmv(max_inherit_rr=3)
    assert lmv.words_of(ROOT) == "-c 1 -i -1 --max-inherit-rr 3"
    assert lmv.to_blob(root) == ROOT
    # As `lfs getdirstripe -D` shows it of a directory two levels below (data captured there).
    assert root.at_depth(2) == DefaultLmv(max_inherit_rr=1)


@given(defaults)
def test_words_and_bytes_come_back(default: DefaultLmv) -> None:
    assert lmv.parsed(str(default)) == default
    assert lmv.of_blob(lmv.to_blob(default)) == default
    assert lmv.words_of(lmv.to_blob(default)) == str(default)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(blob: bytes) -> None:
    words = lmv.words_of(blob)
    assert words in ("", lmv.UNKNOWN) or lmv.parsed(words)


@pytest.mark.parametrize(
    "change", [{0: 1}, {4: 0xFF, 7: 0xFF}, {12: 9}, {15: 2}, {16: 1}, {20: 251}, {21: 252}, {24: 1}, {32: 65}]
)
def test_what_lfs_could_not_make_again_is_of_another_form(change: dict[int, int]) -> None:
    blob = bytearray(ROOT)
    for at, value in change.items():
        blob[at] = value
    assert lmv.words_of(bytes(blob)) == lmv.UNKNOWN
    assert lmv.words_of(bytes(blob) + b"\0" * 40) == lmv.UNKNOWN


@pytest.mark.parametrize("length", [1, 47, 4097])
def test_bytes_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(LayoutError, match="bytes"):
        lmv.of_blob(b"\0" * length)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "-c 1",
        "-i",
        "-i x",
        "-i -2",
        "-i 1 -i 2",
        "-i 1 -H sha",
        "-i 1 -X 251",
        "-i 1 --max-inherit-rr 2",
        "-o 7",
    ],
)
def test_other_words_are_refused(words: str) -> None:
    with pytest.raises(LayoutError, match="setdirstripe"):
        lmv.parsed(words)


def test_what_a_subdirectory_gets() -> None:
    assert lmv.parsed("-i 1").below == lmv.parsed("-i 1")
    assert lmv.parsed("-i 1 -X 1").below is None and lmv.parsed("-i 1 -X 0").below is None
    assert lmv.parsed("-i -1 -X 3 --max-inherit-rr 1").below == lmv.parsed("-i -1 -X 2")


def test_one_stripe_has_no_hash() -> None:
    """Servers before 2.14 are given one."""
    assert lmv.is_same("-i 1 -H fnv_1a_64", "-c 1 -i 1")
    assert not lmv.is_same("-i 1", "-i 0") and not lmv.is_same("-i 1", "") and lmv.is_same("", "")
