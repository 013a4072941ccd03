"""What a scheduler on an I/O node is: one method; and how waiting pieces that lie side by side become one dispatch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tarazu.sim.requests.request import Piece


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
        found = [piece]
        file = piece.file
        other = starts.get(piece.end)
        while other is not None and other.file == file and len(found) < self._most:
            found.append(other)
            other = starts.get(other.end)
        if len(found) < self._most:
            other = ends.get(piece.start)
            if other is not None and other.file == file:
                found.reverse()
                while other is not None and other.file == file and len(found) < self._most:
                    found.append(other)
                    other = ends.get(other.start)
                found.reverse()
        for one in found:
            one.taken = True
            # Two processes may access the same place; only one of them is the neighbour that is found.
            if starts.get(one.start) is one:
                del starts[one.start]
            if ends.get(one.end) is one:
                del ends[one.end]
        return found
