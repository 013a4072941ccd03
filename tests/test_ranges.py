"""Lists such as 0-3,7."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.ranges import fold, spans, unfold


@given(st.sets(st.integers(0, 60)))
def test_what_is_folded_unfolds_to_the_same(numbers: set[int]) -> None:
    ordered = tuple(sorted(numbers))
    assert unfold(fold(ordered)) == ordered
    assert sum(last - first + 1 for first, last in spans(fold(ordered))) == len(numbers)


def test_absurd_lists_are_refused_before_they_are_made() -> None:
    assert fold((0, 1, 2, 3, 7)) == "0-3,7" and fold(()) == "" and unfold("") == ()
    for text in ("3-1", "0-99999999999", "x", "-1"):
        with pytest.raises(ValueError):
            unfold(text)
    with pytest.raises(ValueError, match="at most 3 numbers"):
        unfold("0-1,5-6", 3)
