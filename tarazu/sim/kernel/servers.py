"""Servers that share themselves equally among what they serve (processor sharing), by virtual time.

A server with k parts of work gives each 1/k of itself. It keeps the service that a part would have got that was
there since the server was last idle: its virtual time, which rises by dt/k. A part that comes at virtual time v with
s seconds of service to be had leaves at v + s, whatever comes and goes meanwhile: so the next to leave is the head of
a heap, and a start or an end costs O(log) and touches one server. The max-min fair network (`network.py`) gives the
same where each part is a flow over one link; this is for when there is nothing else to share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush

ROUNDING = 1e-12
"""Part of the time passed by which a part may leave too soon."""


class Servers:
    """`count` servers and the jobs at them. A job is served at several at once, independently of one another.

    Time is the caller's, and does not fall: before a job starts at a time, `serve` has said that none ends up to then.
    The same calls in the same order give the same result, bit for bit.
    """

    def __init__(self, count: int) -> None:
        self.now_s = 0.0
        """When the last job ended."""
        self._busy_s = [0.0] * count
        """Seconds for which each was busy, up to when it was last idle."""
        self._queues: list[list[tuple[float, int]]] = [[] for _ in range(count)]
        """For each server the parts that it serves: virtual time at which it leaves, job. A heap."""
        self._virtual = [0.0] * count
        self._since = [0.0] * count
        """When the virtual time was that."""
        self._idle_until = [0.0] * count
        self._due = [math.inf] * count
        """When each server is looked at next: when its first part leaves, or sooner (others that came put it off)."""
        self._ends: list[tuple[float, int]] = []
        """Those times, a heap; an entry that is not the server's `_due` is void."""
        self._parts: dict[int, int] = {}
        """Job → parts that have not left."""

    def start(self, job: int, at: Sequence[int], service_s: float, now: float) -> None:
        """`job` (which is not there) wants `service_s` > 0 seconds of each of the servers `at`, all different."""
        self._parts[job] = len(at)
        queues, virtual, since, due, ends = self._queues, self._virtual, self._since, self._due, self._ends
        for server in at:
            queue = queues[server]
            k = len(queue)
            if k:
                passed = virtual[server] + (now - since[server]) / k
                leaves = passed + service_s
                first = leaves < queue[0][0]
                heappush(queue, (leaves, job))
            else:
                passed, first = 0.0, True
                queue.append((service_s, job))
                self._idle_until[server] = now
            virtual[server] = passed
            since[server] = now
            if first:
                end = now + service_s * (k + 1)
                if end < due[server]:
                    due[server] = end
                    heappush(ends, (end, server))

    def serve(self, until: float) -> int | None:
        """The next job whose last part leaves, if one does up to `until`; `now_s` is then when. None: none does."""
        queues, virtual, since, due, ends = self._queues, self._virtual, self._since, self._due, self._ends
        while ends and ends[0][0] <= until:
            now, server = heappop(ends)
            if now != due[server]:
                continue
            queue = queues[server]
            k = len(queue)
            leaves, job = queue[0]
            left = (leaves - virtual[server]) * k
            if left - (now - since[server]) > ROUNDING * now:  # others have come since it was thought due
                due[server] = end = since[server] + left
                heappush(ends, (end, server))
                continue
            heappop(queue)
            virtual[server] = leaves
            since[server] = now
            if k > 1:
                due[server] = end = now + (queue[0][0] - leaves) * (k - 1)
                heappush(ends, (end, server))
            else:
                due[server] = math.inf
                self._busy_s[server] += now - self._idle_until[server]
            parts = self._parts[job] - 1
            if parts:
                self._parts[job] = parts
            else:
                del self._parts[job]
                self.now_s = now
                return job
        return None

    def busy(self, now: float) -> list[float]:
        """Seconds for which each server was busy up to now (servers,)."""
        return [
            done + (now - began if queue else 0.0)
            for done, began, queue in zip(self._busy_s, self._idle_until, self._queues)
        ]
