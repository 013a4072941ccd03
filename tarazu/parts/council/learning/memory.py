"""What learners remember: something for each pattern, bounded, to disk and back."""

from __future__ import annotations

from abc import abstractmethod
from random import Random
from typing import ClassVar, Generic, TypeVar

import msgspec

from tarazu.errors import BadInput
from tarazu.malformed import MALFORMED
from tarazu.parts.council.learner import Learner
from tarazu.parts.council.learning.value import MOST_REWARD
from tarazu.parts.council.pattern import Pattern

VERSION = 1
MOST_ARMS = 64
MOST_PATTERNS = 512
"""Of more, those that were seen longest ago are forgotten."""
MOST_BYTES = 1 << 24
"""Of knowledge that is read."""
MOST_FILES = 1 << 40
MOST_REQUEST = 1 << 50


class Context(msgspec.Struct, kw_only=True):
    """What is known of one pattern."""

    pattern: Pattern
    last: int = 0
    """When it was observed, as the number of observations before."""


C = TypeVar("C", bound=Context)


class Knowledge(msgspec.Struct, Generic[C], forbid_unknown_fields=True):
    learner: str
    version: int
    arms: int
    arm: int
    """The last choice."""
    observed: int
    contexts: list[C]


class Remembering(Learner, Generic[C]):
    """A learner that keeps a `kind` of context for each pattern."""

    kind: ClassVar[type[Context]]

    def __init__(self, arms: int, seed: int = 0) -> None:
        if not 1 <= arms <= MOST_ARMS:
            raise BadInput("arms", f"1 to {MOST_ARMS}", arms)
        self.arms = arms
        self._random = Random(seed)
        self._contexts: dict[Pattern, C] = {}
        self._observed = 0
        self._arm = 0

    @abstractmethod
    def _new(self, pattern: Pattern) -> C:
        """The context of a pattern that comes for the first time."""

    @abstractmethod
    def _check(self, context: C) -> bool:
        """Whether what was read can be a context of this learner."""

    def _context(self, pattern: Pattern, arm: int, reward: float) -> C:
        """Where an observation belongs. Raises BadInput for an observation that cannot be."""
        if not 0.0 < reward <= MOST_REWARD:
            raise BadInput("reward", f"a number above 0, {MOST_REWARD:g} at most", reward)
        if not 0 <= arm < self.arms:
            raise BadInput("arm", f"0 to {self.arms - 1}", arm)
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
        return tuple(self._contexts)

    def knowledge(self) -> msgspec.Raw:
        return msgspec.Raw(
            msgspec.json.encode(
                Knowledge(
                    self.name, VERSION, self.arms, self._arm, self._observed, list(self._contexts.values())
                )
            )
        )

    def restore(self, knowledge: msgspec.Raw) -> None:
        where = f"knowledge of {self.name}"
        text = bytes(knowledge)
        if len(text) > MOST_BYTES:
            raise BadInput(where, f"{MOST_BYTES} bytes at most", len(text))
        try:
            read: Knowledge[C] = msgspec.json.decode(text, type=Knowledge[self.kind])  # type: ignore[name-defined]
        except MALFORMED as error:
            raise BadInput(where, f"JSON of a learner's knowledge ({error})") from None
        for what, expected, found in (
            ("learner", self.name, read.learner),
            ("version", VERSION, read.version),
            ("number of values", self.arms, read.arms),
        ):
            if expected != found:
                raise BadInput(f"{what} in {where}", str(expected), found)
        if not (0 <= read.arm < self.arms and 0 <= read.observed < 1 << 60):
            raise BadInput(where, "a last choice and a number of observations", (read.arm, read.observed))
        if len(read.contexts) > MOST_PATTERNS:
            raise BadInput(where, f"{MOST_PATTERNS} patterns at most", len(read.contexts))
        contexts = {context.pattern: context for context in read.contexts}
        if len(contexts) < len(read.contexts):
            raise BadInput(where, "each pattern once")
        for context in read.contexts:
            _, _, files, request_bytes = context.pattern
            fits = 0 <= files <= MOST_FILES and 0 <= request_bytes <= MOST_REQUEST
            if not (fits and 0 <= context.last <= read.observed and self._check(context)):
                raise BadInput(where, "what can have been observed", str(context.pattern)[:80])
        self._contexts, self._observed, self._arm = contexts, read.observed, read.arm
        self._restored()

    def _forgotten(self, pattern: Pattern) -> None:
        """There were too many patterns."""

    def _restored(self) -> None:
        """Forget what belongs to the time before."""
