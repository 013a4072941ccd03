"""Which decisions an announcer follows: of one council, of its own group.

Pure: no clock. The first council that answers is followed until it is silent for `SILENT_S`; another one's
decisions are refused meanwhile.
"""

from __future__ import annotations

from tarazu.parts.changes.ordered import Mode
from tarazu.parts.council.exchange import MODES, Decided

NOTHING = Decided("", "", "", 0, "observe")


def least(*modes: Mode) -> Mode:
    return min(modes, key=MODES.index)


class Following:
    def __init__(self, group: str, silent_s: float, now: float) -> None:
        self.group = group
        self.silent_s = silent_s
        self.decided = NOTHING
        """What counts; `NOTHING` while no council is followed."""
        self.heard_at = now
        self.refused = 0

    @property
    def council(self) -> str:
        """Empty while none is followed."""
        return self.decided.council

    def take(self, decided: Decided, now: float) -> str:
        """Why this decision does not count; empty when it does, or is what counts already."""
        if decided.group != self.group:
            self.refused += 1
            return f"expected the group {self.group or '(none)'}, found {decided.group or '(none)'}"
        known = self.decided
        if known.council and decided.council != known.council and now - self.heard_at <= self.silent_s:
            self.refused += 1
            return f"expected the council {known.council}, which is followed, found {decided.council}"
        self.decided, self.heard_at = decided, now
        return ""

    def is_silent(self, now: float) -> bool:
        """A council that is followed has not spoken for too long: it is followed no more."""
        if not self.council or now - self.heard_at <= self.silent_s:
            return False
        self.decided = NOTHING
        return True
