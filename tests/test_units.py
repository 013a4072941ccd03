"""Byte sizes as text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.units import (
    exact_bytes,
    figure,
    human_bytes,
    human_duration,
    human_rate,
    human_speed,
    parse_bytes,
    percent,
)


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
    assert human_rate(2254857830) == "2.1 GiB/s" and human_rate(None) == "-"
    assert [human_duration(s) for s in (0.5, 119, 120, 90_000, 302_400)] == [
        *("0.5 s", "119 s", "2 min", "25 h", "3.5 days")
    ]
    assert [human_speed(s) for s in (None, 0, 0.25, 1.5)] == ["-", "1", "1/4.0", "1"]
    assert [percent(s) for s in (None, math.nan, 0.1234)] == ["-", "-", "12.3 %"]
    assert [figure(v, ".1f") for v in (None, math.nan, 2.04)] == ["-", "-", "2.0"]
