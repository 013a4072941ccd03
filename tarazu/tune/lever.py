"""A lever: a parameter, or several that belong together, with the few values that may be set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import msgspec


class LeverParameter(NamedTuple):
    """One thing that a lever sets, and what is in force of it."""

    name: str
    """Lustre's parameter by its full name; for NRS with the queue after it."""
    value: str
    of: str = ""
    """Which device of that name: another one, mounted later, has another text here."""


class Before(msgspec.Struct, frozen=True):
    """What was there before anything was set: enough to restore it, after any crash."""

    parameters: tuple[LeverParameter, ...]


class Lever(ABC):
    """One lever on one node. All calls but `now` may take as long as `lctl` may, a few seconds.

    Raises Unavailable where the parameter is not to be had or not to be set, BadInput for a value that is not one or
    that Lustre refuses. `steps`: values that have been set or were going to be, the last one newest; "" is what was
    there before. With more than one a crash may have left anything between them.
    """

    name: str
    """As in `tune.levers`: `nrs`, `max_rpcs_in_flight` …"""
    values: tuple[str, ...]
    """All that may be set, as people write them: `fifo`, `crrn 16`. Nothing else ever is."""

    @abstractmethod
    def now(self) -> tuple[LeverParameter, ...]:
        """What is in force, whatever it is; empty where there is nothing on this node that it could set.

        Reads files only: a tenth of a millisecond a parameter. Raises Unavailable.
        """

    def current(self) -> str:
        """What is in force, as in `values`; another text where it is none of them, empty where there is nothing that it
        could set. Raises Unavailable.
        """
        return ", ".join(dict.fromkeys(parameter.value for parameter in self.now()))

    @abstractmethod
    def before(self) -> Before:
        """What is in force, to be noted on disk before the first `set`. Raises Unavailable where it may not be
        changed, as what an administrator limits on purpose, or could not be restored.
        """

    @abstractmethod
    def set(self, value: str) -> None:
        """Set it and read it back."""

    @abstractmethod
    def foreign(self, before: Before, steps: Sequence[str]) -> tuple[LeverParameter, ...]:
        """What somebody else has changed since, as it is now. What is gone, as a device with its file system, is
        nobody's.
        """

    @abstractmethod
    def restore(self, before: Before, steps: Sequence[str]) -> tuple[LeverParameter, ...]:
        """Set what was there and read it back; what is foreign is left alone, and returned."""
