"""The real council on simulated I/O nodes: what announcers say, what is decided, what they set, in simulated time.

A second of the daemons is one interval of the simulation, for both are what an announcer waits between two
observations (paper, section V-E). Decisions come without delay: measured, they take some milliseconds of that second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tarazu.parts.council.announcer.following import Following
from tarazu.parts.council.council import Council, Rules
from tarazu.parts.council.detect import detect
from tarazu.parts.council.exchange import Decided, Observed, encode, from_council, to_council
from tarazu.parts.council.observation import Observation
from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study.learning import LEARNERS
from tarazu.parts.council.study.requests.outcome import NodeInterval
from tarazu.parts.council.study.requests.situation import INTERVAL_S, WINDOWS, WINDOWS_S

LEVER = "window"
FIRST = 3
"""Index of the window that is in force before anything is decided: 1 ms."""


SILENT_S = 30.0


class Manner(NamedTuple):
    """How the council learns and decides."""

    name: str
    learner: str
    dwell_s: float
    """Of the daemons' seconds."""
    worse: float
    classifier: bool = False
    """Patterns are those that the product detects, else the true ones."""


def described(manner: Manner | None, window: int) -> str:
    """How a run is controlled; None: by one window for all."""
    return manner.name if manner else WINDOWS[window]


PAPER = Manner("the paper's", "epsilon-greedy", 0.0, 1.0)
"""Algorithm 1: a decision a second, nothing is taken back."""
OURS = Manner("ours", "tarazu", 1.0, 0.2)
"""A window costs nothing to set, and tells within a second: so it need not stay longer than the paper's."""


class ControlStep(NamedTuple):
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
    """What `simulate` asks at the end of each interval: announcers' messages, the council's answer, what follows."""

    def __init__(self, manner: Manner, seed: int, interval_s: float = INTERVAL_S) -> None:
        self.steps: list[ControlStep] = []
        self.council = Council(
            {LEVER: WINDOWS},
            LEARNERS[manner.learner],
            Rules(manner.dwell_s, manner.worse),
            seed=seed,
            detect=detect if manner.classifier else self._true,
        )
        self._interval_s = interval_s
        self._following: dict[int, Following] = {}
        self._seen: NodeInterval | None = None
        self._explored = False

    def __call__(self, now_s: float, seen: Sequence[NodeInterval]) -> float:
        second = now_s / self._interval_s
        first = seen[0]
        window = WINDOWS_S.index(first.window_s)
        self.steps.append(ControlStep(second, first.phase, first.pattern, window, self._explored))
        for self._seen in seen:
            node = self._seen.node
            in_force = {LEVER: WINDOWS[WINDOWS_S.index(self._seen.window_s)]}
            sequence = len(self.steps)
            told = to_council(
                encode(
                    Observed(
                        f"{sequence}",
                        "",
                        f"node{node}",
                        "router",
                        1,
                        sequence,
                        self._seen.observation,
                        in_force,
                        "apply",
                    )
                )
            )
            assert isinstance(told, Observed)
            self.council.receive(told.host, told.observation, told.in_force, second, told.mode)
            self.council.decide(second)
        decision = self.council.decision
        self._explored = decision.explored
        data = encode(
            Decided("", "council", 1, "", decision.generation, "apply", decision.values, decision.why)
        )
        chosen = {self._set_by(each.node, data, second) for each in seen}
        assert len(chosen) == 1, "all I/O nodes follow one council"
        return WINDOWS_S[chosen.pop()]

    def _set_by(self, node: int, data: bytes, second: float) -> int:
        """Index of the window that this node's announcer sets."""
        following = self._following.setdefault(node, Following("", SILENT_S, second))
        decided = from_council(data)
        assert isinstance(decided, Decided)
        following.take(decided, second)
        value = following.decided.values.get(LEVER)
        return FIRST if value is None else WINDOWS.index(value)

    def _true(self, observation: Observation) -> Pattern | None:
        """A perfect detection. Where two phases met in an interval it shows neither."""
        seen = self._seen
        assert seen is not None
        mixed = observation.read.bytes > 0 and observation.write.bytes > 0
        return None if mixed and seen.pattern.operation != "both" else seen.pattern
