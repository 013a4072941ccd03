"""Directories that a run makes: from spools to a run, its file and what a forecast reads of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import TraceError
from tarazu.model import ANY_RANK, JobStep
from tarazu.trace import directories
from tarazu.trace.parser import parse_runs
from tarazu.trace.past import HistoryLimits, read_past
from tarazu.trace.records import FOUND, OUTCOMES, DirectoryRecord, RunRecord, creates_by_parent
from tarazu.trace.runfile import encode_run
from tarazu.trace.spool import parse_spools
from tests.trace.conftest import decoded
from tests.trace.test_history import NAMES, sample

Make = dict[str, Callable[..., Any]]
STEP = JobStep("lustre", 1000, "ior", "4711", ranks=4, nodes=2)
DIRECTORIES = st.builds(
    DirectoryRecord,
    key=NAMES.map(lambda n: "/" + n),
    precise=NAMES,
    loose=NAMES,
    rank=st.integers(-1, 10**6),
    creators=st.sets(st.integers(0, 100)).map(lambda s: tuple(sorted(s))),
    nth_precise=st.integers(0, 2**32 - 1),
    nth_loose=st.integers(0, 2**32 - 1),
    at_s=st.floats(0, 1e9, allow_nan=False),
    creates=st.integers(0, 2**40),
    existed=st.booleans(),
    outcome=st.sampled_from(OUTCOMES),
    found=st.sampled_from(FOUND),
    errno=st.integers(0, 200),
    row_id=st.integers(0, 2**32 - 1),
    generation=st.integers(0, 2**63),
    mdt=st.integers(-1, 65535),
)


def run(data: list[bytes]) -> RunRecord:
    return parse_runs([s for d in data for s in parse_spools(d)], STEP)["lustre"]


def rank_of(make: Make, rank: int, *more: bytes) -> bytes:
    """Makes /out with all others, of which rank 2 is first, and its own below with two files in it."""
    own = f"/out/d.{rank}"
    made = rank == 2
    return bytes(
        make["spool"](
            [
                make["directory"](
                    "/out",
                    "/out",
                    "/out",
                    at_s=1,
                    flags=0 if made else 1,
                    outcome=1 if made else 7,
                    mdt=3 if made else -1,
                ),
                make["directory"](own, "/out/d.{rank}", "/out/d.#", at_s=2 + rank, row_id=rank + 1, mdt=rank),
                *(
                    make["create"](f"{own}/f.{i}", "", "", at_s=5, nth=(i, i), flags=rank == 3 and i == 1)
                    for i in range(2)
                ),
                *more,
                make["end"](),
            ],
            rank=rank,
            ranks=4,
        )
    )


def test_a_run_has_the_directories_that_its_ranks_made(spools: Make) -> None:
    record = run([rank_of(spools, rank) for rank in range(4)])
    out, *own = record.directories
    assert (out.key, out.rank, out.creators, out.existed) == ("/out", ANY_RANK, (0, 1, 2, 3), False)
    assert (out.outcome, out.mdt, out.creates) == ("hit", 3, 4)
    assert [(d.key, d.rank, d.row_id, d.mdt) for d in own] == [(f"/out/d.{r}", r, r + 1, r) for r in range(4)]
    assert [d.creates for d in own] == [2, 2, 2, 1], "what was there already was not made"
    assert own[1].at_s == pytest.approx(3.0) and record.directory_outcomes == {"hit": 5}
    assert record.complete and len(record.files) == 8


def test_creates_are_counted_in_directories_that_no_run_made(spools: Make) -> None:
    record = run([rank_of(spools, 0, spools["create"]("/top", "/top", "/top"))])
    counts = creates_by_parent(record.files, record.directories)
    assert counts == {"/out/d.0": 2, "/out": 1, "/": 1}, "/out itself was there"


def test_refusals_are_kept_with_their_errno(spools: Make) -> None:
    data = spools["spool"]([spools["directory"]("/p", "/p", "/p", outcome=4, errno=1, row_id=7)])
    (refused,) = run([data]).directories
    assert (refused.outcome, refused.errno, refused.row_id, refused.mdt) == ("refused", 1, 7, -1)


def test_a_run_of_directories_alone_is_a_run(spools: Make) -> None:
    data = spools["spool"]([spools["directory"]("/p", "/p", "/p", fs="other")])
    runs = parse_runs(parse_spools(data), STEP)
    assert runs["lustre"].directories == () and [d.key for d in runs["other"].directories] == ["/p"]
    assert runs["other"].files == ()


def test_a_directory_record_that_is_cut_off_is_lost(spools: Make) -> None:
    bad = bytearray(spools["directory"]("/p", "/p", "/p"))
    bad[48:50] = (4000).to_bytes(2, "little")
    (spool,) = parse_spools(spools["spool"]([bytes(bad), spools["end"]()]))
    assert spool.directories == () and spool.lost_bytes == len(bad) and spool.ended


def test_names_without_a_number_are_numbered_apart_from_files(spools: Make) -> None:
    unknown = (0xFFFFFFFF, 0xFFFFFFFF)
    records = [spools["create"](f"/a{i}", "/a#", "/a#", nth=unknown) for i in range(3)]
    records += [spools["directory"](f"/b{i}", "/a#", "/a#", nth=unknown) for i in range(2)]
    (spool,) = parse_spools(spools["spool"](records))
    assert [d.nth_loose for d in spool.directories] == [0, 1]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(DIRECTORIES, max_size=5).map(tuple))
def test_any_directories_come_back_from_a_run_file(made: tuple[DirectoryRecord, ...]) -> None:
    record = msgspec.structs.replace(sample(), directories=made)
    assert decoded(encode_run(record)) == record


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.text(max_size=200), st.text(max_size=20))
def test_other_text_is_refused_naming_the_place(text: str, cell: str) -> None:
    header, _ = directories.to_text([DirectoryRecord("/a", "/a", "/a", 0, (0,), 0, 0, 1.0)])
    for damaged in (text, header.replace("/a", cell, 1), header + text):
        for read in (directories.read, directories.read_past):
            try:
                read(damaged, "x.run:1")
            except TraceError as error:
                assert str(error).startswith("x.run:1")


def test_of_too_many_those_with_most_creates_are_kept(tmp_path: Path) -> None:
    made = tuple(
        DirectoryRecord(f"/d/{i}", "/d/{rank}", "/d/#", i, (i,), 0, 0, float(i), creates=i % 7)
        for i in range(40_000)
    )
    record = msgspec.structs.replace(sample(), directories=made)
    data = encode_run(record)
    assert data.index(b"\n") < 4 << 20
    back = decoded(data)
    assert back.directories_left_out == 40_000 - len(back.directories) > 0 and len(back.directories) > 4_000
    assert min(d.creates for d in back.directories) >= 4 and back.complete
    assert [d.at_s for d in back.directories] == sorted(d.at_s for d in back.directories)
    assert decoded(encode_run(back)) == back


def test_a_forecast_reads_them_without_unfolding_ranks(tmp_path: Path) -> None:
    everywhere = DirectoryRecord("/out", "/out", "/out", -1, tuple(range(3)), 0, 0, 1.0, 5, False, "hit")
    text = encode_run(msgspec.structs.replace(sample(), directories=(everywhere,))).replace(
        b"0-2", b"0-16000000"
    )
    path = tmp_path / "one.run"
    path.write_bytes(text)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        (past,), problems = read_past([descriptor], 10)
    finally:
        os.close(descriptor)
    (one,) = past.directories
    assert not problems
    assert (one.key, one.rank, one.creator, one.creator_count) == ("/out", -1, 0, 16_000_001)
    assert (one.creates, one.existed, one.outcome) == (5, False, "hit")


def test_a_forecast_of_directories_alone_reads_no_file(tmp_path: Path) -> None:
    """They stand in the first line: of 256,000 files they would be known after seconds, when they are made already."""
    made = DirectoryRecord("/out", "/out", "/out", 0, (0,), 0, 0, 1.0, 5, False, "hit")
    first, *lines = encode_run(msgspec.structs.replace(sample(), directories=(made,))).splitlines(True)
    path = tmp_path / "one.run"
    path.write_bytes(b"".join([first, lines[0], b"no,row\n" * 1000]))
    with path.open("rb") as file:
        (past,), problems = read_past([file.fileno()], 10, HistoryLimits(files=0), files=False)
    assert not problems and past.files == () and past.outcomes == {}
    assert [(d.key, d.creates) for d in past.directories] == [("/out", 5)]


def test_a_reader_of_before_takes_the_run_without_them() -> None:
    """Its header has one more field, its rows are as they were."""
    made = DirectoryRecord("/out", "/out", "/out", -1, (0, 1), 0, 0, 1.0)
    with_one = encode_run(msgspec.structs.replace(sample(), directories=(made,)))
    assert with_one.split(b"\n", 1)[1] == encode_run(sample()).split(b"\n", 1)[1]
