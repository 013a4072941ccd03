"""What learns: a contextual bandit over the values of one lever (paper, section IV, algorithm 1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import msgspec

from tarazu.parts.council.pattern import Pattern


class Choice(NamedTuple):
    """The value that all nodes should use next."""

    arm: int
    """Index of the lever's values."""
    explored: bool
    """Chosen to learn, not because it was thought the best."""


class Belief(NamedTuple):
    """What is known of one value for one pattern."""

    mean: float
    """Expected reward, bytes a second."""
    low: float
    high: float
    """Interval in which the mean lies with 95 %; (0, inf) where nothing was seen."""
    seen: float
    """Observations that it rests on; forgotten ones count less than one."""


class Learner(ABC):
    """Learns from observations of nodes that all used one value, and says which all should use next.

    Same seed and same calls: same choices. A reward is finite and above 0; nodes without I/O are not observed.
    """

    name: ClassVar[str]
    without: frozenset[int] = frozenset()
    """Values that no node takes now, never all: another one is chosen."""

    def __init__(self, arms: int, seed: int = 0) -> None:
        """`arms`: number of the lever's values, at least one."""

    @abstractmethod
    def observe(
        self, host: str, pattern: Pattern, arm: int, reward: float, *, demand: float = 0.0, at_s: float = 0.0
    ) -> None:
        """One interval of one node. `demand`: as in Observation; `at_s`: when, for those that forget by time."""

    def expect(self, pattern: Pattern, arm: int, gains: Sequence[tuple[float, float]]) -> None:
        """What each value is expected to give beside `arm`, which was in force in an interval: natural logarithm and
        standard deviation. For those that make something of it.
        """

    @abstractmethod
    def choose(self, at_s: float = 0.0) -> Choice:
        """The next value, for the hosts that were observed since the last choice; with none the one before."""

    @abstractmethod
    def beliefs(self, pattern: Pattern) -> tuple[Belief, ...]:
        """(arms,). For a pattern that was never seen too."""

    @abstractmethod
    def patterns(self) -> tuple[Pattern, ...]:
        """All that were seen and are remembered, in the order in which they first came."""

    @abstractmethod
    def knowledge(self) -> msgspec.Raw:
        """All that it has learned, as JSON of bounded size: what `restore` takes."""

    @abstractmethod
    def restore(self, knowledge: msgspec.Raw) -> None:
        """Go on from there. Raises BadInput for what is not this learner's."""
