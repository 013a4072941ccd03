"""First in, first out (IOFSL's FIFO), with what waits beside it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from tarazu.sim.requests.request import Piece
from tarazu.sim.requests.schedulers.scheduler import Neighbours, NodeScheduler


class Fifo(NodeScheduler):
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
