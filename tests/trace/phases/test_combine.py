from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.model import ANY_RANK
from tarazu.trace.phases.combine import combine
from tarazu.trace.phases.phase import Phase, PhasePart, io_s, order, spatiality


def part(file: str = "a", rank: int = 0, start: float = 0.0, end: float = 1.0, **more: Any) -> PhasePart:
    made: dict[str, Any] = {
        "api": "POSIX",
        "operation": "write",
        "ranks": 1,
        "bytes": 10,
        "io_s": end - start,
        "requests": 10,
        "consecutive": 9,
        "sequential": 9,
    }
    return PhasePart(file=file, rank=rank, start_s=start, end_s=end, **{**made, **more})


def everyone(file: str, start: float, end: float, **more: Any) -> PhasePart:
    return part(file, ANY_RANK, start, end, **{"ranks": 4, "requests": 40, "consecutive": 36, **more})


def test_ranks_that_share_a_file_are_one_phase_of_a_shared_file() -> None:
    (phase,) = combine([part("a", 0, 0, 1), part("a", 3, 5, 9)], ranks=8)
    assert (phase.sharing, phase.files, phase.processes_per_file, phase.ranks) == ("shared", 1, 2, (0, 3))
    assert (phase.start_s, phase.end_s, phase.bytes, phase.requests, phase.rank_count) == (0, 9, 20, 20, 2)


def test_a_file_each_is_one_phase_of_unique_files() -> None:
    (phase,) = combine([part(f"f{rank}", rank, rank / 10, 1) for rank in range(4)], ranks=4)
    assert (phase.sharing, phase.files, phase.processes_per_file) == ("unique", 4, 1)
    assert phase.io_s == 1


def test_the_distance_is_from_the_end_of_all_before() -> None:
    parts = [part("a", 0, 0, 10), part("b", 1, 1, 2), part("c", 2, 11, 12), part("d", 3, 13.01, 14)]
    assert [p.files for p in combine(parts, 4)] == [3, 1]
    assert [p.files for p in combine(parts, 4, distance_s=1.02)] == [4]
    assert [p.files for p in combine(parts, 4, distance_s=0)] == [2, 1, 1]


@pytest.mark.parametrize(
    "other",
    [
        {"operation": "read"},
        {"api": "STDIO", "consecutive": -1},
        {"consecutive": 0},
        {"file": "b", "rank": ANY_RANK, "ranks": 4},
    ],
    ids=["operation", "api", "spatiality", "sharing"],
)
def test_what_is_not_alike_stays_apart(other: dict[str, Any]) -> None:
    assert len(combine([part("a"), part(**{"file": "c", **other})], 4)) == 2


def test_shared_files_one_after_another_take_as_long_as_all_of_them() -> None:
    """SummarIO takes the longest."""
    (phase,) = combine([everyone("a", 0, 2), everyone("b", 2.5, 5), everyone("c", 5.5, 6)], 4)
    assert phase.io_s == pytest.approx(2 + 2.5 + 0.5) and phase.files == 3 and phase.processes_per_file == 4


def test_parallel_io_is_that_of_the_slowest_rank() -> None:
    at_once = [part("a", 0, 0, 4, io_s=1), part("b", 1, 0, 4, io_s=3), part("c", 0, 1, 4, io_s=1.5)]
    assert io_s(at_once) == 3
    assert io_s([part("a", 0, 0, 4, io_s=3), part("b", 0, 1, 4, io_s=2)]) == 4  # no longer than they last
    assert io_s([everyone("a", 0, 4, io_s=1), everyone("b", 1, 4, io_s=1.5)]) == 2.5


def test_of_a_trace_a_file_that_is_opened_again_gives_several_phases() -> None:
    again = [part("a", rank, start, start + 1, timed=True) for start in (0, 5, 10) for rank in (0, 1)]
    assert [(p.start_s, p.sharing, p.rank_count) for p in combine(again, 2)] == [
        (0, "shared", 2),
        (5, "shared", 2),
        (10, "shared", 2),
    ]


@pytest.mark.parametrize(
    ("requests", "consecutive", "sequential", "opens", "expected"),
    [
        (10, 9, 9, 1, "contiguous"),
        (10, 0, 9, 1, "sequential"),
        (10, 3, 4, 1, "random"),
        (10, 8, 8, 1, "contiguous"),  # 8 of 9
        (11, 7, 8, 1, "sequential"),  # 8 of 10
        (11, 7, 7, 1, "random"),
        (1, 0, 0, 1, "contiguous"),
        (4, 3, 3, 1, "contiguous"),  # of 4, three follow: SummarIO says random
        (32, 24, 24, 8, "contiguous"),  # eight times four
        (8, 0, 0, 8, "random"),  # each after an open of its own: nothing is known of their order
        (10, -1, 0, 1, "unknown"),
        (10, 2, -1, 1, "unknown"),
    ],
)
def test_order_of_the_requests(
    requests: int, consecutive: int, sequential: int, opens: int, expected: str
) -> None:
    one = part(requests=requests, consecutive=consecutive, sequential=sequential, opens=opens)
    assert spatiality(order([one])) == expected


def test_threshold_of_collective_calls() -> None:
    one = part(requests=10, consecutive=-1, collective=8)
    assert spatiality(order([one])) == "collective" and spatiality(order([one]), 0.1) == "unknown"


def test_the_most_frequent_sizes_come_first() -> None:
    (phase,) = combine([part(sizes=((5, 2), (7, 9))), part("b", 1, sizes=((5, 3), (9, 5)))], 2)
    assert phase.request_sizes == ((7, 9), (9, 5), (5, 5))


parts_ = st.lists(
    st.builds(
        lambda file, rank, start, length, kind, size: part(
            f"f{file}", rank, start, start + length, bytes=size, consecutive=kind, io_s=length / 2
        ),
        *(st.integers(0, 5), st.integers(-1, 3), st.floats(0, 30), st.floats(0, 4)),
        *(st.sampled_from([-1, 0, 9]), st.integers(1, 100)),
    ).map(
        lambda p: (
            p
            if p.rank >= 0
            else part(p.file, ANY_RANK, p.start_s, p.end_s, ranks=4, bytes=p.bytes, io_s=p.io_s)
        )
    ),  # type: ignore[arg-type]
    min_size=1,
    max_size=20,
)


@settings(max_examples=40)
@given(parts_)
def test_nothing_is_lost_or_counted_twice(parts: list[PhasePart]) -> None:
    found = combine(parts, 4)
    assert sum(p.bytes for p in found) == sum(p.bytes for p in parts)
    assert sum(p.requests for p in found) == sum(p.requests for p in parts)
    assert found == combine(list(reversed(parts)), 4) and list(found) == sorted(
        found, key=lambda p: p.start_s
    )
    for phase in found:
        assert 0 <= phase.io_s <= phase.end_s - phase.start_s + 1e-9
        assert 1 <= phase.processes_per_file <= phase.rank_count <= 4


def test_a_phase_with_all_ranks_unnamed_says_so() -> None:
    (phase,) = combine([everyone("a", 0, 1)], 4)
    assert isinstance(phase, Phase) and phase.ranks is None and phase.rank_count == 4
