"""The state of an I/O node and of a data server."""

from __future__ import annotations

import math

from tarazu.sim.requests.disk import Drive
from tarazu.sim.requests.request import Access, Piece
from tarazu.sim.requests.schedulers import NodeScheduler, ServerScheduler
from tarazu.sim.requests.system import Disk


class IoNode:
    """An I/O node."""

    def __init__(self, number: int, scheduler: NodeScheduler) -> None:
        self.number, self.scheduler = number, scheduler
        self.arrived: list[Piece] = []
        """Since the scheduler was asked last."""
        self.busy = 0
        """Threads with a dispatch under way."""
        self.wake_s = math.inf
        self.in_s = self.out_s = 0.0
        """When the link's two directions are free again."""
        self.inside = 0
        """Requests that have arrived and are not done."""
        self.changed_s = 0.0
        self.reset()

    def reset(self) -> None:
        """A new interval."""
        self.bytes, self.count = [0, 0], [0, 0]
        self.files: tuple[set[int], set[int]] = (set(), set())
        self.demand = 0.0
        """Integral of `inside`."""
        self.log: list[tuple[float, int, int, int, bool, int]] = []
        """(when it arrived, file, offset, bytes, written, client) of each request that was done."""


class DataServer:
    """A data server with its disk."""

    def __init__(self, disk: Disk, scheduler: ServerScheduler) -> None:
        self.drive = Drive(disk)
        self.scheduler = scheduler
        self.arrived: list[Access] = []
        self.told: list[Access] = []
        """What the disk has been told of and has not begun."""
        self.idle = True
        self.wake_s = math.inf
