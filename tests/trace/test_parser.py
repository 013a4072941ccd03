from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarazu.errors import TraceError
from tarazu.model import ANY_RANK, JobStep
from tarazu.trace.parser import parse_files, parse_runs
from tarazu.trace.records import RunRecord
from tarazu.trace.spool import parse_spools

Make = dict[str, Callable[..., Any]]
STEP = JobStep("lustre", 1000, "ior", "4711", ranks=4, nodes=2)


def run(data: list[bytes], step: JobStep = STEP, **options: Any) -> RunRecord:
    return parse_runs([s for d in data for s in parse_spools(d)], step, **options)[step.fs_name]


def private(make: Make, rank: int, **header: Any) -> bytes:
    key = f"/out/f.{rank}"
    return bytes(
        make["spool"](
            [
                make["create"](key, "/out/f.{rank}", "/out/f.#", at_s=1 + rank / 10, row_id=rank + 1),
                make["close"](key, 1000 + rank),
                make["end"](),
            ],
            rank=rank,
            ranks=4,
            **header,
        )
    )


def test_file_per_process(spools: Make) -> None:
    record = run([private(spools, r) for r in range(4)])
    assert [f.key for f in record.files] == [f"/out/f.{r}" for r in range(4)]
    assert [f.rank for f in record.files] == [0, 1, 2, 3]
    assert [f.size_bytes for f in record.files] == [1000, 1001, 1002, 1003]
    assert record.files[2].at_s == pytest.approx(1.2, abs=1e-6)
    assert (record.ranks_seen, record.ranks_expected, record.processes, record.unended) == (4, 4, 4, 0)
    assert record.outcomes == {"hit": 4} and record.mode == "full" and record.complete
    assert record.duration_s == pytest.approx(9.0)


def test_missing_rank_and_losses_are_reported(spools: Make) -> None:
    record = run([private(spools, 0), private(spools, 1, dropped=5), private(spools, 2)[:300]])
    assert (record.ranks_seen, record.ranks_expected) == (3, 4)
    assert record.dropped_records == 5 and record.lost_bytes > 0 and record.unended == 1
    assert not record.complete


def shared(make: Make, *, low_end: Callable[[int], tuple[int, int]], segments: int = 1) -> list[bytes]:
    data = []
    for rank in range(4):
        low, end = low_end(rank)
        raced = rank != 2
        precise = "/out/ssf.{rank}" if rank == 0 else "/out/ssf.0"
        records = [
            make["create"](
                "/out/ssf.0",
                precise,
                "/out/ssf.#",
                at_s=1 + rank / 100,
                flags=int(raced),
                outcome=7 if raced else 1,
            ),
            make["close"](
                "/out/ssf.0", 400 - 10 * rank, written=end - low, low=low, end=end, segments=segments
            ),
            make["end"](),
        ]
        data.append(bytes(make["spool"](records, rank=rank, ranks=4)))
    return data


def test_shared_file_is_one_file_of_any_rank_with_the_creators_outcome(spools: Make) -> None:
    record = run(shared(spools, low_end=lambda r: (100 * r, 100 * r + 100)))
    (file,) = record.files
    assert file.rank == ANY_RANK and file.creators == (0, 1, 2, 3) and file.writers == 4
    assert file.size_bytes == 400, "the largest that any process saw"
    assert file.written_bytes == 400 and file.contiguous
    assert file.outcome == "hit" and record.outcomes == {"hit": 1}, "lost races are the same file"
    assert file.precise == "/out/ssf.0", "rank 0's number in a shared name is chance"
    assert file.at_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("low_end", "segments"),
    [(lambda r: (100 * r, 100 * r + 150), 1), (lambda r: (100 * r, 100 * r + 100), 2)],
    ids=["overlapping", "strided"],
)
def test_shared_file_that_is_not_contiguous(
    spools: Make, low_end: Callable[[int], tuple[int, int]], segments: int
) -> None:
    (file,) = run(shared(spools, low_end=low_end, segments=segments)).files
    assert file.writers == 4 and not file.contiguous


def test_light_mode_knows_sizes_and_sharing_but_not_contiguity(spools: Make) -> None:
    data = []
    for rank in range(3):
        records = [spools["close"]("/f", 300, flags=2 * (rank > 0), written=0, end=0, segments=0)]
        if rank == 0:
            records.insert(0, spools["create"]("/f", "/f", "/f"))
        data.append(spools["spool"](records, rank=rank, ranks=3, mode=1))
    record = run(data)
    (file,) = record.files
    assert record.mode == "light"
    assert (file.size_bytes, file.writers, file.rank) == (300, 3, ANY_RANK)
    assert not file.contiguous and not file.counted and file.written_bytes == 0


def test_size_is_that_of_the_last_close_also_by_a_process_that_only_reopened(spools: Make) -> None:
    creator = [
        spools["create"]("/hacc", "/hacc", "/hacc"),
        spools["close"]("/hacc", 50, at_s=1.5, written=0),
        spools["close"]("/hacc", 700, at_s=3.0, flags=3, written=700),
        spools["close"]("/hacc", 600, at_s=4.0, flags=3, written=0),
    ]
    (file,) = run([spools["spool"](creator)]).files
    assert file.size_bytes == 600 and file.written_bytes == 700
    other = spools["spool"]([spools["close"]("/hacc", 900, flags=3)], rank=1)
    (file,) = run([spools["spool"](creator), other]).files
    assert file.size_bytes == 900 and file.rank == ANY_RANK


def test_recreated_name_is_one_file_with_the_last_layout(spools: Make) -> None:
    records = [
        spools["create"]("/f", "/f", "/f", at_s=1, outcome=2),
        spools["close"]("/f", 10, at_s=2),
        spools["create"]("/f", "/f", "/f", at_s=3, flags=2, outcome=1, row_id=9, layout=b"\1\2"),
        spools["close"]("/f", 20, at_s=4),
    ]
    (file,) = run([spools["spool"](records)]).files
    assert (file.size_bytes, file.outcome, file.row_id, file.layout) == (20, "hit", 9, b"\1\2")
    assert file.at_s == pytest.approx(1.0)


def test_locktest_files_other_file_systems_and_files_only_reopened_are_left_out(spools: Make) -> None:
    records = [
        spools["create"]("/f.locktest.0", "/f.locktest.{rank}", "/f.locktest.#"),
        spools["create"]("/elsewhere", "/elsewhere", "/elsewhere", fs="home"),
        spools["close"]("/old", 5, flags=3),
        spools["create"]("/kept", "/kept", "/kept"),
    ]
    (file,) = run([spools["spool"](records)]).files
    assert file.key == "/kept" and not file.closed and file.size_bytes == 0


def test_programs_without_ranks_miss_nothing(spools: Make) -> None:
    data = [
        spools["spool"](
            [spools["create"](f"/f{i}", f"/f{i}", "/f#"), spools["end"]()], rank=-1, ranks=0, pid=50 + i
        )
        for i in range(2)
    ]
    record = run(data, JobStep("lustre", 0, "cp", ""))
    assert [f.rank for f in record.files] == [ANY_RANK, ANY_RANK]
    assert record.complete and not record.files[0].shared


def test_spool_files_are_read_and_foreign_ones_reported(tmp_path: Path, spools: Make) -> None:
    good, bad = tmp_path / "a.tzs", tmp_path / "b.tzs"
    good.write_bytes(private(spools, 1))
    bad.write_bytes(b"rubbish")
    with pytest.raises(TraceError, match=r"b\.tzs"):
        parse_files([good, bad], STEP)
    reported: list[TraceError] = []
    record = parse_files([good, bad], STEP, problem=reported.append, exit_status=3)
    assert len(reported) == 1 and len(record.files) == 1
    assert record.lost_bytes > 0 and record.exit_status == 3


def test_no_spools_at_all_is_an_empty_run_that_lacks_every_rank() -> None:
    record = parse_runs([], STEP)[STEP.fs_name]
    assert (
        record.files == () and record.ranks_seen == 0 and record.ranks_expected == 4 and not record.complete
    )
