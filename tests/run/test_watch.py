"""The leader's look at the spools of a running step: what is closed, what is not, and what a look may cost."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path

import msgspec
import pytest

from tarazu.model import JobStep
from tarazu.run import watch as watching
from tarazu.run.watch import SpoolWatch
from tests.trace.conftest import close_record, create_record, end_record, spool

STEP = JobStep("lustre", os.getuid(), "app", "1")


def create(key: str, row_id: int, at_s: float = 1.0) -> bytes:
    return create_record(key, key, key, row_id=row_id, at_s=at_s)


def look(directory: Path, pattern: str = "", step: JobStep = STEP) -> watching.SpoolNews:
    watch = SpoolWatch(pattern or str(directory), directory, step, threading.Event())
    seen, again = watch.look(), watch.look()
    return msgspec.structs.replace(seen, files=seen.files | again.files)


def test_a_file_is_closed_when_every_process_has_closed_it(tmp_path: Path) -> None:
    both = [create("/shared", 7), close_record("/shared", 100, at_s=3)]
    (tmp_path / "0.tzs").write_bytes(spool(both, rank=0, ranks=2))
    (tmp_path / "1.tzs").write_bytes(spool([create("/shared", 7)], rank=1, ranks=2))
    assert look(tmp_path).files == {7: None}
    both = [create("/shared", 7), close_record("/shared", 300, at_s=2)]
    (tmp_path / "1.tzs").write_bytes(spool(both, rank=1, ranks=2))
    seen = look(tmp_path)
    assert seen.files == {7: 300} and seen.everywhere
    (tmp_path / "1.tzs").unlink()
    assert not look(tmp_path).everywhere, "of two ranks one was seen"


def test_a_file_that_is_created_anew_is_open_again(tmp_path: Path) -> None:
    records = [create("/a", 1), close_record("/a", 5, at_s=2), create("/a", 1, at_s=3), create("/b", 2)]
    (tmp_path / "0.tzs").write_bytes(spool(records))
    assert look(tmp_path).files == {1: None, 2: None}
    (tmp_path / "0.tzs").write_bytes(spool([*records, end_record()]))
    assert look(tmp_path).files == {1: 5}, "its process has ended; what is empty is not done"


def test_files_without_a_row_are_not_told_but_counted(tmp_path: Path) -> None:
    (tmp_path / "0.tzs").write_bytes(spool([create("/a", 0), close_record("/a", 5)]))
    seen = look(tmp_path)
    assert seen.files == {} and seen.outcomes == {"lustre": {"hit": 1}}


def test_two_looks_in_a_row_must_find_a_file_closed(tmp_path: Path) -> None:
    records = [create("/a", 1)]
    (tmp_path / "0.tzs").write_bytes(spool(records))
    watch = SpoolWatch(str(tmp_path), tmp_path, STEP, threading.Event())
    assert watch.look().files == {1: None}
    (tmp_path / "0.tzs").write_bytes(spool([*records, close_record("/a", 9)]))
    assert watch.look().files == {}
    assert watch.look().files == {1: 9}
    assert watch.look() == watching.SpoolNews(everywhere=True), "without news nothing is told"


def test_a_step_of_very_many_files_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million files took the leader 600 MB."""
    monkeypatch.setattr(watching, "MOST_FILES", 3)
    records = [record for n in range(4) for record in (create(f"/{n}", n + 1), close_record(f"/{n}", 9))]
    (tmp_path / "0.tzs").write_bytes(spool(records))
    watch = SpoolWatch(str(tmp_path), tmp_path, STEP, threading.Event())
    assert not watch.full and watch.look().everywhere
    assert watch.full and watch.look().files == dict.fromkeys(range(1, 5), 9)
    (tmp_path / "1.tzs").write_bytes(spool([create("/more", 9), close_record("/more", 9)], rank=1))
    seen = watch.look()
    assert (seen.files, seen.outcomes, seen.everywhere) == ({}, {}, False)


def test_shared_files_are_told_again_when_all_nodes_have_come(tmp_path: Path) -> None:
    (tmp_path / "0.tzs").write_bytes(spool([create("/a", 1), close_record("/a", 5)], ranks=2))
    watch = SpoolWatch(str(tmp_path), tmp_path, STEP, threading.Event())
    assert not watch.look().everywhere and watch.look().files == {1: 5}
    (tmp_path / "1.tzs").write_bytes(spool([create("/b", 2), close_record("/b", 6)], rank=1, ranks=2))
    assert watch.look().everywhere
    assert watch.look().files == {1: 5, 2: 6}


def test_other_nodes_are_looked_at_where_they_are_visible(tmp_path: Path) -> None:
    for node in ("n1", "n2"):
        (tmp_path / node / "run").mkdir(parents=True)
    (tmp_path / "n1/run/0.tzs").write_bytes(spool([create("/a", 1), close_record("/a", 5)]))
    (tmp_path / "n2/run/1.tzs").write_bytes(spool([create("/b", 2), close_record("/b", 6)], rank=1))
    here = tmp_path / "n1" / "run"
    assert look(here).files == {1: 5}
    assert look(here, f"{tmp_path}/%h/run").files == {1: 5, 2: 6}
    if os.geteuid() == 0:
        os.chown(tmp_path / "n2/run/1.tzs", 12345, -1)
        assert look(here, f"{tmp_path}/%h/run").files == {1: 5}, "somebody else's spool"


def test_a_long_look_is_followed_by_a_long_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "0.tzs").write_bytes(spool([create("/a", 1), close_record("/a", 5)]))
    watch = SpoolWatch(str(tmp_path), tmp_path, STEP, threading.Event())
    monkeypatch.setattr(watching.time, "monotonic", itertools.count(0.0, 3.0).__next__)
    assert watch.look().outcomes == {"lustre": {"hit": 1}}
    assert watch.pause_s >= 3.0 / watching.SHARE


def test_what_is_too_large_for_a_look_is_left_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = [create("/large", 1), *(create(f"/l{n}", 0) for n in range(400)), close_record("/large", 5)]
    (tmp_path / "0.tzs").write_bytes(spool(large))
    (tmp_path / "1.tzs").write_bytes(spool([create("/small", 2), close_record("/small", 6)], rank=1))
    monkeypatch.setattr(watching, "MAX_SPOOL_BYTES", 4096)
    seen = look(tmp_path)
    assert seen.files == {2: 6} and seen.outcomes == {} and not seen.everywhere


def test_a_look_ends_with_the_step(tmp_path: Path) -> None:
    (tmp_path / "0.tzs").write_bytes(spool([create("/a", 1)]))
    over = threading.Event()
    over.set()
    assert SpoolWatch(str(tmp_path), tmp_path, STEP, over).look() == watching.SpoolNews()
