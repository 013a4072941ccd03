"""From observations to patterns: operation, spatiality, files and sizes of one interval."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.council.detect import detect
from tarazu.parts.council.detect.detection import MIN_REQUESTS
from tarazu.parts.council.detect.features import NAMES, features
from tarazu.parts.council.observation import Direction, Observation
from tarazu.parts.council.pattern import Pattern

MIB = 1 << 20
STRIDED = features(((t * 64 + p * 7 % 64) * 4096, 4096, 1) for t in range(8) for p in range(64))


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


def test_files_and_sizes_are_those_of_what_is_done() -> None:
    assert observed(Direction(100 * MIB, 400, 70), Direction(4096, 90, 5)) == (
        "read",
        "unknown",
        64,
        MIB // 4,
    )
    assert observed(Direction(60 * MIB, 60, 1), Direction(40 * MIB, 140, 20)) == (
        "both",
        "unknown",
        16,
        MIB // 2,
    )


def test_spatiality_by_requests_before_counters() -> None:
    assert observed(write=Direction(512 * 4096, 512, 1, STRIDED, 0.0)) == ("write", "strided", 1, 4096)
    for share, expected in ((-1.0, "unknown"), (0.0, "contiguous"), (0.2, "contiguous"), (0.9, "strided")):
        seen = observed(write=Direction(16 * MIB, 16, discontiguous=share))
        assert seen and seen.spatiality == expected
    # Of blocks of 47,008 bytes with gaps between, each a bulk I/O of its own.
    seen = observed(write=Direction(47_008 * 64, 64, discontiguous=0.0))
    assert seen and seen.spatiality == "unknown"


def test_where_both_are_done_that_of_more_bytes_or_of_the_one_that_is_known() -> None:
    more, less = Direction(60 * MIB, 60, discontiguous=1.0), Direction(40 * MIB, 40, discontiguous=0.0)
    assert (observed(more, less) or Pattern("read", "unknown", 0, 0)).spatiality == "strided"
    assert (observed(less, more) or Pattern("read", "unknown", 0, 0)).spatiality == "strided"
    assert (
        observed(Direction(60 * MIB, 60), less) or Pattern("read", "unknown", 0, 0)
    ).spatiality == "contiguous"


COUNTS = st.integers(-(2**63), 2**64)
DIRECTIONS = st.builds(
    Direction,
    COUNTS,
    COUNTS,
    COUNTS,
    st.lists(st.floats(), min_size=len(NAMES) - 1, max_size=len(NAMES)).map(tuple),
    st.floats(),
)


@settings(max_examples=60, deadline=None)
@given(DIRECTIONS, DIRECTIONS, st.floats())
def test_whatever_is_sent_has_a_pattern_or_none(read: Direction, write: Direction, demand: float) -> None:
    """The council detects what others send."""
    seen = detect(Observation(1.0, read, write, demand))
    assert seen is None or (seen.files >= 0 and seen.request_bytes >= 0)
