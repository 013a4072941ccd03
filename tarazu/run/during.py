"""While the program of a job step runs, each in a thread of its own: it follows the spools; it reports to clientd
that the step is alive and which of its placed files were closed, and learns when OSTs of its plans have changed.
"""

from __future__ import annotations

import threading
import time

from tarazu.errors import TarazuError
from tarazu.run.plan.reports import TELL_S
from tarazu.run.plan.schedule import Backoff, PlanSchedule
from tarazu.run.step import Step
from tarazu.run.watch import SpoolWatch
from tarazu.wire import local
from tarazu.wire.channel import connect


def start(step: Step) -> None:
    """Start the threads."""
    step.problems.in_background(_keep_telling, step)
    for schedule in step.schedules.values():
        step.problems.in_background(_keep_hearing, schedule, step.settings.clientd.socket, step.news)
    here = step.directories.spool_here
    if here and step.settings.predict.look_s:
        watch = SpoolWatch(step.directories.spool, here, step.job, step.over)
        step.problems.in_background(_keep_looking, step, watch)


def _keep_looking(step: Step, watch: SpoolWatch) -> None:
    """Look at the spools every `predict.look_s`. On a slow file system it may take long."""
    look_s = step.settings.predict.look_s
    while not step.over.wait(max(look_s, watch.pause_s)):
        full = watch.full
        step.problems.guard(_look, step, watch)
        if watch.full and not full:
            step.problems.log(
                "too many files to follow: from now on new and closed files are seen at the end of the step"
            )
        if any(plans.promises.news for plans in step.plans):
            step.news.set()


def _look(step: Step, watch: SpoolWatch) -> None:
    """Note what was closed; the run so far may be planned from."""
    seen = watch.look()
    for fs_name, schedule in step.schedules.items():
        schedule.plans.promises.note(seen.files, everywhere=seen.everywhere)
        if fs_name in seen.outcomes:
            schedule.observe(seen.outcomes[fs_name], watch)


def _keep_telling(step: Step) -> None:
    """Report to clientd that the step is alive, and what is new; nothing else that is slow may delay it."""
    alive_s = step.settings.run.alive_s
    backoff = Backoff(min(1.0, alive_s / 4), alive_s / 2)
    tell_at = time.monotonic() + min(alive_s, step.settings.predict.look_s or alive_s)
    while not step.over.is_set():
        news = step.news.wait(max(0.01, tell_at - time.monotonic()))
        step.news.clear()
        if step.over.is_set() or (news and backoff.attempts and time.monotonic() < tell_at):
            continue
        if step.problems.guard(_tell, step):
            backoff.succeeded()
            tell_at = time.monotonic() + alive_s
        else:
            tell_at = time.monotonic() + backoff.failed()


def _tell(step: Step) -> None:
    for promises in (plans.promises for plans in step.plans):
        while (progress := promises.progress()) and not step.over.is_set():
            try:
                with connect(step.settings.clientd.socket, TELL_S, deadline_s=TELL_S) as channel:
                    answer = channel.ask(progress)
                    while isinstance(answer, local.PromiseWanted):
                        answer = channel.ask(promises.told(answer.request_id))
            except BaseException:
                promises.untold(progress)
                raise
            if not promises.news:
                break


ASK_S = 5.0
"""For clientd to take the question."""
HOLD_S = 120.0
"""A conversation stands so long."""
LOOK_S = 1.0
"""So often it is seen whether it still asks about the right allocations."""
OLD_S = 60.0
"""Until a clientd that does not know the question, or failed with it, is asked again."""


def _keep_hearing(schedule: PlanSchedule, socket: str, news: threading.Event) -> None:
    """Have the plans leave OSTs that clientd names. `news` is set when there is something to tell clientd.

    A conversation stands open while nothing happens. It is made anew when clientd has gone, and when other allocations
    stand than it asks about; what it misses meanwhile mdsd says again.
    """
    backoff = Backoff(0.25, 2.0)
    while not schedule.over.is_set():
        ids = schedule.plans.promises.request_ids()
        pause_s = LOOK_S
        if ids:
            try:
                heard = _hear(schedule, socket, ids)
            except TarazuError:
                pause_s = backoff.failed()
            else:
                backoff.succeeded()
                pause_s = OLD_S if isinstance(heard, local.Failed) else 0.05
                if isinstance(heard, local.Busy):
                    pause_s = max(LOOK_S, heard.retry_after_s)
                if isinstance(heard, local.TargetsNews):
                    schedule.problems.guard(schedule.leave, dict(heard.osts))
                    news.set()
        schedule.over.wait(min(pause_s, OLD_S))


def _hear(schedule: PlanSchedule, socket: str, ids: tuple[str, ...]) -> local.LocalMessage | None:
    """The answer; None when there was none for so long, or none is needed any more. Raises Unavailable."""
    with connect(socket, ASK_S) as channel:
        channel.send(local.TargetsWait(schedule.plans.step.fs_name, ids))
        until = time.monotonic() + HOLD_S
        while time.monotonic() < until and not schedule.over.is_set():
            if channel.wait(LOOK_S):
                return channel.receive()
            if schedule.plans.promises.request_ids() != ids:
                break
    return None
