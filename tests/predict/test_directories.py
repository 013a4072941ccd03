"""Directories of the next run: names as files have them, creates as sizes."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from tarazu.model import ANY_RANK
from tarazu.native import template
from tarazu.predict import directories
from tarazu.predict.accuracy import directories_forward
from tarazu.trace.records import DirectoryRecord, RunRecord
from tests.predict.conftest import make_run

Made = Callable[[int], list[tuple[str, int]]]


def run(number: int, made: Made, ranks: int = 8, shared: tuple[tuple[str, int], ...] = ()) -> RunRecord:
    """`made(rank)` → (key, creates) in the order of the rank's mkdirs; `shared`: all ranks ask for these first."""
    of = make_run(lambda _: [], number=number, ranks=ranks)
    records = []
    for rank in (ANY_RANK, *range(ranks)):
        seen: Counter[str] = Counter()
        for n, (key, creates) in enumerate(shared if rank == ANY_RANK else made(rank)):
            names = template(key, job_id=of.step.job_id, rank=rank, pid=9000 + rank, host="n0")
            precise, loose = "P" + names.precise, "L" + names.loose
            records.append(
                DirectoryRecord(
                    key,
                    names.precise,
                    names.loose,
                    rank,
                    tuple(range(ranks)) if rank == ANY_RANK else (rank,),
                    seen[precise],
                    seen[loose],
                    at_s=n * 2.0 + max(rank, 0) / 100,
                    creates=creates,
                )
            )
            seen.update((precise, loose))
    return msgspec.structs.replace(of, directories=tuple(sorted(records, key=lambda d: d.at_s)))


def mdtest(number: int) -> RunRecord:
    """As mdtest -u -i 4 makes them below a directory of the job's."""
    job = 4000 + number
    return run(
        number,
        lambda rank: [(f"/u/out.{job}/mdtest_tree.{rank}.{i}", 1000) for i in range(4)],
        shared=((f"/u/out.{job}", 32),),
    )


def growing(number: int) -> RunRecord:
    """A rank's directory for each step, of which there are more in each run; creates grow, too."""
    return run(
        number,
        lambda rank: [(f"/u/r{rank:03d}/step{n:04d}", 100 + 10 * number) for n in range(3 + number)],
    )


@pytest.mark.parametrize("of", [mdtest, growing])
def test_from_the_second_run_on_nearly_all_directories_are_expected(of: Callable[[int], RunRecord]) -> None:
    history = [of(number) for number in range(6)]
    scores = directories_forward(history)
    assert all(score.hit_rate >= 0.75 for score in scores)
    assert scores[-1].hit_rate >= 0.95
    assert scores[-1].create_error <= 0.1


def test_of_the_same_program_every_directory_is_expected_from_the_second_run_on() -> None:
    scores = directories_forward([mdtest(number) for number in range(4)])
    assert [score.hit_rate for score in scores] == [1.0, 1.0, 1.0]
    assert all(score.create_error == 0 for score in scores)


def test_a_directory_that_was_there_is_not_expected() -> None:
    before = mdtest(0)
    there = tuple(msgspec.structs.replace(d, existed=True) for d in before.directories)
    before = msgspec.structs.replace(before, directories=there)
    assert directories.forecast([before], before.step).directories == ()


def test_a_run_without_directories_expects_none() -> None:
    before = make_run(lambda rank: [(f"/u/f{rank}", 5)])
    assert directories.forecast([before], before.step).directories == ()
    assert directories.extend(before, before.step, horizon_s=60).directories == ()


def test_the_steps_of_a_run_are_continued() -> None:
    so_far = run(0, lambda rank: [(f"/u/r{rank}/step{n}", 50) for n in range(4)])
    more = directories.extend(so_far, so_far.step, horizon_s=3600).directories
    assert {"/u/r0/step4", "/u/r7/step5"} <= {d.name.key for d in more}
    assert {d.creates for d in more} == {50}


@pytest.mark.parametrize(
    ("outcome", "number", "refused"), [("refused", errno.EPERM, True), ("hit", 0, False)]
)
def test_whoever_was_refused_in_the_last_run_is_not_asked_for(
    outcome: str, number: int, refused: bool
) -> None:
    before = mdtest(0)
    first, *rest = before.directories
    tried = msgspec.structs.replace(first, outcome=outcome, errno=number)
    before = msgspec.structs.replace(before, directories=(tried, *rest))
    assert directories.may_not_choose([before]) is refused
    # A run that asked nothing says nothing.
    assert directories.may_not_choose([before, mdtest(1)]) is refused
