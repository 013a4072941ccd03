"""A study in its folder: cases that are not done yet are computed, and rows appended as they come."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Generic

import msgspec

from tarazu import locks
from tarazu.errors import BadInput, Unavailable
from tarazu.sim.study import runner
from tarazu.sim.study.case import Case
from tarazu.sim.study.cases import ScenarioCase, expand
from tarazu.sim.study.progress import StudyProgress
from tarazu.sim.study.results import Journal, R, ScenarioRow
from tarazu.sim.study.scenario import ScenarioFile
from tarazu.sim.study.scheduler import checked


class Answers(msgspec.Struct, Generic[R], frozen=True):
    """What came of the cases."""

    rows: tuple[R, ...]
    """In the canonical order."""
    computed: int
    """Cases; the others were done already."""
    lost: tuple[str, ...]
    """Cases without rows, and why: a defect, or a worker that died twice. They are computed again next time."""


class Computed(Answers[ScenarioRow], frozen=True, kw_only=True):
    """What came of a scenario."""

    cases: tuple[ScenarioCase, ...]


def run(
    file: ScenarioFile, folder: Path, *, jobs: int = 0, scheduler: str = "", fresh: bool = False
) -> Computed:
    """Compute what `folder` has no rows of yet (`rows.jsonl`).

    jobs: processes of this machine, 0 for one on each core, 1 for none but this; scheduler: address of a Dask
    scheduler instead. Raises BadInput, Unavailable; on KeyboardInterrupt all rows that were done are on the disk.
    """
    if scheduler:
        checked(scheduler)
    cases = expand(file)
    done = answers(
        cases, ScenarioRow, folder, ("scenario.toml", file.text), jobs=jobs, scheduler=scheduler, fresh=fresh
    )
    return Computed(done.rows, done.computed, done.lost, cases=cases)


def answers(
    cases: Sequence[Case],
    kind: type[R],
    folder: Path,
    asked: tuple[str, str],
    *,
    jobs: int = 0,
    scheduler: str = "",
    fresh: bool = False,
) -> Answers[R]:
    """The rows of the cases of any study, as `run`.

    kind: type of a row; asked: name and text of a file that says what was asked.
    """
    _folder(folder)
    with _alone(folder):
        if fresh:
            (folder / "rows.jsonl").unlink(missing_ok=True)
        journal = Journal(folder / "rows.jsonl", {case.id: number for number, case in enumerate(cases)}, kind)
        try:
            (folder / asked[0]).write_text(asked[1])
            done = journal.done
            todo = [case for case in cases if case.id not in done]
            progress = StudyProgress(len(todo), sum(case.weight for case in todo))
            if journal.set_aside:
                aside = f"{len(journal.set_aside)} rows of other cases are now in {folder / 'earlier.jsonl'}"
                progress.tell(f"the scenario or the simulator has changed: {aside}")
            if done:
                progress.tell(f"{len(done)} of {len(cases)} cases were done before")
            with progress:
                lost = _compute(todo, journal, progress, jobs, scheduler)
            return Answers(tuple(journal.finish()), len(todo), lost)
        finally:
            journal.close()


def _compute(
    todo: Sequence[Case], journal: Journal[R], progress: StudyProgress, jobs: int, scheduler: str
) -> tuple[str, ...]:
    lost = []
    wanted = jobs or runner.cores()
    with closing(_way(todo, wanted, scheduler, progress)) as answers:
        for case, answer in answers:
            if isinstance(answer, BadInput):
                raise answer
            if isinstance(answer, Exception):
                lost.append(f"{case.label}: {type(answer).__name__}: {answer}")
                progress.tell(f"no result: {lost[-1]}")
            else:
                journal.append(answer)
            progress.advance(case.weight)
    return tuple(lost)


def _way(todo: Sequence[Case], jobs: int, scheduler: str, progress: StudyProgress) -> Generator[runner.Done]:
    if not todo:
        return runner.serial(())
    if scheduler:
        return runner.dask(todo, scheduler, progress.tell)
    return runner.serial(todo) if jobs == 1 else runner.processes(todo, jobs, progress.tell)


def _folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput("--out", "a folder that can be made", f"{folder}: {error.strerror}") from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two studies in one folder would write the same rows twice."""
    try:
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise BadInput("--out", "a folder that can be written to", f"{folder}: {error.strerror}") from None
    try:
        locks.take(descriptor)
        yield
    except BlockingIOError:
        raise Unavailable(f"{folder}: expected no other study here, found one that runs") from None
    finally:
        os.close(descriptor)
