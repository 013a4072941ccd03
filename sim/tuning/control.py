"""The real council on simulated I/O nodes: what announcers say, what is decided, what they set, in simulated time.

A second of the daemons is one interval of the simulation, for both are what an announcer waits between two
observations (paper, section V-E). Decisions come without delay: measured, they take some milliseconds of that second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tarazu.sim.requests.outcome import Seen
from tarazu.sim.requests.situation import INTERVAL_S, WINDOWS, WINDOWS_S
from tarazu.tune.council import Council
from tarazu.tune.detect import detect
from tarazu.tune.observation import Observation
from tarazu.tune.pattern import Pattern

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
    classifier: bool = False
    """Patterns are those that the product detects, else the true ones."""


PAPER = Manner("the paper's", "epsilon-greedy", 0.0, 1.0)
"""Algorithm 1: a decision a second, nothing is taken back."""
OURS = Manner("ours", "tarazu", 1.0, 0.2)
"""A window costs nothing to set, and tells within a second: so it need not stay longer than the paper's."""
OURS_SLOW = OURS._replace(name="ours, dwell 10 s", dwell_s=10.0)
"""As the daemons' settings are (`tune.dwell_s`)."""


class Step(NamedTuple):
    """One interval of all I/O nodes."""

    second: float
    """When it ended, in the daemons' seconds."""
    phase: int
    pattern: Pattern
    """The true one, of the phase that ran at its end."""
    window: int
    """Index of the window that was in force."""
    explored: bool
    """It was chosen to learn."""


class Control:
    """What `simulate` asks at the end of each interval."""

    def __init__(self, manner: Manner, seed: int, interval_s: float = INTERVAL_S) -> None:
        self.steps: list[Step] = []
        self.council = Council(
            {LEVER: WINDOWS},
            manner.learner,
            dwell_s=manner.dwell_s,
            worse=manner.worse,
            seed=seed,
            detect=detect if manner.classifier else self._true,
        )
        self._interval_s = interval_s
        self._seen: Seen | None = None

    def __call__(self, now_s: float, seen: Sequence[Seen]) -> float:
        second = now_s / self._interval_s
        decision = self.council.decision
        first = seen[0]
        window = WINDOWS_S.index(first.window_s)
        self.steps.append(Step(second, first.phase, first.pattern, window, decision.explored))
        for self._seen in seen:
            in_force = {LEVER: WINDOWS[WINDOWS_S.index(self._seen.window_s)]}
            self.council.receive(f"node{self._seen.node}", self._seen.observation, in_force, second)
        decision = self.council.decide(second)
        chosen = decision.values.get(LEVER)
        return WINDOWS_S[FIRST if chosen is None else WINDOWS.index(chosen)]

    def _true(self, observation: Observation) -> Pattern | None:
        """A perfect detection. Where two phases met in an interval it shows neither."""
        seen = self._seen
        assert seen is not None
        mixed = observation.read.bytes > 0 and observation.write.bytes > 0
        return None if mixed and seen.pattern.operation != "both" else seen.pattern
