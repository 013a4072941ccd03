"""The leader of a job step, which is what `tarazu run` becomes: what it does around the program, in order.

When clientd or mdsd is silent the program runs as it would without tarazu, and its end waits for nobody. Whatever fails
here is noted in the log file beside the job's line; it never reaches the program.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import time
from collections.abc import Mapping

from tarazu.errors import TarazuError
from tarazu.run import before
from tarazu.run.program import StartedProgram, hold_signals
from tarazu.run.step import Step

LOAD_AFTER_S = 0.2
"""What the end needs is loaded beside a program that has run so long; of a shorter one at its end, as far as it is."""
FOLLOW_AFTER_S = 1.0
"""What a program that has run so long places is followed."""
LATER_S = 2.0
"""In mode `observe` a program that has run so long is forecast, and beside any steps are remembered that nobody led."""

LATE = (
    "tarazu.statx",
    "tarazu.run.end",
    "tarazu.trace.parser",
    "tarazu.run.not_placed",
    "tarazu.run.meanwhile",
    "tarazu.trace.runfile",
    "tarazu.run.plan.reports",
    "tarazu.run.plan.map_writer",
    "tarazu.run.plan.schedule",
    "tarazu.run.plan.asking",
    "tarazu.run.during",
    "tarazu.run.nodes.reach",
    "tarazu.run.nodes.gather",
    "tarazu.run.nodes.send_map",
    "tarazu.run.nodes.framed",
    "tarazu.run.parts",
    "tarazu.run.handed",
    "hashlib",
    "json",
    "random",
    "resource",
    "tempfile",
    "urllib.parse",
)
"""What is loaded beside the program, in the order in which it may be wanted: by the step's end an upgrade or a removal
may have put other files in its place, or none.
"""


def lead(step: Step) -> int:
    """Run the program; its status as `subprocess` gives it. Raises OSError when it cannot be started."""
    hold_signals()
    environ = dict(step.environ)
    if step.problems.guard(before.prepare, step):
        step.problems.guard(lambda: environ.update(before.environment(step)))
    step.started_s = time.monotonic()
    started_s = time.time()
    try:
        program = _start(step, environ)
    except OSError:
        from tarazu.run import end

        step.over.set()
        end.give_back(step)
        end.remove(step)
        raise
    gc.enable()
    step.others.program = program
    step.problems.in_background(_beside, step)
    try:
        from tarazu.run import end
    except Exception:  # it is just being uninstalled, or upgraded
        step.over.set()
        return program.wait()
    status = program.wait()
    step.over.set()
    step.news.set()
    for schedule in step.schedules.values():
        schedule.wake()
    step.problems.guard(end.finish, step, status, started_s)
    step.problems.guard(end.remove, step)
    return status


def _beside(step: Step) -> None:
    """A program that ends at once should share its core with none of this."""
    if step.over.wait(LOAD_AFTER_S):
        return
    load(step)
    if step.settings.part:  # a part of which the settings say nothing does nothing in a step
        step.problems.in_background(step.begin_parts)
    if step.over.wait(FOLLOW_AFTER_S - LOAD_AFTER_S):
        return
    step.problems.in_background(step.directories.lease.keep)
    if step.mode != "observe":
        step.problems.guard(_look_after, step)
    if step.over.wait(LATER_S - FOLLOW_AFTER_S):
        return
    if step.mode == "observe":
        step.problems.guard(step.plan)
    step.problems.guard(_gather, step)


def load(step: Step) -> None:
    """All that the step may still need of Python's and tarazu's files; as much of it as there is time for."""
    with contextlib.suppress(Exception):  # it is just being uninstalled, or upgraded
        for name in LATE:
            if step.over.is_set():
                return
            importlib.import_module(name)
        from tarazu import native

        native.load()


def _look_after(step: Step) -> None:
    from tarazu.run import during

    during.start(step)


def _gather(step: Step) -> None:
    """What nodes handed over of earlier steps; what cannot be remembered now is later."""
    with contextlib.suppress(TarazuError, OSError):
        if (step.state_dir / "steps").is_dir():
            from tarazu.run import handed

            handed.gather(step.settings)


def _start(step: Step, environ: Mapping[str, str]) -> StartedProgram:
    """The program; as it would be without tarazu where its command line leaves no room for our variables."""
    try:
        return StartedProgram(step.argv, environ)
    except OSError as error:
        if error.errno != errno.E2BIG or environ == step.environ:
            raise
        step.problems.note(
            "the command line leaves no room for more variables: nothing is recorded or placed"
        )
        return StartedProgram(step.argv, step.environ)
