"""Handle-based round robin (IOFSL's HBRR; Ohta et al., Optimization Techniques at the I/O Forwarding Layer, 2010).

One queue a file (handle); each gets a quantum of requests in turn, taken in the order of their offsets.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from tarazu.sim.requests.request import Piece
from tarazu.sim.requests.schedulers.scheduler import Neighbours, NodeScheduler

QUANTUM = 8
"""Requests of one file in a turn."""


class Hbrr(NodeScheduler):
    def __init__(self, servers: int, aggregate: int, quantum: int = QUANTUM) -> None:
        self._quantum = quantum
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
            while queue and len(self._turn) < self._quantum:
                piece = queue.popleft()
                if not piece.taken:
                    self._turn.append(piece)
            if queue:
                self._queues[file] = queue
            self._turn.sort(key=_offset, reverse=True)


def _offset(piece: Piece) -> tuple[int, int]:
    return piece.request.offset, piece.start
