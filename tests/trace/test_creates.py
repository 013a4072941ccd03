"""How much runs create below a directory, and what of it in directories that they make."""

from __future__ import annotations

from tarazu.model import JobStep
from tarazu.trace.creates import creates_below
from tarazu.trace.records import DirectoryRecord, FileRecord, RunRecord


def directory(key: str, creates: int, mdt: int = 0, existed: bool = False) -> DirectoryRecord:
    return DirectoryRecord(key, key, key, 0, (0,), 0, 0, 0.0, creates, existed, mdt=mdt)


def file(key: str) -> FileRecord:
    return FileRecord(key, key, key, 0, (0,), 0, 0, 0.0, 1)


def run(duration_s: float, files: list[FileRecord], directories: list[DirectoryRecord]) -> RunRecord:
    step = JobStep("lustre", 1, "app", "7")
    return RunRecord(step, 0.0, duration_s, "full", tuple(files), directories=tuple(directories))


def test_only_what_is_made_in_new_directories_would_move() -> None:
    made = [
        directory("/p/out", 3, mdt=1),
        directory("/p/out/sub", 1, mdt=0),
        directory("/p/old", 2, existed=True),
    ]
    files = [file("/p/out/a"), file("/p/out/b"), file("/p/out/sub/c"), file("/p/old/d"), file("/p/e")]
    found = creates_below([run(2.0, files, made)], ["/p", "/p/out", "/pp", ""])
    # out itself, a, b and sub on MDT 1, c on MDT 0; d and e stay.
    assert found["/p"].moving == {1: 2.0, 0: 0.5} and found["/p"].staying_per_s == 1.0
    assert found["/p/out"].moving == {0: 1.0}, "sub is made in it, and c in that"
    assert found["/pp"].moving == {} and not found["/pp"].seconds
    assert found[""].moving == found["/p"].moving


def test_rates_are_those_of_the_time_in_which_runs_ran() -> None:
    runs = [run(10.0, [], [directory("/p/1", 99)]), run(30.0, [], [directory("/p/2", 299)])]
    found = creates_below([*runs, run(1000.0, [file("/q/x")], [])], ["/p"])
    assert found["/p"].moving == {0: 10.0} and found["/p"].seconds == 40.0
