"""A change in words, for tables."""

from __future__ import annotations

from tarazu.parts.changes.words import values


def test_of_a_pool_the_osts_are_ranges_so_that_the_one_that_is_out_is_seen() -> None:
    wanted = {"pool": "exists"} | {str(ost): "out" if ost == 5 else "in" for ost in range(12)}
    assert values(wanted) == "pool exists, 0-4,6-11 in, 5 out"
    assert values({"3": "in", "10": "in"}) == "in"
