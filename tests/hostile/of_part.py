"""A daemon of a part under attack: `DAEMON` of its `hostile.py`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from subprocess import Popen
from typing import NamedTuple

from tests.daemons.conftest import Site
from tests.of_parts import brought

PAUSE_S = 0.02


@dataclass
class Waits:
    """How long an honest peer waited, in seconds."""

    s: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def at(self, share: float) -> float:
        return sorted(self.s)[min(len(self.s) - 1, int(share * len(self.s)))] if self.s else float("inf")


class PartDaemon(NamedTuple):
    name: str
    start: Callable[[Site], Popen[str]]
    address: Callable[[Site], str]
    attack: Callable[[str, str, int, int], None]
    """(address, keys, number, seed)"""
    honest: Callable[[Site, Waits, threading.Event, float], None]
    """A peer that asks until the event, each time at most ten times so long."""
    valid: Callable[[], list[bytes]]
    decode: Callable[[bytes], object]


def of_parts() -> dict[str, PartDaemon]:
    return {daemon.name: daemon for daemon in brought("hostile", "DAEMON")}
