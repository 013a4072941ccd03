"""Before the program of a job step: directories, control page, the first plans and their map, its environment."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tarazu import built
from tarazu.errors import TarazuError, TraceError
from tarazu.run.command_line import launchers
from tarazu.run.step import Step
from tarazu.store import control
from tarazu.trace.history import History

RECENT_STEPS = 3
"""A file system on which none of so many newest steps of an application created a file is not planned for."""


def used_lately(history: History, fs_names: Sequence[str], application: str) -> list[str]:
    """Those of the file systems on which the application's newest steps created files; empty without any history.

    The runs of one step on several file systems have one start, which their names tell.
    """
    starts: dict[str, list[str]] = {}
    for fs_name in fs_names:
        try:
            paths = history.paths(fs_name, application)[-RECENT_STEPS:]
        except TraceError:
            continue  # named when it is planned from
        starts[fs_name] = [path.name.partition("-")[0] for path in paths]
    newest = sorted({start for of in starts.values() for start in of})[-RECENT_STEPS:]
    return [fs_name for fs_name in fs_names if set(starts.get(fs_name, ())) & set(newest)]


DECIDING_RUNS = 5
"""How the next run is recorded follows from this many."""


def prepare(step: Step) -> None:
    """Make and start what the step needs, and wait for its first plans, `run.wait_s` at most; in mode `observe`, where
    nothing is placed by them, not at all.
    """
    waits_until = time.monotonic() + step.settings.run.wait_s
    problems, directories = step.problems, step.directories
    problems.guard(lambda: _log(step, directories.make_spool()))
    problems.guard(step.others.find, have_spool=bool(directories.spool))
    if moved := directories.make_map(beside_spools=step.others.sends):
        problems.note(moved)  # as if the site's setting were another: that is said in the job's line
    control.write_control(directories.map_here)
    problems.guard(control.write_about, directories.map_here, step.about())
    step.used = used_lately(step.history, step.fs_names, step.job.application)
    step.record_mode = "light" if step.used else "full"
    if step.mode != "observe":
        step.plan()
    # While clientd and mdsd are at work.
    deciding = problems.in_background(_decide, step) if step.used else None
    directories.sweep()
    for schedule in step.schedules.values():
        schedule.first.wait(max(0.0, waits_until - time.monotonic()))
    if deciding:
        deciding.join(max(0.0, waits_until - time.monotonic()))
    if step.others.sends:
        left_s = waits_until - time.monotonic()
        names = directories.spool, directories.map
        problems.guard(step.others.send, *names, directories.map_here, step.generation, left_s)


def _log(step: Step, moved: str) -> None:
    if moved:
        step.problems.log(moved)


def _decide(step: Step) -> None:
    """Record in full when the history of any of these file systems asks for it."""
    from tarazu.predict import rules

    modes = set()
    for fs_name in step.used:
        runs, problems = step.history.recorded(fs_name, step.job.application, DECIDING_RUNS)
        for problem in problems:
            step.problems.note(problem)
        modes.add(rules.decide(runs).record_mode)
    step.record_mode = "light" if modes == {"light"} else "full"


def environment(step: Step) -> dict[str, str]:
    """The program's environment: the preload and its settings. Raises TarazuError."""
    run = step.settings.run
    ours = {
        "TARAZU_STEP": step.run_id,
        "TARAZU_MODE": step.mode,
        "TARAZU_RECORD": step.record_mode,
        "TARAZU_SPOOL": step.directories.spool,
        "TARAZU_HERE": step.directories.found_here(run.stop_file),
        "TARAZU_APPLY": run.apply,
        "TARAZU_LISTS": step.settings.layout.lists,
        "TARAZU_INCLUDE": ":".join(run.include),
        "TARAZU_EXCLUDE": ":".join(run.exclude),
        "TARAZU_EXCLUDE_PROGRAMS": ":".join(run.exclude_programs),
        "TARAZU_MAP": str(step.directories.map),
        "TARAZU_STOP": run.stop_file,
        "TARAZU_JOB": step.job.job_id,
        "TARAZU_ARRAY_JOB": step.job.array_job,
        "TARAZU_ARRAY_INDEX": "" if step.job.array_index is None else str(step.job.array_index),
    }
    library = str(built.library_path("libtarazu.so"))
    if " " in library or ":" in library:
        raise TarazuError(f"{library}: expected a path without space and colon, as LD_PRELOAD needs it")
    before = step.environ.get("LD_PRELOAD", "")
    ours["LD_PRELOAD"] = f"{library}:{before}" if before else library
    ours = {k: v for k, v in ours.items() if v}
    environ = {**step.environ, **ours}
    set_names = [name for name in dict.fromkeys([*ours, "TARAZU_MOUNTS"]) if name in environ]
    return environ | launchers.open_mpi_forwarded(step.argv, step.environ, set_names)
