"""The real council on simulated I/O nodes, in simulated time.

A second of the daemons is one interval of the simulation, for both are what an announcer waits between two
observations (paper, section V-E). Decisions come without delay: measured, they take some milliseconds of that second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tarazu.parts.council.council import Council, Rules
from tarazu.parts.council.observation import Observation
from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study import learners
from tarazu.parts.council.study.requests.outcome import NodeInterval
from tarazu.parts.council.study.requests.situation import INTERVAL_S, WINDOWS, WINDOWS_S

LEVER = "window"
FIRST = 3
"""Index of the window that is in force before anything is decided: 1 ms."""


class Manner(NamedTuple):
    """How the council learns and decides."""

    name: str
    learner: str
    dwell_s: float
    """Of the daemons' seconds."""
    worse: float


PAPER = Manner("the paper's", learners.PAPER, 0.0, 1.0)
"""Algorithm 1: a decision a second, nothing is taken back."""
OURS = Manner("ours", learners.OURS, 1.0, 0.2)
"""A window costs nothing to set, and tells within a second: so it need not stay longer than the paper's."""
MANNERS = (PAPER, OURS)


def described(manner: Manner | None, window: int) -> str:
    """How a run is controlled; None: by one window for all."""
    return manner.name if manner else WINDOWS[window]


class ControlStep(NamedTuple):
    """One interval of all I/O nodes."""

    second: float
    """When it ended, in the daemons' seconds."""
    window: int
    """Index of the window that was in force."""


class Control:
    """What `simulate` asks at the end of each interval."""

    def __init__(self, manner: Manner, seed: int) -> None:
        self.steps: list[ControlStep] = []
        self.council = Council(
            {LEVER: WINDOWS},
            learners.LEARNERS[manner.learner],
            Rules(manner.dwell_s, manner.worse),
            seed=seed,
            detect=self._true,
        )
        self._seen: NodeInterval | None = None

    def __call__(self, now_s: float, seen: Sequence[NodeInterval]) -> float:
        second, window = now_s / INTERVAL_S, WINDOWS_S.index(seen[0].window_s)
        self.steps.append(ControlStep(second, window))
        for self._seen in seen:
            host, in_force = f"node{self._seen.node}", {LEVER: WINDOWS[window]}
            self.council.receive(host, self._seen.observation, in_force, second)
            self.council.decide(second)
        value = self.council.decision.values.get(LEVER, WINDOWS[FIRST])
        return WINDOWS_S[WINDOWS.index(value)]

    def _true(self, observation: Observation) -> Pattern | None:
        """A perfect detection. Where two phases met in an interval it shows neither."""
        seen = self._seen
        assert seen is not None
        mixed = observation.read.bytes > 0 and observation.write.bytes > 0
        return None if mixed and seen.pattern.operation != "both" else seen.pattern
