"""Which of the newest runs of applications were slow, and why: of `tarazu history report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tarazu.parts.why.causes import causes
from tarazu.parts.why.summed import summary
from tarazu.trace.records import RunRecord
from tarazu.units import counted, human_time

MOST_EXPLAINED = 10
"""Newest runs of each application that are looked at."""
MOST_LINES = 5


class SlowRun(msgspec.Struct, frozen=True):
    application: str
    fs_name: str
    start_s: float
    why: str
    """As `tarazu why` begins."""


def slow(
    runs: Mapping[tuple[str, str], Sequence[RunRecord]], since_s: float, until_s: float
) -> tuple[SlowRun, ...]:
    """The newest first."""
    return tuple(sorted(_slow(runs, since_s, until_s), key=lambda of: -of.start_s))


def _slow(
    runs_of: Mapping[tuple[str, str], Sequence[RunRecord]], since_s: float, until_s: float
) -> Iterator[SlowRun]:
    for (fs_name, application), runs in runs_of.items():
        if not any(since_s <= run.start_s < until_s for run in runs):
            continue
        sums = [summary(run, "") for run in runs]
        for run in [one for one in sums if since_s <= one.start_s < until_s][-MOST_EXPLAINED:]:
            found = causes(run, sums)
            if found.slow:
                yield SlowRun(application, fs_name, run.start_s, found.sentence)


def lines(found: Sequence[SlowRun]) -> list[str]:
    return [
        counted(len(found), "slow run"),
        *(
            f"{of.application} on {of.fs_name}, {human_time(of.start_s)}: {of.why}"
            for of in found[:MOST_LINES]
        ),
    ]
