"""What the user's own files tell of a job: steps that run (control pages), steps that ended (history, jobs.log)."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from tarazu import config
from tarazu.allocate.quality import ost_cost
from tarazu.cli import disable
from tarazu.config import Settings, own_path
from tarazu.errors import StoreError, TarazuError, TraceError
from tarazu.run import job_log
from tarazu.run.problems import before
from tarazu.stats import client
from tarazu.store import control
from tarazu.store.control import of_job
from tarazu.store.placed import ost_bytes
from tarazu.trace.history import History, id_of
from tarazu.trace.records import RunRecord, summed, why_of
from tarazu.trace.runfile import MAX_RUN_BYTES, read_header, read_run, reader

MOST_SEARCHED = 5
"""Newest runs of each application in which a file is looked for."""
MOST_RUNS = 2_000
"""Newest runs of each application among which a job's are looked for."""
_LINE = re.compile(r"(\S+) (\S+) app=(.*) mode=(\w+) (.*)")


def configure(parser: argparse.ArgumentParser, of: str, known_by: str) -> None:
    """Adds a `job` or `run` (`of`), which may be left out, and --json."""
    parser.add_argument(
        of,
        metavar=of.upper(),
        nargs="?",
        help=f"{known_by}, a run's name, or an application (default: your newest {of})",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


class Running(msgspec.Struct, frozen=True):
    """A step that runs."""

    run: str
    application: str
    job_id: str
    mode: str
    ranks: int
    nodes: int
    started_s: float
    map_generation: int
    """Of the current placement map; 0: none yet."""
    stopped: str | None
    """Why, where its owner has switched tarazu off in it."""
    site_stopped: str | None


class Ended(msgspec.Struct, frozen=True):
    """A step that ended, on one file system."""

    id: str
    application: str
    fs_name: str
    job_id: str
    start_s: float
    duration_s: float
    ranks: int
    exit_status: int
    complete: bool
    """False: files may be missing."""
    files: int
    size_bytes: int
    outcomes: dict[str, int]
    ost_bytes: dict[int, int]
    """Of files whose layout was read back after placing."""
    ost_cost: float | None
    not_placed: dict[str, int] = {}
    """Why files were not placed → how many, most files first."""


class Line(msgspec.Struct, frozen=True):
    """What jobs.log says of a step."""

    run: str
    application: str
    mode: str
    at: str
    said: dict[str, str]
    """Its fields by name: plan, because, left, stopped, problem …; of those that come twice the last."""

    @property
    def unseen(self) -> bool:
        """Nobody saw a file of it: there was none, it was stopped, nobody led it, or nothing could be recorded."""
        return self.said.get("files", "0") == "0"


def newest(settings: Settings, application: str | None = None) -> str | None:
    """The user's newest job, by its id or, without one, by its run's name; of one application if it is named."""
    steps = [step for step in running(settings) if application in (None, step.application)]
    if steps:
        step = max(steps, key=lambda step: step.started_s)
        return step.job_id or step.run
    entries = [line for line in lines(settings) if application in (None, line.application)]
    if entries:
        return entries[-1].said.get("job") or entries[-1].run
    history = History(own_path(settings.run.history_dir))
    paths = [history.paths(fs, app)[-1:] for fs, app in history.applications() if application in (None, app)]
    return max((path.stem for of in paths for path in of), default=None)


def applications(settings: Settings) -> set[str]:
    """All that the user has run."""
    history = History(own_path(settings.run.history_dir))
    return {app for _, app in history.applications()} | {line.application for line in lines(settings)}


def running(settings: Settings, wanted: str | None = None) -> list[Running]:
    """Steps of this user that run, and whose maps this node sees; None: all."""
    steps = []
    for name, directory in disable.running(settings.run).items():
        of = control.read_about(directory)
        if of is None:
            continue
        its = of.job_id, of.array_job, of.array_index
        if wanted is not None and not _names(wanted, name) and not of_job(wanted, *its):
            continue
        try:
            page = control.read_control(directory)
        except StoreError:
            continue  # it has just ended
        steps.append(
            Running(
                name,
                of.application,
                of.job_id,
                of.mode,
                of.ranks,
                of.nodes,
                of.started_s,
                page.generation,
                page.stopped,
                page.site_stopped,
            )
        )
    return steps


def ended(settings: Settings, wanted: str, names: Iterable[str] = ()) -> list[Ended]:
    """Runs of the job in the user's history, oldest first; and those that had these names."""
    ids = {id for name in (wanted, *names) if (id := id_of(name))}
    history = History(own_path(settings.run.history_dir))
    runs = []
    for fs_name, application in history.applications():
        for path in history.paths(fs_name, application)[-MOST_RUNS:]:
            try:
                its = path.stem.partition("-")[2]
                if its in ids or _names(wanted, path.stem) or _is_of(path, wanted):
                    runs.append(_ended(path, read_run(path)))
            except (TraceError, OSError):
                continue
    return sorted(runs, key=lambda run: run.start_s)


def not_placed(settings: Settings, fs_name: str, key: str) -> tuple[str, str, str]:
    """(the name in its history of the newest run that made a file, its application, why the file was not placed; empty:
    it was, or nobody knows); all empty where no run of the newest ones made it. Raises TraceError.
    """
    history = History(own_path(settings.run.history_dir))
    paths = [
        path
        for fs, application in history.applications()
        if fs == fs_name
        for path in history.paths(fs, application)[-MOST_SEARCHED:]
    ]
    name = os.fsencode(key.rpartition("/")[2])
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        try:
            if name not in path.read_bytes():
                continue
            run = read_run(path)
        except (TraceError, OSError):
            continue
        for place, file in enumerate(run.files):
            if file.key == key:
                why = why_of(run, place)
                return path.stem, run.step.application, str(why) if why else ""
    return "", "", ""


def why_not_placed(settings: Settings, fs_name: str, key: str, application: str) -> str:
    """Why the newest run that made a file did not place it, or the newest one of its application, which saw none;
    empty where it did, or nobody knows. `application`: of the file's plan; empty: there is none.
    """
    name = of = why = ""
    with contextlib.suppress(TarazuError):
        name, of, why = not_placed(settings, fs_name, key)
    log = lines(settings)
    newest = max((n for n, line in enumerate(log) if line.application == (application or of)), default=-1)
    # By their place in the log: the names of two that began in one second do not tell which was first.
    id = name.partition("-")[2]
    made = max((n for n, line in enumerate(log) if id and id_of(line.run) == id), default=-1)
    if newest > made and log[newest].unseen:
        why, name = log[newest].said.get("why", ""), log[newest].run
    return f"{why} (run {name})" if why else ""


@cache
def _osts(fs_name: str) -> frozenset[int]:
    """Those of the file system; none where it is not mounted here."""
    try:
        return client.file_system(fs_name, config.root()).osts
    except TarazuError:
        return frozenset()


def _names(wanted: str, run: str) -> bool:
    """Is that a run's name, or its first part? It begins with a date and a time: no job's id does."""
    return re.match(r"\d{8}T", wanted) is not None and run.startswith(wanted)


def _is_of(path: Path, wanted: str) -> bool:
    with reader(path, MAX_RUN_BYTES) as file:
        step = read_header(file, str(path)).fields.get("step")
    if not isinstance(step, dict):
        return False
    return of_job(
        wanted, str(step.get("job_id", "")), str(step.get("array_job", "")), step.get("array_index")
    )


def _ended(path: Path, run: RunRecord) -> Ended:
    placed, known = ost_bytes(run.files)
    # Over all OSTs, as in jobs.log and for the plans, those without a byte too; not where they are not known.
    osts = dict.fromkeys(_osts(run.step.fs_name), 0)
    return Ended(
        path.stem,
        run.step.application,
        run.step.fs_name,
        run.step.job_id,
        run.start_s,
        run.duration_s,
        run.step.ranks,
        run.exit_status,
        run.complete,
        len(run.files),
        sum(file.size_bytes for file in run.files),
        run.outcomes,
        placed,
        ost_cost(osts | placed) if known and osts else None,
        {str(of.why): of.files for of in summed(run.not_placed)},
    )


def lines(settings: Settings, wanted: str | None = None) -> list[Line]:
    """Lines of the job's steps in jobs.log, oldest first; None: of all."""
    entries = []
    log = own_path(settings.run.state_dir) / "jobs.log"
    for _, text in chain(*(job_log.numbered(path, job_log.Lines(str(path))) for path in (before(log), log))):
        if (match := _LINE.fullmatch(text)) is None:
            continue
        at, run, application, mode, rest = match.groups()
        said: dict[str, Any] = dict(job_log.fields(rest))
        if wanted is None or _names(wanted, run) or of_job(wanted, said.get("job", "")):
            entries.append(Line(run, application, mode, at, said))
    return entries
