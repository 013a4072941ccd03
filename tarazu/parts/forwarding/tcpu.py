"""TCPU-Allocator (TA), paper A's algorithm 1: the listing's result without its K looks a round.

The listing starts at π_sys. Each round it looks, for each application, for the next larger number at which the system
is not saturated (lines 8 to 13), and then gives the one that gains most CPULoad its number (line 17). What an
application would take next depends on the others only by the room that is left, I/O-load being 1 at most. So its next
number is kept with the range of room for which it stays the same, and only those whose range has been left are looked
at again. (The listing's line 10, lost in the text at hand, is n ← n + 1.)
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from tarazu.parts.forwarding.tables import Array, Table

ROUNDING = 1e-9
"""An I/O-load of 1 may come out above 1 by so much when it is added up."""


def counts(values: Table, available: int) -> Array:
    """(K,) the allocation of algorithm 1 for `available` resources (N)."""
    inside = np.arange(1, values.most + 1)
    between = (inside >= values.n_sys[:, None]) & (inside <= values.n_perf[:, None])
    highest = np.where(between, values.stress, 0.0).max(axis=1)
    if (
        highest.sum() <= available
    ):  # never saturated, whatever is reached on the way: all go to the end of theirs
        return values.n_perf.copy()
    return _Climb(values, available).run()


class _Climb:
    """The rounds of algorithm 1."""

    def __init__(self, values: Table, available: int) -> None:
        self.stress: list[list[float]] = values.stress.tolist()
        self.gain: list[list[float]] = values.cpu_load.tolist()
        self.end: list[int] = values.n_perf.tolist()
        self.at: list[int] = values.n_sys.tolist()
        inside = np.arange(values.most) < values.n_perf[:, None]
        below = np.where(inside, values.stress, np.inf)[:, ::-1]
        self.least_from: list[list[float]] = np.minimum.accumulate(below, axis=1)[:, ::-1].tolist()
        """Of each application the least stress at n + 1 … n_perf, by n."""
        self.available = available * (1 + ROUNDING)
        self.load = float(values.stress[np.arange(len(self.at)), values.n_sys - 1].sum())
        self.turn = [0] * len(self.at)
        """Of each application, how often it has been looked at: what is older in a heap is void."""
        self.steps: list[tuple[float, int, int, int]] = []
        """(−gain, application, turn, next number)"""
        self.needing: list[tuple[float, int, int]] = []
        """(−room, application, turn): looked at again when there is less room than that."""
        self.waiting: list[tuple[float, int, int]] = []
        """(room, application, turn): looked at again when there is at least that much."""

    def run(self) -> Array:
        for i in range(len(self.at)):
            self._look(i)
        while step := self._best():
            i, n = step
            self.load += self.stress[i][n - 1] - self.stress[i][self.at[i] - 1]
            self.at[i] = n
            self._look(i)
            self._look_again()
        return np.array(self.at)

    def _best(self) -> tuple[int, int] | None:
        """Line 14: the application with the largest gain, of equal ones the first, and its next number."""
        while self.steps:
            _, i, turn, n = self.steps[0]
            if turn == self.turn[i]:
                return i, n
            heappop(self.steps)
        return None

    def _look(self, i: int) -> None:
        """Lines 8 to 13 for application i."""
        stress, gain, now = self.stress[i], self.gain[i], self.at[i]
        room = self.available - self.load
        self.turn[i] = turn = self.turn[i] + 1
        needs, waits = -np.inf, np.inf
        last = now
        if now < self.end[i] and (least := self.least_from[i][now] - stress[now - 1]) > room:
            heappush(self.waiting, (least, i, turn))
            return
        for n in range(now + 1, self.end[i] + 1):
            more = stress[n - 1] - stress[now - 1]
            if more > room:
                waits = min(waits, more)
                continue
            needs = max(needs, more)
            gained = gain[n - 1] - gain[last - 1]
            last = n
            if gained >= 0:
                heappush(self.steps, (-gained, i, turn, n))
                break
        if needs > -np.inf:
            heappush(self.needing, (-needs, i, turn))
        if waits < np.inf:
            heappush(self.waiting, (waits, i, turn))

    def _look_again(self) -> None:
        """At those for which the room is now more or less than what their next number stands for."""
        room = self.available - self.load
        left: dict[int, None] = {}
        while self.needing and -self.needing[0][0] > room:
            _, i, turn = heappop(self.needing)
            if turn == self.turn[i]:
                left[i] = None
        while self.waiting and self.waiting[0][0] <= room:
            _, i, turn = heappop(self.waiting)
            if turn == self.turn[i]:
                left[i] = None
        for i in left:
            self._look(i)
