"""Shortest job first: the first request of the file (reads and writes apart) of which the fewest bytes wait."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from tarazu.sim.requests.request import Piece
from tarazu.sim.requests.schedulers.scheduler import Neighbours, NodeScheduler


class _Job:
    __slots__ = ("bytes", "queue")

    def __init__(self) -> None:
        self.bytes = 0
        self.queue: deque[Piece] = deque()


class ShortestJobFirst(NodeScheduler):
    def __init__(self, servers: int, aggregate: int) -> None:
        self._jobs: dict[int, _Job] = {}
        self._neighbours = Neighbours(servers, aggregate)

    def next(self, arrived: Sequence[Piece], now: float) -> list[Piece] | float:
        jobs = self._jobs
        for piece in arrived:
            self._neighbours.add(piece)
            name = 2 * piece.file + piece.write
            job = jobs.get(name)
            if job is None:
                jobs[name] = job = _Job()
            job.bytes += piece.end - piece.start
            job.queue.append(piece)
        if not jobs:
            return math.inf
        shortest = min(jobs, key=lambda name: jobs[name].bytes)
        job = jobs[shortest]
        piece = job.queue.popleft()
        while piece.taken:
            piece = job.queue.popleft()
        batch = self._neighbours.take(piece)
        job.bytes -= sum(one.end - one.start for one in batch)
        if not job.bytes:
            del jobs[shortest]
        return batch
