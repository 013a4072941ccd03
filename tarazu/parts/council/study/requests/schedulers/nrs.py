"""What Lustre's network request scheduler (NRS) has for servers, on which I/O nodes are the clients.

Rounds, quanta and their accounts as in lustre/ptlrpc/nrs_crr.c and nrs_orr.c: whoever has used up its quantum, or had
nothing waiting with some of it left, is scheduled in a later round. An object is what a file has on one server.
A server here is one OST, so TRR's only target holds all objects, and its requests go in the order of their addresses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from tarazu.parts.council.study.requests.request import Access


class ServerScheduler(ABC):
    """Keeps what has arrived on one server until one of its threads takes it to the disk."""

    @abstractmethod
    def next(self, arrived: Sequence[Access], now: float) -> Access | float:
        """What a thread does now; or, where there is nothing to do, when to ask again unless something arrives before;
        math.inf: not before. arrived: since the last call, in order."""


class Fifo(ServerScheduler):
    """In the order of arrival (`fifo`)."""

    def __init__(self) -> None:
        self._queue: deque[Access] = deque()

    def next(self, arrived: Sequence[Access], now: float) -> Access | float:
        queue = self._queue
        if arrived:
            queue.extend(arrived)
        return queue.popleft() if queue else math.inf


class _Turn:
    """What one client, object or target is owed."""

    __slots__ = ("left", "round", "sequence", "waiting")

    def __init__(self) -> None:
        self.round = self.sequence = self.left = self.waiting = 0


class RoundRobin(ServerScheduler):
    """Batches of up to a quantum of one client's requests (`crrn`), of one object's (`orr`) or of the target's (`trr`)
    in turn; within a batch in the order of arrival, or for `orr` and `trr` of offsets."""

    def __init__(self, by: str, quantum: int) -> None:
        self._by, self._quantum = by, quantum
        self._turns: dict[Any, _Turn] = {}
        self._round = 0
        self._sequence = 1
        self._arrivals = 0
        self._heap: list[tuple[int, int, int, int, Access]] = []

    def _name(self, access: Access) -> Any:
        return access.node if self._by == "crrn" else access.file if self._by == "orr" else None

    def next(self, arrived: Sequence[Access], now: float) -> Access | float:
        for access in arrived:
            self._add(access)
        if not self._heap:
            return math.inf
        _, _, _, _, access = heappop(self._heap)
        self._turns[self._name(access)].waiting -= 1
        if self._heap:
            self._round = max(self._round, self._heap[0][0])
        else:
            self._round += 1
        return access

    def _add(self, access: Access) -> None:
        turn = self._turns.setdefault(self._name(access), _Turn())
        idle = not turn.waiting and turn.left > 0
        if not turn.left or turn.round < self._round or idle:
            if idle:
                turn.round += 1
            turn.round = max(turn.round, self._round)
            if turn.sequence < self._sequence:
                self._sequence += 1
                turn.sequence = self._sequence
            turn.left = self._quantum
        self._arrivals += 1
        order = self._arrivals if self._by == "crrn" else access.start
        heappush(self._heap, (turn.round, turn.sequence, order, self._arrivals, access))
        turn.waiting += 1
        turn.left -= 1
        if not turn.left:
            turn.round += 1


class TokenBucket(ServerScheduler):
    """Each client at most so many requests a second (`tbf`, one rule for every NID); buckets hold three tokens."""

    DEPTH = 3
    """Lustre's `tbf_depth`."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._queues: dict[Any, deque[Access]] = {}
        self._tokens: dict[Any, tuple[float, float]] = {}
        """Client → tokens, at what time."""

    def next(self, arrived: Sequence[Access], now: float) -> Access | float:
        for access in arrived:
            self._queues.setdefault(access.node, deque()).append(access)
        soonest = math.inf
        for client, queue in self._queues.items():
            had, at = self._tokens.get(client, (float(self.DEPTH), now))
            tokens = min(float(self.DEPTH), had + (now - at) * self._rate)
            if tokens >= 1.0 - 1e-9:
                self._tokens[client] = (tokens - 1.0, now)
                access = queue.popleft()
                # The next to be asked is another client.
                del self._queues[client]
                if queue:
                    self._queues[client] = queue
                return access
            soonest = min(soonest, at + (1.0 - had) / self._rate)
        return soonest
