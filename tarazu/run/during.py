"""While the program of a job step runs, each in a thread of its own: its spools are looked at, and clientd is told that
the step lives and which of its placed files were closed.
"""

from __future__ import annotations

import time

from tarazu.run.plan import hearing
from tarazu.run.plan.backoff import Backoff
from tarazu.run.plan.reports import TELL_S
from tarazu.run.step import Step
from tarazu.run.watch import Watch
from tarazu.wire import local


def start(step: Step) -> None:
    """Start the threads."""
    step.problems.in_background(_keep_telling, step)
    for schedule in step.schedules.values():
        step.problems.in_background(hearing.keep, schedule, step.settings.clientd.socket, step.news)
    here = step.directories.spool_here
    if here and step.settings.predict.look_s:
        watch = Watch(step.directories.spool, here, step.job, step.over)
        step.problems.in_background(_keep_looking, step, watch)


def _keep_looking(step: Step, watch: Watch) -> None:
    """Look at the spools every `predict.look_s`. On a slow file system it may take long."""
    look_s = step.settings.predict.look_s
    while not step.over.wait(max(look_s, watch.pause_s)):
        full = watch.full
        step.problems.guard(_look, step, watch)
        if watch.full and not full:
            step.problems.log(
                "too many files to follow: what is created and closed from now on is seen at the end"
            )
        if any(plans.promises.news for plans in step.plans):
            step.news.set()


def _look(step: Step, watch: Watch) -> None:
    """What was closed is told; the run so far may be planned from."""
    seen = watch.look()
    for fs_name, schedule in step.schedules.items():
        schedule.plans.promises.note(seen.files, everywhere=seen.everywhere)
        if fs_name in seen.outcomes:
            schedule.observe(seen.outcomes[fs_name], watch)


def _keep_telling(step: Step) -> None:
    """Tell clientd that the step lives, and what is news; nothing else that is slow may delay it."""
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
                with local.connect(step.settings.clientd.socket, TELL_S, deadline_s=TELL_S) as channel:
                    channel.ask(progress)
            except BaseException:
                promises.untold(progress)
                raise
            if not promises.news:
                break
