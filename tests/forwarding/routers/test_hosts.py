"""Host lists as batch systems fold them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.forwarding.routers import hosts


def test_as_slurm_unfolds_them() -> None:
    """`scontrol show hostnames`, Slurm 22.05."""
    assert hosts.unfold("n[1-2,004-006],gpu[1-2]-ib[0-1]") == (
        *("n1", "n2", "n004", "n005", "n006"),
        *("gpu1-ib0", "gpu1-ib1", "gpu2-ib0", "gpu2-ib1"),
    )
    assert hosts.unfold("a.b, c\n c") == ("a.b", "c")
    assert hosts.unfold("n[098-102]") == ("n098", "n099", "n100", "n101", "n102")


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9999), unique=True, min_size=1), st.integers(1, 5))
def test_every_number_comes_out(numbers: list[int], width: int) -> None:
    text = ",".join(f"{n:0{width}}" for n in sorted(numbers))
    assert hosts.unfold(f"x[{text}]-y") == tuple(f"x{n:0{width}}-y" for n in sorted(numbers))


@given(st.text("n[]-,0129 ", max_size=12))
def test_any_text_is_hosts_or_an_error(text: str) -> None:
    try:
        found = hosts.unfold(text)
    except BadInput:
        return
    assert all(host and not set(host) & set("[], ") for host in found)


@pytest.mark.parametrize(
    "text", ["n[1-", "n[3-1]", "n[]", "n[a]", "n[1-999999]", "n[1-9]n[1-9]" * 9, "]n", "n[[1]]"]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(BadInput):
        hosts.unfold(text)


NAMES = st.builds(
    "{}{}{}".format, st.sampled_from(["a", "ab", "a1b"]), st.sampled_from(["", "0"]), st.integers(0, 30)
)


@settings(max_examples=40)
@given(st.sets(NAMES | st.sampled_from(["a", "x0y", "x1y"]), max_size=20))
def test_what_is_folded_unfolds_to_the_same(names: set[str]) -> None:
    assert sorted(hosts.unfold(hosts.fold(sorted(names)))) == sorted(names)


def test_folded_as_slurm_does() -> None:
    assert hosts.fold(f"n{i}" for i in (1, 2, 9, 10, 12)) == "n[1-2,9-10,12]"
    assert hosts.fold(["n09", "n10", "n11", "login", "n9"]) == "n09,n[9-11],login"
