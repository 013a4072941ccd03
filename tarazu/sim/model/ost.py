"""OSTs: space, how fast each serves its streams, failures, and what its server would count.

A disk serves both directions by shares of its time: its link has a capacity of 1 s per second times its speed, a
byte that is written takes 1 / peak of it. Two more links without a limit count the bytes of each direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import simpy
from numpy.typing import NDArray

from tarazu.errors import BadInput, InsufficientResources
from tarazu.sim.kernel.network import Network
from tarazu.sim.model.links import Direction, Floats, Links, Numbers
from tarazu.sim.model.spec import ClusterSpec, Failure, ServiceCurve

A_READER = 1 << 24
"""A reader among the streams of a disk, where a writer is 1: both can be told from the sum."""
FILES = 2**32
"""Objects that an empty OST has room for, far more than any study makes."""


class Osts:
    """All OSTs; each array has one value per OST."""

    def __init__(self, env: simpy.Environment, network: Network, spec: ClusterSpec) -> None:
        self._env, self._network, self.spec = env, network, spec
        self.count = spec.osts
        self.total_bytes = np.full(spec.osts, spec.ost_bytes, np.int64)
        used = np.resize(np.array(spec.used or (0.0,)), spec.osts)
        self.used_bytes: Numbers = np.rint(used * spec.ost_bytes).astype(np.int64)
        """Without what is being written to new files."""
        self.base_speed: Floats = np.resize(np.array(spec.speeds or (1.0,), np.float64), spec.osts)
        self.speed = self.base_speed.copy()
        """With failures; 0: nothing moves."""
        self.active: NDArray[np.bool_] = self.speed > 0
        """As the MDS sees it."""
        self._failing: dict[int, list[float]] = {}
        curve = _curve(spec.write, spec.read)
        self._disks = _many(network, spec.osts, lambda j: network.link(self.speed[j], f"OST {j}", curve))
        self._counters = tuple(_counting(network, spec.osts, f"{d.name.lower()}s") for d in Direction)
        self._seconds = (1 / spec.write.peak_bytes_per_s, 1 / spec.read.peak_bytes_per_s)
        self._limit = (spec.write.stream_bytes_per_s, spec.read.stream_bytes_per_s)
        self.claimed = np.zeros(spec.osts, np.int64)
        """Bytes that writes to new files have taken or will have taken when they end."""
        self._not_kept = np.zeros(spec.osts)
        """Of the bytes written by ended operations: those that went where there were some already."""
        self._here = np.zeros(spec.osts, np.int64)
        self._since = np.zeros(spec.osts)
        self.busy_s = np.zeros(spec.osts)
        self.stream_s = np.zeros(spec.osts)
        """Operations under way times how long they were."""
        self.queue_max = np.zeros(spec.osts, np.int64)
        """The most operations under way at once, since `watch_queues`."""
        self.done_s = np.zeros(spec.osts)
        self.on_change: list[Callable[[], None]] = []
        """Told just before a speed changes."""

    # The path

    def links(
        self, osts: Numbers, shares: Floats, direction: Direction, request_s: Floats | float = 0.0
    ) -> tuple[Links, Floats, Numbers, float]:
        """What one operation uses of these OSTs, where each unit of it is `shares` bytes on each: links, weights,
        streams, and the highest rate that its streams allow. request_s: of the disk, seconds a byte beside those
        of the curve.
        """
        weights = np.concatenate([shares * (self._seconds[direction] + request_s), shares])
        streams = np.ones(2 * len(osts), np.int64)
        if direction is Direction.READ:
            streams[: len(osts)] = A_READER
        used = np.concatenate([self._disks[osts], self._counters[direction][osts]])
        return used, weights, streams, self._limit[direction] / float(shares.max())

    def begins(self, osts: Numbers) -> None:
        """An operation on these (distinct) OSTs is under way."""
        self._settle(osts)
        self._here[osts] += 1
        self.queue_max[osts] = np.maximum(self.queue_max[osts], self._here[osts])

    def ends(self, osts: Numbers) -> None:
        self._settle(osts)
        self._here[osts] -= 1
        self.done_s[osts] = self._env.now

    def _settle(self, osts: Numbers) -> None:
        here, passed = self._here[osts], self._env.now - self._since[osts]
        self.stream_s[osts] += here * passed
        self.busy_s[osts] += (here > 0) * passed
        self._since[osts] = self._env.now

    def settle(self) -> None:
        """Bring `busy_s` and `stream_s` of all OSTs up to now."""
        self._settle(np.arange(self.count))

    def watch_queues(self) -> None:
        """From now on for `queue_max`."""
        self.queue_max[:] = self._here

    def waiting(self, ost: int, streams: Numbers) -> bool:
        """True where operations are under way on it, by `Network.streams`."""
        return bool(streams[self._disks[ost]])

    # Space

    def claim(self, osts: Numbers, sizes: Numbers, job: str) -> None:
        """A write to a new file takes so much. Raises InsufficientResources where Lustre says ENOSPC."""
        self.claimed[osts] += sizes
        full = self.used_bytes[osts] + self.claimed[osts] > self.total_bytes[osts]
        if full.any():
            raise InsufficientResources(
                f"job {job}: no space left on OST {int(osts[full][0])} at {self._env.now:.6g} s (ENOSPC)"
            )

    def overwrote(self, osts: Numbers, sizes: Floats) -> None:
        """So much of what an ended operation wrote has taken no new space."""
        self._not_kept[osts] += sizes

    def occupy(self, osts: Numbers, sizes: Numbers) -> None:
        """Files that were there before, or (negative) are there no longer."""
        np.add.at(self.used_bytes, osts, sizes)

    def moved(self, direction: Direction) -> Floats:
        """Bytes that each OST has written or read up to now."""
        carried: Floats = self._network.carried()[self._counters[direction]]
        return carried

    def taken(self) -> Floats:
        """Used bytes of each OST now, half-written files included."""
        new = np.clip(self.moved(Direction.WRITE) - self._not_kept, 0, self.claimed)
        return np.clip(self.used_bytes + new, 0, self.total_bytes)

    def available(self) -> Numbers:
        """`kbytesavail` in bytes."""
        free: Numbers = self.total_bytes - np.ceil(self.taken()).astype(np.int64)
        return free

    # Failures

    def fails(self, failure: Failure) -> None:
        if not 0 <= failure.ost < self.count:
            raise BadInput("failure", f"an OST from 0 to {self.count - 1}", failure.ost)
        if not (0 <= failure.speed < math.inf and failure.until_s > failure.at_s >= 0):
            raise BadInput("failure", "a finite speed >= 0, and an end after its start", failure)
        for at_s, add in ((failure.at_s, True), (failure.until_s, False)):
            change = partial(self._change, failure.ost, failure.speed, add)
            if at_s <= self._env.now:
                # Now, not as an event of this moment: jobs that start in it would plan without it.
                change()
            elif at_s < math.inf:
                event = self._env.timeout(at_s - self._env.now)
                event.callbacks.append(_without_event(change))

    def _change(self, ost: int, factor: float, add: bool) -> None:
        for told in self.on_change:
            told()
        factors = self._failing.setdefault(ost, [])
        factors.append(factor) if add else factors.remove(factor)
        self.speed[ost] = self.base_speed[ost] * math.prod(factors)
        self.active[ost] = self.speed[ost] > 0
        self._network.set_capacity(int(self._disks[ost]), float(self.speed[ost]))

    # Service

    def service_s(self, moved: Floats, streams: Floats, direction: Direction) -> Floats:
        """Time that each disk needs for so many bytes with so many streams at once, at its speed of now."""
        interference = (self.spec.write, self.spec.read)[direction].interference
        loss = 1 + interference * np.maximum(0.0, streams - 1)
        speed = np.where(self.speed > 0, self.speed, np.inf)
        needed: Floats = moved * self._seconds[direction] * loss / speed
        return needed


def _without_event(call: Callable[[], object]) -> Callable[[simpy.Event], None]:
    def callback(_: simpy.Event) -> None:
        call()

    return callback


def _many(network: Network, count: int, make: Callable[[int], int]) -> Links:
    return np.array([make(j) for j in range(count)], np.int64)


def _counting(network: Network, count: int, of: str) -> Links:
    """Links that nothing limits."""
    return _many(network, count, lambda j: network.link(math.inf, f"OST {j}, {of}"))


def _curve(write: ServiceCurve, read: ServiceCurve) -> Callable[[Numbers], Floats] | None:
    """What of a disk's time n streams leave: 1 / (1 + interference (n - 1)), of both directions the mean one."""
    if not write.interference and not read.interference:
        return None

    def factor(streams: Numbers) -> Floats:
        readers, writers = streams // A_READER, streams % A_READER
        both = readers + writers
        mean = (readers * read.interference + writers * write.interference) / np.maximum(1, both)
        left: Floats = 1 / (1 + mean * np.maximum(0, both - 1))
        return left

    return factor
