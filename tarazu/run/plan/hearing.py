"""Hears from clientd when OSTs that a step's plans name are not what they were, and has the plans leave them.

A conversation stands open while nothing happens; it is made anew when clientd has gone, and when other allocations
stand than it asks about. What it misses meanwhile mdsd says again.
"""

from __future__ import annotations

import threading
import time

from tarazu.errors import TarazuError
from tarazu.run.plan.backoff import Backoff
from tarazu.run.plan.schedule import Schedule
from tarazu.wire import local

ASK_S = 5.0
"""For clientd to take the question."""
HOLD_S = 120.0
"""A conversation stands so long."""
LOOK_S = 1.0
"""So often it is seen whether it still asks about the right allocations."""
OLD_S = 60.0
"""Until a clientd that does not know the question, or failed with it, is asked again."""


def keep(schedule: Schedule, socket: str, news: threading.Event) -> None:
    """The body of the thread. `news`: there is something to tell clientd."""
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


def _hear(schedule: Schedule, socket: str, ids: tuple[str, ...]) -> local.LocalMessage | None:
    """The answer; None when there was none for so long, or none is needed any more. Raises Unavailable."""
    with local.connect(socket, ASK_S) as channel:
        channel.send(local.TargetsWait(schedule.plans.step.fs_name, ids))
        until = time.monotonic() + HOLD_S
        while time.monotonic() < until and not schedule.over.is_set():
            if channel.wait(LOOK_S):
                return channel.receive()
            if schedule.plans.promises.request_ids() != ids:
                break
    return None
