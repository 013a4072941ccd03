"""What came of a round: what was set, restored, left to others, refused; and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tarazu.errors import Unavailable
from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.store import Key


class Refused(Unavailable):
    """A change that is not made: it would worsen a goal, a limit is reached, or now is not the time."""

    def __init__(self, text: str, *, waits: bool) -> None:
        super().__init__(text)
        self.waits = waits
        """It may be made later."""


class TakenOtherwise(Unavailable):
    """What was set was taken, as another value."""

    def __init__(self, text: str, found: Mapping[str, str]) -> None:
        super().__init__(text)
        self.found = dict(found)
        """Part → what is in force now, by our own setting."""


class Failure(NamedTuple):
    key: Key
    why: str


class Done(NamedTuple):
    """What one round changed, and what it could not."""

    set: tuple[Change, ...] = ()
    restored: tuple[Held, ...] = ()
    left: tuple[Held, ...] = ()
    """Of which somebody else has set something since: `theirs` says what."""
    failed: tuple[Failure, ...] = ()
    refused: tuple[Failure, ...] = ()
    waits: tuple[Failure, ...] = ()
    """Refused for now: limits, recovery."""

    @property
    def wrong(self) -> tuple[Failure, ...]:
        """What was not done."""
        return (*self.failed, *self.refused, *self.waits)

    def and_(self, more: Done) -> Done:
        return Done(
            self.set + more.set,
            self.restored + more.restored,
            self.left + more.left,
            self.failed + more.failed,
            self.refused + more.refused,
            self.waits + more.waits,
        )
