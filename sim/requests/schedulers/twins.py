"""TWINS: one server at a time, for a window (Bez et al., Adaptive Request Scheduling, section II)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from tarazu.sim.requests.request import Piece
from tarazu.sim.requests.schedulers.scheduler import Neighbours, NodeScheduler

ROUNDED = 1e-15
"""Of a time: a few times what one is rounded by."""


class Twins(NodeScheduler):
    """A queue for each server. During a window requests are taken, in the order of their arrival, from one of them
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
