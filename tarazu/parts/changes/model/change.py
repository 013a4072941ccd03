"""A change of a running system: what is wanted of one target of one lever, why, and what it is expected to give."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

MOST = 1e9
"""Of a score: what never ends."""
ALL = ""
"""As the name of a part: all parts that the target has, those too that come later."""


class Part(NamedTuple):
    """One thing that a lever sets, and what is in force of it."""

    name: str
    """Lustre's parameter by its full name (for NRS with the queue after it), an OST of a pool, a rule, a path …"""
    value: str
    of: str = ""
    """Which device of that name, or which directory: another one has another text here."""


class Score(msgspec.Struct, frozen=True):
    """One measure that a change is decided by, less is better: what it is now, and what is expected of it after."""

    measure: str
    """A goal, hard or soft (`goals`): `dead`, `space`, `time`, `evenness` …"""
    before: float
    after: float
    unit: str = ""
    """What it counts, for people: `dead OSTs in the pool`."""

    def __post_init__(self) -> None:
        for name in ("before", "after"):
            if not math.isfinite(getattr(self, name)):  # JSON has no such number, and notes must be readable
                msgspec.structs.force_setattr(self, name, MOST)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    lever: str
    target: str
    """Which of the lever's: a pool `scratch.good`, a parameter, a rule, a directory; empty: this node."""
    wanted: dict[str, str]
    """Part → value; `ALL` for those that are not named."""
    why: str = ""
    asked_by: str = ""
    scores: tuple[Score, ...] = ()
    lasts_s: float = 0.0
    """From its setting, or from the last time that it was asked for; 0: until nobody wants it."""
    mends: bool = False
    """It only takes work away from what is dead, sick or full: so it may be made while something is."""

    @property
    def key(self) -> tuple[str, str]:
        """(lever, target): of each there is one change at a time."""
        return self.lever, self.target

    @property
    def id(self) -> str:
        """The same for the same wish, whoever has it and why."""
        text = repr((self.lever, self.target, sorted(self.wanted.items())))
        return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]


def value_of(wanted: Mapping[str, str], part: str) -> str | None:
    """What is wanted of a part; None: nothing."""
    return wanted.get(part, wanted.get(ALL))
