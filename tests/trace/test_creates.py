"""How much runs create below a directory, and what of it in directories that they make."""

from __future__ import annotations

from tarazu.model import JobStep
from tarazu.trace.creates import creates_below
from tarazu.trace.records import FileRecord, RunRecord


def run(duration_s: float, *keys: str) -> RunRecord:
    files = tuple(FileRecord(key, key, key, 0, (0,), 0, 0, 0.0, 1) for key in keys)
    return RunRecord(JobStep("lustre", 1, "app", "7"), 0.0, duration_s, "full", files)


def test_only_what_is_made_in_new_directories_would_move() -> None:
    runs = [
        run(1.0, "/p/old/a"),
        run(1.0, "/p/out/a", "/p/out/b", "/p/out/sub/c", "/p/old/d", "/p/e"),
    ]
    found = creates_below(runs, ["/p", "/p/out", "/pp", ""])
    # a and b with out, c with sub; both runs created in old, and e lies in p itself.
    assert (found["/p"].moving_per_s, found["/p"].staying_per_s) == (2.5, 1.5)
    assert (found["/p/out"].moving_per_s, found["/p/out"].staying_per_s) == (2.0, 2.0)
    assert not found["/pp"].moving_per_s and not found["/pp"].seconds
    # Below the root p itself is one in which one run alone has created.
    assert (found[""].moving_per_s, found[""].staying_per_s) == (3.5, 1.0)


def test_rates_are_those_of_the_time_in_which_runs_ran() -> None:
    runs = [
        run(seconds, *(f"/p/{seconds}/{n}" for n in range(files)))
        for seconds, files in ((10.0, 99), (30.0, 299))
    ]
    found = creates_below([*runs, run(1000.0, "/q/x")], ["/p"])
    assert found["/p"].moving_per_s == 10.0 and found["/p"].seconds == 40.0
