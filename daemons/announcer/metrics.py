"""tarazu-announcer's families."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from tarazu.daemons.metrics.exporter import Ask
from tarazu.daemons.metrics.families import build, counter, gauge, histogram
from tarazu.tune.exchange import MODES

if TYPE_CHECKING:
    from tarazu.daemons.announcer.service import Announcer


def families(announcer: Announcer, ask: Ask) -> Iterator[Metric]:
    yield from build()
    yield from ask(lambda: list(_own(announcer)))


def _own(announcer: Announcer) -> Iterator[Metric]:
    following = announcer.following
    yield gauge(
        "announcer_mode", "What this node allows: 0 observe, 1 advise, 2 apply.", MODES.index(announcer.mode)
    )
    yield histogram("announcer_sample_seconds", "Time to read what this node saw.", announcer.samples)
    yield counter(
        "announcer_intervals_told", "Intervals with I/O that the council was told.", announcer.observed
    )
    yield counter("announcer_unsent", "Messages that nobody was there for.", announcer.unsent)
    yield counter(
        "announcer_decisions_refused",
        "Decisions of other councils or groups, or out of order.",
        following.refused,
    )
    yield gauge("announcer_followed", "1 while a council is followed.", bool(following.council))
    yield gauge(
        "announcer_council_silent_seconds", "Since it spoke last.", time.monotonic() - following.heard_at
    )
    yield gauge(
        "announcer_levers_set", "Levers that are not as they were.", len(announcer.keeper.kept.levers)
    )
    yield gauge("announcer_problem", "1 while a lever cannot be what was decided.", bool(announcer.problem))
