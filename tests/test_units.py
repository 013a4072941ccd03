"""Byte sizes as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.units import exact_bytes, human_bytes, parse_bytes


@given(st.integers(0, 1 << 62))
def test_exact_round_trip(size: int) -> None:
    assert parse_bytes(exact_bytes(size)) == size


@pytest.mark.parametrize(("text", "size"), [("64K", 65536), ("1.5G", 3 << 29), ("10GiB", 10 << 30), ("7", 7)])
def test_forms(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "G", "1Q", "-1", "1.0000001K", "1 2"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_bytes(text)


def test_human() -> None:
    assert human_bytes(2254857830) == "2.1 GiB"
