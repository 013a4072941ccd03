"""The classes of like flows: same links, weights, streams and limit, so the same rate at all times.

A class keeps one number that all its members share: what each member that was there from the beginning would
have got so far (`service`). A member that joins at service s with an amount to carry ends when the service
is s + amount. So a class of a thousand flows costs as much as one flow whenever rates change.

Rows (classes) and entries (their links) lie in arrays that grow by doubling; what ended classes held is used again.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import NamedTuple, TypeVar

import numpy as np
import simpy
from numpy.typing import NDArray

from tarazu.sim.kernel.fluid import Floats, Ints

T = TypeVar("T", bound=np.generic)
COLUMNS = ("first", "length", "count", "limit", "rate", "service", "since", "head", "joined")
"""Arrays of LikeFlows by row."""


class Member(NamedTuple):
    """One flow of a class; the order is that of their ends, then of their starts."""

    until: float
    """The class's service at which it has ended."""
    number: int
    amount: float
    done: simpy.Event


class FlowClass:
    """One class: where its entries lie, and its members."""

    __slots__ = ("first", "key", "length", "members", "row", "streams")

    def __init__(self, key: Hashable, row: int, first: int, length: int, streams: Ints) -> None:
        self.key, self.row, self.first, self.length, self.streams = key, row, first, length, streams
        self.members: list[Member] = []


class LikeFlows:
    """All classes that have members, as arrays by row; entries of a row lie side by side."""

    def __init__(self) -> None:
        self.rows: list[FlowClass | None] = []
        self._by_key: dict[Hashable, FlowClass] = {}
        self._free_rows: list[int] = []
        self._free_entries: dict[int, list[int]] = {}
        self._entries = 0
        self._order: tuple[Ints, Ints, Ints] | None = None
        self.links = np.zeros(1024, dtype=np.int64)
        self.weights = np.zeros(1024)
        size = 256
        self.first = np.zeros(size, dtype=np.int64)
        self.length = np.zeros(size, dtype=np.int64)
        self.count = np.zeros(size)
        """Members; 0: the row is free."""
        self.limit = np.zeros(size)
        self.rate = np.zeros(size)
        """Of each member, units/s."""
        self.service = np.zeros(size)
        """Units, at `since`."""
        self.since = np.zeros(size)
        self.head = np.zeros(size)
        """Service at which the next member ends."""
        self.joined = np.zeros(size)
        """Sum of the service at which the members joined."""

    def __len__(self) -> int:
        return len(self._by_key)

    def find(
        self, links: Ints, weights: Floats, streams: Ints, limit: float, apart: int, now: float
    ) -> FlowClass:
        """The class of such flows; a new one, at rate 0, where there is none. `apart`: flows of another number
        are no like flows, whatever they have in common."""
        key = (links.tobytes(), weights.tobytes(), streams.tobytes(), limit, apart)
        row = self._by_key.get(key)
        if row is None:
            row = self._by_key[key] = self._new(key, links, weights, streams)
            r = row.row
            self.first[r], self.length[r], self.limit[r] = row.first, row.length, limit
            self.rate[r] = self.service[r] = self.joined[r] = self.count[r] = 0.0
            self.since[r] = now
            self._order = None
        return row

    def _new(self, key: Hashable, links: Ints, weights: Floats, streams: Ints) -> FlowClass:
        length = len(links)
        free = self._free_entries.get(length)
        if free:
            first = free.pop()
        else:
            first = self._entries
            self._entries += length
            if self._entries > len(self.links):
                size = max(self._entries, 2 * len(self.links))
                self.links, self.weights = _longer(self.links, size), _longer(self.weights, size)
        self.links[first : first + length] = links
        self.weights[first : first + length] = weights
        if self._free_rows:
            number = self._free_rows.pop()
        else:
            number = len(self.rows)
            self.rows.append(None)
            if number >= len(self.count):
                for name in COLUMNS:
                    setattr(self, name, _longer(getattr(self, name), 2 * number))
        row = self.rows[number] = FlowClass(key, number, first, length, streams.copy())
        return row

    def join(self, row: FlowClass, number: int, amount: float, now: float, done: simpy.Event) -> None:
        r = row.row
        service = float(self.service[r] + self.rate[r] * (now - self.since[r]))
        heapq.heappush(row.members, Member(service + amount, number, amount, done))
        self.count[r] += 1
        self.joined[r] += service
        self.head[r] = row.members[0].until

    def leave(self, row: FlowClass) -> Member:
        """The member that ends first, gone; the row itself too when it was the last."""
        r = row.row
        member = heapq.heappop(row.members)
        self.count[r] -= 1
        self.joined[r] -= member.until - member.amount
        if row.members:
            self.head[r] = row.members[0].until
            return member
        del self._by_key[row.key]
        self.rows[r] = None
        self.count[r] = self.rate[r] = 0.0
        self._free_rows.append(r)
        self._free_entries.setdefault(row.length, []).append(row.first)
        self._order = None
        return member

    def advance(self, now: float) -> None:
        """Service up to now."""
        used = slice(len(self.rows))
        self.service[used] += self.rate[used] * (now - self.since[used])
        self.since[used] = now

    def incidence(self) -> tuple[Ints, Ints, Ints]:
        """The rows in use, their starts as CSR, and the index of each of their entries."""
        if self._order is None:
            rows = np.flatnonzero(self.count[: len(self.rows)])
            lengths = self.length[rows]
            starts = np.zeros(len(rows) + 1, dtype=np.int64)
            np.cumsum(lengths, out=starts[1:])
            entries = np.repeat(self.first[rows] - starts[:-1], lengths) + np.arange(starts[-1])
            self._order = rows, starts, entries
        return self._order

    def under_way(self, now: float) -> tuple[Ints, Floats]:
        """Links, and the units that flows which have not ended have carried over them so far."""
        rows, starts, entries = self.incidence()
        service = self.service[rows] + self.rate[rows] * (now - self.since[rows])
        units = self.count[rows] * service - self.joined[rows]
        return self.links[entries], self.weights[entries] * np.repeat(units, np.diff(starts))


def _longer(array: NDArray[T], size: int) -> NDArray[T]:
    longer = np.zeros(size, dtype=array.dtype)
    longer[: len(array)] = array
    return longer
