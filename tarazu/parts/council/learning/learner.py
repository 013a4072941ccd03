"""What learns: a contextual bandit over the values of one lever (paper, section IV, algorithm 1), and what it remembers
of each pattern, bounded, to disk and back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

from tarazu.errors import BadInput
from tarazu.malformed import MALFORMED, described
from tarazu.parts.council.learning.value import CLASSES, MOST_REWARD, SLOWEST, Belief, Value
from tarazu.parts.council.pattern import Pattern

VERSION = 2
MOST_PATTERNS = 512
"""Of more, those that were seen longest ago are forgotten."""
MOST_CREDIT = 30.0

Count = Annotated[int, Meta(ge=0, lt=1 << 60)]


class Known(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Of one pattern: rewards by class of demand and value."""

    pattern: Pattern
    last: Count = 0
    """When it was observed, as the number of observations before."""
    decisions: Count = 0
    changed: Count = 0
    """The decision at which it last gave something else than before; 0: never."""
    cells: dict[Annotated[int, Meta(ge=0, lt=CLASSES)], list[Value]]
    first: Count = 0
    """Of `careful`: the value that was in force before anything was decided."""
    credit: Annotated[float, Meta(gt=-1e6, le=MOST_CREDIT)] = 0.0
    """Of `careful`: intervals of it that trials may cost now."""

    def cell(self, number: int, arms: int) -> list[Value]:
        values = self.cells.get(number)
        if values is None:
            values = self.cells[number] = [Value() for _ in range(arms)]
        return values

    def fits(self, arms: int) -> bool:
        """Whether so many values can have been observed."""
        return (
            self.changed <= self.decisions
            and self.first < arms
            and all(
                len(values) == arms and all(v.mean >= SLOWEST * (1 - 1e-9) or not v.seen for v in values)
                for values in self.cells.values()
            )
        )


class Knowledge(msgspec.Struct, forbid_unknown_fields=True):
    learner: str
    version: int
    arms: int
    arm: Count
    """The last choice."""
    observed: Count
    contexts: Annotated[list[Known], Meta(max_length=MOST_PATTERNS)]


class Choice(NamedTuple):
    """The value that all nodes should use next."""

    arm: int
    """Index of the lever's values."""
    explored: bool
    """Chosen to learn, not because it was thought the best."""


class Learner(ABC):
    """Learns from observations of nodes that all used one value, and says which all should use next.

    Same seed and same calls: same choices. A reward is finite and above 0; nodes without I/O are not observed.
    """

    name: ClassVar[str]
    without: frozenset[int] = frozenset()
    """Values that no node takes now, never all: another one is chosen."""

    def __init__(self, arms: int, seed: int = 0) -> None:
        """`arms`: number of the lever's values, at least one."""
        self.arms = arms
        self._random = Random(seed)
        self._contexts: dict[Pattern, Known] = {}
        self._observed = 0
        self._arm = 0

    @abstractmethod
    def observe(self, host: str, pattern: Pattern, arm: int, reward: float, *, demand: float = 0.0) -> None:
        """One interval of one node. `demand`: as in Observation."""

    @abstractmethod
    def choose(self) -> Choice:
        """The next value, for the hosts that were observed since the last choice; with none the one before."""

    @abstractmethod
    def beliefs(self, pattern: Pattern) -> tuple[Belief, ...]:
        """(arms,). For a pattern that was never seen too."""

    def _new(self, pattern: Pattern) -> Known:
        """The context of a pattern that comes for the first time."""
        return Known(pattern=pattern, cells={})

    def _context(self, pattern: Pattern, arm: int, reward: float) -> Known:
        """Where an observation belongs. Raises BadInput for a reward that cannot be."""
        if not 0.0 < reward <= MOST_REWARD:
            raise BadInput("reward", f"a number above 0, {MOST_REWARD:g} at most", reward)
        self._observed += 1
        entry = self._contexts.get(pattern)
        if entry is None:
            if len(self._contexts) >= MOST_PATTERNS:
                oldest = min(self._contexts.values(), key=lambda context: context.last).pattern
                del self._contexts[oldest]
                self._forgotten(oldest)
            entry = self._contexts[pattern] = self._new(pattern)
        entry.last = self._observed
        return entry

    def patterns(self) -> tuple[Pattern, ...]:
        """All that were seen and are remembered, in the order in which they first came."""
        return tuple(self._contexts)

    def knowledge(self) -> msgspec.Raw:
        """All that it has learned, as JSON of bounded size: what `restore` takes."""
        contexts = list(self._contexts.values())
        known = Knowledge(self.name, VERSION, self.arms, self._arm, self._observed, contexts)
        return msgspec.Raw(msgspec.json.encode(known))

    def restore(self, knowledge: msgspec.Raw) -> None:
        """Go on from there. Raises BadInput for what is not this learner's."""
        where = f"knowledge of {self.name}"
        try:
            read = msgspec.json.decode(bytes(knowledge), type=Knowledge)
        except MALFORMED as error:
            raise BadInput(where, f"JSON of a learner's knowledge ({error})") from None
        for what, expected, found in (
            ("learner", self.name, read.learner),
            ("version", VERSION, read.version),
            ("number of values", self.arms, read.arms),
        ):
            if expected != found:
                raise BadInput(f"{what} in {where}", str(expected), found)
        contexts = {context.pattern: context for context in read.contexts}
        for context in contexts.values():
            if not (context.last <= read.observed and context.fits(self.arms)):
                raise BadInput(where, "what can have been observed", str(context.pattern)[:80])
        if read.arm >= self.arms or len(contexts) < len(read.contexts):
            raise BadInput(where, "a value of these, each pattern once", read.arm)
        self._contexts, self._observed, self._arm = contexts, read.observed, read.arm
        self._restored()

    def _forgotten(self, pattern: Pattern) -> None:
        """There were too many patterns."""

    def _restored(self) -> None:
        """Forget what belongs to the time before."""


described(Knowledge)
