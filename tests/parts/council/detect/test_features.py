"""Features of requests: what they are for streams of which everything is known."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.council.detect.features import MAX_REQUESTS, NAMES, features

KIB = 1024


def named(requests: Sequence[tuple[int, ...]]) -> dict[str, float]:
    return dict(zip(NAMES, features(requests), strict=True))


def test_one_process_that_goes_through_a_file() -> None:
    seen = named([(i * 32 * KIB, 32 * KIB, 7) for i in range(64)])
    assert seen["requests"] == 6 and seen["continued"] == 63 / 64 and seen["lag"] == 0
    assert seen["precedes"] == 0 and seen["forward"] == 1 and seen["jump"] == 0
    assert math.isclose(seen["advance"], 1) and seen["spread"] == 1
    assert seen["streams"] == seen["files"] == 1 / 64 and seen["regular"] == 1


def test_many_processes_each_with_a_part_of_the_file() -> None:
    part, size = 1 << 30, 32 * KIB
    seen = named([(p * part + r * size, size, 7) for r in range(20) for p in range(16)])
    assert seen["continued"] == 19 / 20 and seen["lag"] == 4  # 16 requests ago
    assert seen["streams"] == 1 / 20 and seen["precedes"] == 0
    assert abs(seen["advance"]) < 0.2 and seen["spread"] > 8


def test_blocks_in_turn_that_arrive_in_any_order() -> None:
    size, source = 32 * KIB, random.Random(1)
    seen = named([((r * 16 + p) * size, size, 7) for r in range(20) for p in source.sample(range(16), 16)])
    assert seen["precedes"] > 0.3 and seen["advance"] > 0.98 and seen["spread"] == 1
    assert seen["continued"] < 0.7


def test_who_goes_on_where_another_ended() -> None:
    """Of blocks that are taken in turn the order alone may be that of one process: their sources tell."""
    size = 4096
    turns = [(block * size, size, 7, 1 + block % 64 // 4) for block in range(256)]
    parts = [((p << 24) + t * size, size, 7, 1 + p // 4) for t in range(16) for p in range(64)]
    alone = [(*request[:3], 9) for request in turns]
    assert named(turns)["handed"] == 63 / 256 and named(turns)["sources"] == 16 / 256
    assert named(parts)["handed"] == named(alone)["handed"] == 0.0
    unknown, known = named([request[:3] for request in turns]), named(turns)
    assert (unknown["sources"], unknown["handed"]) == (0.0, 0.0)
    assert {n for n in NAMES if unknown[n] != known[n]} == {"sources", "handed"}


def test_files_are_apart() -> None:
    one = [(i * 4096, 4096, 1) for i in range(32)]
    two = [(i * 4096, 4096, 2) for i in range(32)]
    mixed = [request for pair in zip(one, two) for request in pair]
    seen, alone = named(mixed), named(one)
    assert seen.pop("requests") == alone.pop("requests") + 1
    assert seen.pop("files") == alone.pop("files")
    assert seen == alone


def test_nothing_has_no_features_and_many_requests_cost_no_more_than_some() -> None:
    assert features([]) == ()
    many = [(i * 4096, 4096, 1) for i in range(MAX_REQUESTS + 10)]
    assert features(many) == features(many[:MAX_REQUESTS])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**60), st.integers(1, 2**26), st.integers(0, 3), st.integers(0, 4)),
        min_size=1,
        max_size=60,
    )
)
def test_they_are_numbers_within_their_bounds_for_any_requests(
    requests: list[tuple[int, int, int, int]],
) -> None:
    seen = named(requests)
    assert all(math.isfinite(v) for v in seen.values())
    for share in (
        "continued",
        "precedes",
        "forward",
        "near",
        "streams",
        "regular",
        "files",
        "sources",
        "handed",
    ):
        assert 0 <= seen[share] <= 1, share
    assert -1 <= seen["advance"] <= 1 and seen["lag"] >= 0 and seen["jump"] >= 0 and seen["spread"] >= 0
