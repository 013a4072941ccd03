"""A lever: a parameter, or several that belong together, with the few values that may be set."""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec


class Before(msgspec.Struct, frozen=True):
    """What was there before anything was set: enough to restore it, after any crash."""

    parameters: tuple[tuple[str, str], ...]
    """(Lustre's parameter by its full name, its value), in the order in which they are restored."""


class Lever(ABC):
    """One lever on one node. All calls may take as long as `lctl` may, a few seconds; raise Unavailable where the
    parameter is not there or not to be set, BadInput for a value that is not listed or that Lustre refuses.
    """

    name: str
    """As in `tune.levers`: `nrs`, `max_rpcs_in_flight` …"""
    values: tuple[str, ...]
    """All that may be set, as people write them: `fifo`, `crrn 16`. Nothing else ever is."""

    @abstractmethod
    def current(self) -> str:
        """What is in force, as in `values`; another text where it is none of them."""

    @abstractmethod
    def before(self) -> Before:
        """What is in force, whatever it is. Noted on disk before the first `set`."""

    @abstractmethod
    def set(self, value: str) -> None:
        """Set it and read it back."""

    @abstractmethod
    def restore(self, before: Before) -> None:
        """Set what was there and read it back."""
