"""What was there before a change, and what has been set since."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tarazu.parts.changes.model.change import Change, Part
from tarazu.parts.changes.model.outcome import Gave


class Held(msgspec.Struct, frozen=True):
    """One target that is not as it was: enough to restore it after any crash."""

    change: Change
    """The newest that was set, or was about to be."""
    before: tuple[Part, ...]
    steps: tuple[dict[str, str], ...]
    """What was wanted of it, one when it is settled, more while it is being changed; `{}` is what was there before."""
    since_s: float = 0.0
    """Unix time of its setting, as it is wanted now; 0: not known, for a clock was ahead."""
    asked_s: float = 0.0
    """When it was asked for last: from then on it lasts `Change.lasts_s`."""
    boot: str = ""
    lasting: bool = False
    theirs: dict[str, str] = {}
    """Part → what somebody else has set since: his, until it is applied anew by hand. Nothing of it is restored."""
    resting: bool = False
    """What is wanted is not set for a while: the site is stopped."""
    askers: tuple[str, ...] = ()
    """The job that it is for; empty: none."""
    gave: Gave | None = None
    first_s: float = 0.0
    """When it was first set; 0: not known."""

    @property
    def id(self) -> str:
        return self.change.id

    @property
    def key(self) -> tuple[str, str]:
        return self.change.key

    @property
    def settled(self) -> bool:
        return len(self.steps) == 1 and not self.resting

    @property
    def half_set(self) -> bool:
        """Its setting has begun, and has not ended."""
        return len(self.steps) > 1 and not self.resting

    @property
    def left_to(self) -> str:
        """What somebody else has set since, for people; empty: nothing."""
        return text_of([Part(name, value) for name, value in self.theirs.items()])

    def ends_s(self) -> float:
        """Unix time; 0: never by itself."""
        return self.asked_s + self.change.lasts_s if self.change.lasts_s else 0.0


def text_of(parts: Sequence[Part]) -> str:
    """Of hundreds of parts: what they have in common."""
    by_value: dict[str, list[str]] = {}
    for part in parts:
        by_value.setdefault(part.value, []).append(part.name)
    return "; ".join(
        f"{names[0]}={value}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for value, names in by_value.items()
    )
