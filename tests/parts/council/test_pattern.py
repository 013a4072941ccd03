"""From observations to patterns: operation, spatiality and sizes of one interval."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.council.pattern import MIN_REQUESTS, Direction, Observation, Pattern, detect, impossible

MIB = 1 << 20


def observed(read: Direction = Direction(), write: Direction = Direction()) -> Pattern | None:  # noqa: B008
    return detect(Observation(1.0, read, write))


def test_too_few_requests_show_no_pattern() -> None:
    assert observed() is None
    assert observed(read=Direction(MIB, MIN_REQUESTS - 1)) is None
    assert observed(read=Direction(0, 100)) is None
    assert observed(Direction(MIB, MIN_REQUESTS // 2), Direction(MIB, MIN_REQUESTS // 2)) is not None


@pytest.mark.parametrize(
    ("read", "write", "operation"),
    [(100, 0, "read"), (0, 100, "write"), (95, 5, "read"), (80, 20, "both"), (20, 80, "both")],
)
def test_the_operation_is_that_of_the_bytes(read: int, write: int, operation: str) -> None:
    """Files that are opened and looked at are no pattern of their own."""
    seen = observed(Direction(read * MIB, read), Direction(write * MIB, write))
    assert seen and seen.operation == operation


def test_sizes_are_those_of_what_is_done() -> None:
    assert observed(Direction(100 * MIB, 400), Direction(4096, 90)) == ("read", "unknown", MIB // 4)
    assert observed(Direction(60 * MIB, 60), Direction(40 * MIB, 140)) == ("both", "unknown", MIB // 2)


def test_spatiality_by_counters() -> None:
    for share, expected in ((-1.0, "unknown"), (0.0, "contiguous"), (0.2, "contiguous"), (0.9, "strided")):
        seen = observed(write=Direction(16 * MIB, 16, share))
        assert seen and seen.spatiality == expected
    # Of blocks of 47,008 bytes with gaps between, each a bulk I/O of its own.
    seen = observed(write=Direction(47_008 * 64, 64, 0.0))
    assert seen and seen.spatiality == "unknown"
    # Where both are done that of more bytes, or of the one that is known.
    more, less = Direction(60 * MIB, 60, 1.0), Direction(40 * MIB, 40, 0.0)
    assert (seen := observed(more, less)) and seen.spatiality == "strided"
    assert (seen := observed(less, more)) and seen.spatiality == "strided"
    assert (seen := observed(Direction(60 * MIB, 60), less)) and seen.spatiality == "contiguous"


COUNTS = st.integers(-(2**63), 2**64)
DIRECTIONS = st.builds(Direction, COUNTS, COUNTS, st.floats())


@settings(max_examples=60, deadline=None)
@given(DIRECTIONS, DIRECTIONS, st.floats())
def test_whatever_is_sent_cannot_be_or_has_a_pattern_or_none(
    read: Direction, write: Direction, demand: float
) -> None:
    """The council detects what others send."""
    sent = Observation(1.0, read, write, demand)
    assert impossible(sent) or (detect(sent) or Pattern("both", "unknown", 1)).request_bytes > 0
