"""What is moved together, and how often."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from tarazu.model import JobStep
from tarazu.parts.rebalance.datasets import Use, of_directories, of_history, of_log, of_runs
from tarazu.parts.rebalance.files import Files, Stat
from tarazu.trace.darshan.log import DarshanMount
from tarazu.trace.darshan.read import read
from tarazu.trace.records import FileRecord, RunRecord
from tests.parts.rebalance.made import NOW_S, add, plain
from tests.trace.darshan import writer
from tests.trace.test_places import MOUNTS

GB = 10**9
DAY_S = 86_400


@pytest.fixture
def files() -> Files:
    made = Files()
    for i in range(4):
        add(made, f"/scratch/a/{i}", GB, [i])
    add(made, "/scratch/b/0", GB, [0])
    return made


def test_runs_of_the_same_files_are_one_dataset(files: Files) -> None:
    paths = [f"/scratch/a/{i}" for i in range(3)]
    uses = [Use("train", NOW_S + day * DAY_S, dict.fromkeys(paths, 2 * GB)) for day in range(11)]
    uses.append(Use("train", NOW_S, {"/scratch/b/0": GB // 2, "/scratch/gone": 1}))
    (often, once), missing = of_runs(files, uses)
    assert often.files.tolist() == [0, 1, 2] and often.times.tolist() == [2.0, 2.0, 2.0]
    assert often.per_day == pytest.approx(1.1) and "11 " in often.evidence
    assert once.files.tolist() == [4] and once.times.tolist() == [0.5]
    assert missing == 1


def test_runs_of_one_hour_are_those_of_a_day(files: Files) -> None:
    uses = [Use("x", NOW_S + i, {"/scratch/a/0": GB}) for i in range(3)]
    ((dataset,), _) = of_runs(files, uses)
    assert dataset.per_day == 3.0


def test_directories_are_read_as_their_times_say(files: Files) -> None:
    written_last = Stat(GB, GB, 0, int(NOW_S) - DAY_S, int(NOW_S) - DAY_S)
    long_ago = Stat(GB, GB, 0, int(NOW_S) - 90 * DAY_S, int(NOW_S) - 100 * DAY_S)
    for path, stat in (("/scratch/new/0", written_last), ("/scratch/old/0", long_ago)):
        assert files.add(path, stat, plain([1])) is None
    found = {d.name: d for d in of_directories(files, None, NOW_S, np.array([4]))}
    assert {name: d.per_day for name, d in found.items()} == {
        "/scratch/a": 1.0,
        "/scratch/new": 0.0,
        "/scratch/old": 0.0,
    }
    assert "4 of 4 files" in found["/scratch/a"].evidence
    assert {d.per_day for d in of_directories(files, 6.0, NOW_S)} == {6.0}


def test_the_history_knows_what_is_written_over_again(files: Files) -> None:
    def record(key: str, existed: bool) -> FileRecord:
        return FileRecord(
            key=key, precise=key, loose=key, rank=0, creators=(0,), nth_precise=0, nth_loose=0,
            at_s=0.0, size_bytes=GB, existed=existed,
        )  # fmt: skip

    step = JobStep("lustre", 1000, "model", "1")
    run = RunRecord(step, NOW_S, 10.0, "light", (record("/a/0", True), record("/a/1", False)))
    (use,) = of_history([run], {"lustre": "/scratch"})
    assert use.moved == {"/scratch/a/0": GB}
    assert of_history([run], {"other": "/scratch"}) == []


def test_a_log_says_what_was_read_on_lustre() -> None:
    log = read(Path(__file__).parents[2] / "data" / "traces" / "ior_posix_ssf_n16_t1m_C_wr.darshan")
    rows = zip(log.accesses["record"].tolist(), log.accesses["read_bytes"].tolist(), strict=True)
    read_ = {log.names[record]: size for record, size in rows if size}
    assert read_, "it reads what it wrote"
    use = of_log(msgspec.structs.replace(log, mounts=(DarshanMount("/", "lustre"),)))
    assert use.moved.keys() == read_.keys() and sum(use.moved.values()) == log.accesses["read_bytes"].sum()
    assert use.application == "ior" and use.start_s == log.start_s
    assert not of_log(msgspec.structs.replace(log, mounts=(DarshanMount("/", "nfs"),))).moved


def test_what_was_read_through_a_link_is_rebalanced(tmp_path: Path) -> None:
    counters = {"OPENS": 1, "READS": 1, "BYTES_READ": 1 << 20, "MAX_BYTE_READ": (1 << 20) - 1}
    content = {"POSIX": writer.table("POSIX", 1, 0, **counters), "LUSTRE": writer.plain(1, [0])}
    log = writer.write(tmp_path / "x.darshan", content, {1: "/home/u/in"}, mounts=MOUNTS)
    assert dict(of_log(read(log)).moved) == {"/scratch/u/in": 1 << 20}
