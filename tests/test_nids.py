"""NIDs, and patterns of them: folded, unfolded, and as Lustre prints them back."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu import nids
from tarazu.errors import BadInput
from tarazu.nids import Nid, fold, parse, pattern, patterns, text, unfold

OCTET = st.integers(0, 255)
NEAR = st.builds(lambda a, b: (10, 77, a, b), st.integers(0, 3), st.integers(0, 30))
"""Addresses of which many are neighbours, as in a cluster."""
IPV4 = st.builds(
    Nid, st.one_of(NEAR, st.tuples(OCTET, OCTET, OCTET, OCTET)), st.sampled_from(["tcp", "o2ib1"])
)
NUMBERED = st.builds(
    Nid,
    st.tuples(st.one_of(st.integers(0, 40), st.integers(0, nids.MAX_NUMBER))),
    st.sampled_from(["kfi", "gni2"]),
)


def as_lustre_shows(shown: nids.NidPattern) -> str:
    """What `cfs_expr2str` makes of it, as it is in 2.15-2.17: brackets open with the first item if it is a range, and
    close what was opened.
    """
    address, _, net = str(shown).rpartition("@")
    out = ""
    for part in address.split("."):
        bracket = False
        for number, item in enumerate(part.strip("[]").split(",")):
            if "-" in item:
                out += ("[" if number == 0 else "") + item + ","
                bracket = True
            else:
                out += item + "."
        if bracket:
            out = out[:-1] + "]."
    return f"{out[:-1]}@{net}"


@settings(max_examples=25, deadline=None)
@given(st.sets(st.one_of(IPV4, NUMBERED), max_size=60))
def test_folded_and_unfolded_they_are_the_same(found: set[Nid]) -> None:
    folded = fold(found)
    assert sum(each.size for each in folded) == len(found), "each once"
    assert set(unfold(text(folded))) == found
    assert patterns(text(folded)) == folded
    for each in folded:
        assert len(str(each)) <= nids.MAX_CHARACTERS
        assert as_lustre_shows(each) == str(each)


@pytest.mark.parametrize(
    ("found", "folded"),
    [
        ([f"10.77.0.{n}@tcp1" for n in range(31, 41)], "10.77.0.[31-40]@tcp1"),
        (["10.77.0.5@tcp0"], "10.77.0.5@tcp"),
        ([f"10.77.0.{n}@o2ib" for n in (1, 3, 5, 7, 20, 21, 90)], "10.77.0.[20-21,1-7/2,90]@o2ib"),
        ([f"10.77.{a}.{b}@tcp" for a in (0, 1) for b in range(256)], "10.77.[0-1].[0-255]@tcp"),
        (["7@kfi", "8@kfi", "9@kfi", "5@gni1"], "5@gni1, [7-9]@kfi"),
        (["10.0.0.1@tcp", "10.0.0.1@tcp1"], "10.0.0.1@tcp, 10.0.0.1@tcp1"),
    ],
)
def test_few_patterns(found: list[str], folded: str) -> None:
    assert text(fold(map(parse, found))) == folded


def test_a_cluster_is_folded_at_once() -> None:
    begin = time.process_time()
    found = unfold("10.[1-2].[0-31].[1-100]@tcp1")
    assert text(fold(found)) == "10.[1-2].[0-31].[1-100]@tcp1"
    assert len(found) == 6_400 and time.process_time() - begin < 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "10.77.0.31",
        "@tcp",
        "10.77.0@tcp",
        "10.77.0.256@tcp",
        "10.77.0.[9-1]@tcp",
        "10.77.0.[1-9/0]@tcp",
        "10.77.0.1-9@tcp",
        "10.77.0.[1,]@tcp",
        "10.77.0.1@tcp65536",
        "10.77.0.1@tcp[1-2]",
        "10.77.0.1@ib0",
        "fe80::1@tcp",
        "1@lo",
        "4294967296@kfi",
        "[0-4294967295]@kfi",
        "10.77.0.١@tcp",
    ],
)
def test_what_is_no_pattern(wrong: str) -> None:
    with pytest.raises(BadInput):
        pattern(wrong)


def test_too_many_are_refused_before_they_are_made() -> None:
    assert pattern("*.*.*.*@tcp").size == 2**32
    with pytest.raises(BadInput, match="at most 1000000 NIDs"):
        unfold("*.*.*.*@tcp")
    with pytest.raises(BadInput, match="at most 9 "):
        unfold("10.77.0.1@tcp, [0-65535]@gni", 10)
    assert len(unfold("[0-4,3-7]@gni, 1@gni, 8@gni", 12)) == 9


@settings(max_examples=25, deadline=None)
@given(st.text("0123456789[]-/,.@tcp *", max_size=60))
def test_any_text_is_read_or_refused(any_text: str) -> None:
    try:
        found = patterns(any_text)
    except BadInput:
        return
    assert patterns(", ".join(map(str, found))) == found


@pytest.mark.parametrize(
    "hostile",
    ["," * 65_536, "[" * 65_536, "[," * 30_000, "1.2.3.4@tcp" * 6_000, f"[{'0-32700,' * 8_000}1]@gni"],
    ids=["commas", "brackets", "both", "at", "the same numbers again and again"],
)
def test_a_hostile_text_takes_no_time(hostile: str) -> None:
    begin = time.process_time()
    with contextlib.suppress(BadInput):
        patterns(hostile)
    assert time.process_time() - begin < 1.0
