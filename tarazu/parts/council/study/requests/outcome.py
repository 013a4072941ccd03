"""What is asked of a simulation, and what it gives: how long it took, what each I/O node saw in each interval."""

from __future__ import annotations

from typing import NamedTuple

from tarazu.parts.council.pattern import Observation, Pattern


class Setting(NamedTuple):
    """What schedules."""

    scheduler: str = "twins"
    """Of the I/O nodes: fifo, hbrr, twins."""
    window_s: float = 1e-3
    """Of TWINS."""


class NodeInterval(NamedTuple):
    """One I/O node in one interval."""

    at_s: float
    """The interval's end."""
    node: int
    observation: Observation
    pattern: Pattern
    """The true one, of the phase that ran at the end."""
    window_s: float
    """TWINS' window in the interval (of other schedulers: whatever was set)."""
    phase: int
    """Number of the phase that ran at the end."""


class PhaseTimes(NamedTuple):
    """When the first process of a phase started, and when its last request was done."""

    name: str
    begin_s: float
    end_s: float
    bytes: int


class RequestsOutcome(NamedTuple):
    """All of one run. Same arguments: the same, bit for bit."""

    makespan_s: float
    bytes: int
    phases: tuple[PhaseTimes, ...]
    seen: tuple[NodeInterval, ...]
    """In the order of time, then of nodes. Only whole intervals, and the last one if it is at least half of one; of
    nodes that did no I/O, too."""
    busy_s: tuple[float, ...]
    """Of each server's disk."""
    turned_s: tuple[float, ...]
    """Of it, seeking and waiting for the disk to turn."""
    accesses: int
    """Of the disks; requests of the processes that were dispatched together count as one."""

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.makespan_s
