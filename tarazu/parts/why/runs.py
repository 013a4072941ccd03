"""Which run is meant: by a job's id, a run's name, or an application."""

from __future__ import annotations

from tarazu.cli.job import own
from tarazu.cli.job.own import Ended, Line
from tarazu.config import Settings, own_path
from tarazu.trace.history import History, id_of


def of_name(settings: Settings, name: str) -> list[Ended]:
    """Runs of a job, of a run's name, else of the newest job of an application of that name; oldest first."""
    if runs := own.ended(settings, name, [line.run for line in own.lines(settings, name)]):
        return runs
    return newest_run(settings, name)


def newest_run(settings: Settings, application: str | None = None) -> list[Ended]:
    """The newest run that wrote anything, of all or of one application; none where there is none."""
    history = History(own_path(settings.run.history_dir))
    found = [(fs, app) for fs, app in history.applications() if application in (None, app)]
    paths = [path for fs, app in found for path in history.paths(fs, app)[-1:]]
    newest = max(paths, key=lambda path: path.name, default=None)
    return own.ended(settings, newest.stem) if newest else []


def unseen_after(settings: Settings, run: Ended, named: str) -> Line | None:
    """The newest step after this run of those that were meant, where of its planned files none was seen."""
    log = [line for line in own.lines(settings) if line.application == run.application or not named]
    newest = log[-1] if log else None
    if newest is None or not newest.unseen or id_of(newest.run) == run.id.partition("-")[2]:
        return None
    return newest if named in ("", newest.application) else None
