"""The applications that are run online."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tarazu.errors import BadInput
from tarazu.parts.council.study.online import madbench2, write_and_read
from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import PAPER_BYTES
from tarazu.parts.council.study.requests.workload import Phase, Workload


def test_the_benchmark_writes_and_reads_in_turn() -> None:
    work = write_and_read(3, part=1)
    assert [phase.operation for phase in work.phases] == ["write", "read"] * 3
    assert {phase.bytes for phase in work.phases} == {PAPER_BYTES}
    outcome = simulate(write_and_read(2, part=256, pause_s=0.5), Setting(), 1)
    assert [phase.name for phase in outcome.phases] == ["write", "read"] * 2
    for before, after in pairwise(outcome.phases):
        assert after.begin_s == pytest.approx(before.end_s + 0.5)


def test_madbench2_moves_what_table_v_says() -> None:
    s, w, *c = madbench2(1, part=1).phases
    assert (s.requests, w.requests, [one.requests for one in c]) == (80, 160, [80] * 4)
    assert s.request_bytes == 51_200 and s.bytes == 80 * 1280 * 1280 * 8
    outcome = simulate(madbench2(1, part=40), Setting(), 1)
    assert [phase.name for phase in outcome.phases] == ["S", "W", *"CCCC"]
    patterns = {one.pattern.operation for one in outcome.seen if one.observation.bytes}
    assert patterns <= {"write", "both", "read"}


@pytest.mark.parametrize(
    "shared, spatiality", [(True, "contiguous"), (True, "strided"), (False, "contiguous")]
)
@pytest.mark.parametrize("part", [1, 4])
def test_no_byte_is_accessed_twice_and_a_part_is_the_first_of_all(
    shared: bool, spatiality: str, part: int
) -> None:
    phase = Phase("", "write", spatiality, shared, 8, 10, 8 * 10 * 16, part)  # type: ignore[arg-type]
    whole = phase._replace(part=1)
    for process in range(8):
        made = list(phase.accesses(process))
        assert made == list(whole.accesses(process))[: 16 // part]
    made = [one for process in range(8) for one in phase.accesses(process)]
    assert len(set(made)) == len(made) == phase.bytes // 10
    assert max(offset for _, offset, _ in made) < phase.file_bytes
    assert phase.file_bytes * phase.files == 8 * 10 * 16


def test_both_reads_one_file_and_writes_another() -> None:
    phase = Phase("", "both", "strided", True, 2, 10, 2 * 10 * 4)
    assert list(phase.accesses(1)) == [(0, 10, False), (1, 10, True), (0, 30, False), (1, 30, True)]
    assert phase.bytes == 80 and phase.file_bytes == 40
    assert phase.pattern(4).operation == "both" and phase.pattern(4).files == 1


def test_a_file_does_not_grow_over_the_next() -> None:
    small, large = (Phase("", "write", "strided", True, 2, 1 << 16, size << 20) for size in (1, 8))
    with pytest.raises(BadInput, match="no larger"):
        simulate(Workload(1, (small, large)), Setting(), 1)
