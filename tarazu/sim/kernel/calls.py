"""Calls at times, one after another: the least that discrete events need, for models with millions of short ones.

A model of requests has some five events a request and nothing that waits in between, so each is a function that is
called with the time and one argument, and what follows is put down as another call. SimPy, which `network.py` stands
on, makes an event, a list of callbacks and the resumption of a generator of each: 1.8 times the time for the events
alone. Both keep to one order: of time, then of number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

Call = Callable[[float, Any], object]
"""With the time and an argument."""


class Calls:
    """A clock and what is to be called when. The same calls in the same order give the same run, bit for bit."""

    def __init__(self) -> None:
        self.now = 0.0
        """Of the call that is under way, or was the last."""
        self._heap: list[tuple[float, int, Call, Any]] = []
        self._number = count().__next__
        self._stopped = False

    def at(self, time_s: float, call: Call, argument: Any = None) -> None:
        """`call(time_s, argument)` then; what is put down for one time is called in that order. Not before `now`."""
        heappush(self._heap, (time_s, self._number(), call, argument))

    def stop(self) -> None:
        """Nothing is called after what is under way."""
        self._stopped = True

    def run(self, until_s: float = math.inf) -> bool:
        """Call all that is due up to a time. True: it was stopped, or nothing was left; else `now` is `until_s`."""
        heap = self._heap
        while heap and not self._stopped:
            if heap[0][0] > until_s:
                self.now = until_s
                return False
            now, _, call, argument = heappop(heap)
            self.now = now
            call(now, argument)
        return True
