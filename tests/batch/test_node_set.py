"""Host lists as batch systems fold them; ClusterShell says the same of those that it knows."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.batch.node_set import fold, unfold
from tarazu.errors import BadInput


def test_as_slurm_unfolds_them() -> None:
    """`scontrol show hostnames`, Slurm 22.05."""
    assert unfold("n[1-2,004-006],gpu[1-2]-ib[0-1]") == (
        *("n1", "n2", "n004", "n005", "n006"),
        *("gpu1-ib0", "gpu1-ib1", "gpu2-ib0", "gpu2-ib1"),
    )
    assert unfold("a.b, c\n c") == ("a.b", "c")
    assert unfold("n[098-102]") == ("n098", "n099", "n100", "n101", "n102")


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9999), unique=True, min_size=1), st.integers(1, 5))
def test_every_number_comes_out(numbers: list[int], width: int) -> None:
    text = ",".join(f"{n:0{width}}" for n in sorted(numbers))
    assert unfold(f"x[{text}]-y") == tuple(f"x{n:0{width}}-y" for n in sorted(numbers))


@given(st.text("n[]-,0129 ", max_size=12))
def test_any_text_is_hosts_or_an_error(text: str) -> None:
    try:
        found = unfold(text)
    except BadInput:
        return
    assert all(host and not set(host) & set("[], ") for host in found)


@pytest.mark.parametrize(
    "text", ["n[1-", "n[3-1]", "n[]", "n[a]", "n[1-999999]", "n[1-9]n[1-9]" * 9, "]n", "n[[1]]"]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(BadInput):
        unfold(text)


def test_a_slip_of_the_pen_is_refused_before_it_fills_the_memory() -> None:
    for text in ("n[0-999999999]", "n[0-99999]-[0-99999]", ",".join(f"n{i}-[0-9999]" for i in range(11))):
        with pytest.raises(BadInput, match="at most 100000"):
            unfold(text)


NAMES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["a", "ab", "a1b"]),
    st.sampled_from(["", "0", "00"]),
    st.integers(0, 120),
)


@settings(max_examples=60)
@given(st.sets(NAMES | st.sampled_from(["a", "x0y", "x1y"]), max_size=20))
def test_what_is_folded_unfolds_to_the_same(names: set[str]) -> None:
    folded = fold(sorted(names))
    assert sorted(unfold(folded)) == sorted(names)
    theirs = NodeSet.fromlist(sorted(names), resolver=RESOLVER_NOGROUP)
    theirs.fold_axis = (-1,)
    assert {*NodeSet(folded, resolver=RESOLVER_NOGROUP)} == names and len(folded) == len(str(theirs))


@settings(max_examples=60)
@given(st.text("n[]-,0129", max_size=12))
def test_what_both_can_read_they_read_alike(text: str) -> None:
    try:
        ours, theirs = unfold(text), NodeSet(text, resolver=RESOLVER_NOGROUP)
    except (BadInput, NodeSetParseError):
        return
    assert {*ours} == {*theirs} and len(ours) == len(theirs)


def test_folded_as_slurm_does() -> None:
    assert fold(f"n{i}" for i in (1, 2, 9, 10, 12)) == "n[1-2,9-10,12]"
    assert fold(["n09", "n10", "n11", "login", "n9"]) == "n[9,09-11],login"
    assert fold(f"n{i:03}" for i in range(1, 129)) == "n[001-128]"
