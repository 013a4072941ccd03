"""Which request is next on an I/O node: FIFO, HBRR, TWINS. Waiting pieces that lie side by side become one dispatch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

from tarazu.parts.council.study.requests.request import Piece


class NodeScheduler(ABC):
    """Keeps what has arrived on one I/O node until it is dispatched. Nothing is lost, nothing is dispatched twice."""

    @abstractmethod
    def next(self, arrived: Sequence[Piece], now: float) -> list[Piece] | float:
        """What is dispatched now, as one access of one server: pieces of it that lie side by side, in order.

        Or, where nothing is, the time at which to ask again unless something arrives before; math.inf: not before.
        arrived: since the last call, in order.
        """


class Neighbours:
    """The pieces that wait, by where they begin and end: which of them can go as one access."""

    def __init__(self, servers: int, aggregate: int) -> None:
        self._most = aggregate
        self._starts: list[dict[int, Piece]] = [{} for _ in range(2 * servers)]
        self._ends: list[dict[int, Piece]] = [{} for _ in range(2 * servers)]

    def add(self, piece: Piece) -> None:
        at = 2 * piece.server + piece.write
        self._starts[at][piece.start] = piece
        self._ends[at][piece.end] = piece

    def take(self, piece: Piece) -> list[Piece]:
        """This piece and what waits right behind and before it, up to as many as are aggregated; all are gone then."""
        at = 2 * piece.server + piece.write
        starts, ends = self._starts[at], self._ends[at]
        pieces = [piece]
        file = piece.file
        other = starts.get(piece.end)
        while other is not None and other.file == file and len(pieces) < self._most:
            pieces.append(other)
            other = starts.get(other.end)
        if len(pieces) < self._most:
            other = ends.get(piece.start)
            if other is not None and other.file == file:
                pieces.reverse()
                while other is not None and other.file == file and len(pieces) < self._most:
                    pieces.append(other)
                    other = ends.get(other.start)
                pieces.reverse()
        for one in pieces:
            one.taken = True
            # Two processes may access the same place; only one of them is the neighbour that is found.
            if starts.get(one.start) is one:
                del starts[one.start]
            if ends.get(one.end) is one:
                del ends[one.end]
        return pieces


class Fifo(NodeScheduler):
    """First in, first out (IOFSL's FIFO), with what waits beside it."""

    def __init__(self, servers: int, aggregate: int) -> None:
        self._queue: deque[Piece] = deque()
        self._neighbours = Neighbours(servers, aggregate)

    def next(self, arrived: Sequence[Piece], now: float) -> list[Piece] | float:
        queue = self._queue
        for piece in arrived:
            queue.append(piece)
            self._neighbours.add(piece)
        while queue:
            piece = queue.popleft()
            if not piece.taken:
                return self._neighbours.take(piece)
        return math.inf


QUANTUM = 8
"""Requests of one file in a turn."""


class Hbrr(NodeScheduler):
    """Handle-based round robin (IOFSL's HBRR; Ohta et al., Optimization Techniques at the I/O Forwarding Layer, 2010).

    One queue a file (handle); each gets a quantum of requests in turn, taken in the order of their offsets.
    """

    def __init__(self, servers: int, aggregate: int) -> None:
        self._queues: dict[int, deque[Piece]] = {}
        """Of files that have something waiting, in the order of their turns."""
        self._turn: list[Piece] = []
        """What is left of the quantum, the next one last."""
        self._neighbours = Neighbours(servers, aggregate)

    def next(self, arrived: Sequence[Piece], now: float) -> list[Piece] | float:
        for piece in arrived:
            self._neighbours.add(piece)
            queue = self._queues.get(piece.file)
            if queue is None:
                self._queues[piece.file] = queue = deque()
            queue.append(piece)
        while True:
            while self._turn:
                piece = self._turn.pop()
                if not piece.taken:
                    return self._neighbours.take(piece)
            if not self._queues:
                return math.inf
            file, queue = next(iter(self._queues.items()))
            del self._queues[file]
            while queue and len(self._turn) < QUANTUM:
                piece = queue.popleft()
                if not piece.taken:
                    self._turn.append(piece)
            if queue:
                self._queues[file] = queue
            self._turn.sort(key=_offset, reverse=True)


def _offset(piece: Piece) -> tuple[int, int]:
    return piece.request.offset, piece.start


ROUNDED = 1e-15
"""Of a time: a few times what one is rounded by."""


class Twins(NodeScheduler):
    """One server at a time, for a window (Bez et al., Adaptive Request Scheduling, section II).

    A queue for each server. During a window requests are taken, in the order of their arrival, from one of them
    alone; where it is empty the node waits, for what comes to it or for the window's end, whatever the others hold.
    Windows follow one another from the first request on, and the servers in turn.
    """

    def __init__(self, node: int, servers: int, window_s: float, aggregate: int) -> None:
        self._node = node
        self._servers = servers
        self._window_s = window_s
        self._since: float | None = None
        """When the first of the windows of this length began; None: with the next request."""
        self._turn = 0
        """Windows that had begun before it."""
        self._queues: list[deque[Piece]] = [deque() for _ in range(servers)]
        self._neighbours = Neighbours(servers, aggregate)

    def translated(self, turn: int) -> int:
        """The translation rule: the server of a turn, for each I/O node another order to visit them in."""
        return (turn + self._node) % self._servers

    def change_window(self, window_s: float, now: float) -> None:
        """From now on windows are so long. The one that is under way begins anew."""
        if window_s != self._window_s:
            self._turn = self._turn_at(now)
            self._window_s = window_s
            if self._since is not None:
                self._since = now

    def _turn_at(self, now: float) -> int:
        if self._since is None:
            return self._turn
        # Asked at a window's very begin, rounding must not say that it is still the one before: the node would ask
        # again and again in the same moment. What times are rounded by grows with them.
        return self._turn + int((now - self._since + ROUNDED * now) / self._window_s + 1e-9)

    def next(self, arrived: Sequence[Piece], now: float) -> list[Piece] | float:
        if arrived:
            if self._since is None:
                self._since = now
            for piece in arrived:
                self._queues[piece.server].append(piece)
                self._neighbours.add(piece)
        turn = self._turn_at(now)
        queue = self._queues[self.translated(turn)]
        while queue:
            piece = queue.popleft()
            if not piece.taken:
                return self._neighbours.take(piece)
        # Nothing happens before the window of the next server that something waits for.
        for later in range(1, self._servers):
            queue = self._queues[self.translated(turn + later)]
            while queue and queue[0].taken:
                queue.popleft()
            if queue:
                assert self._since is not None
                return self._since + (turn + later - self._turn) * self._window_s
        return math.inf


def node_scheduler(name: str, node: int, servers: int, window_s: float, aggregate: int) -> NodeScheduler:
    """`fifo`, `hbrr` or `twins`, of I/O node number `node`; `aggregate`: requests of one dispatch, at most."""
    if name == "twins":
        return Twins(node, servers, window_s, aggregate)
    return {"fifo": Fifo, "hbrr": Hbrr}[name](servers, aggregate)
