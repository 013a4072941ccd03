"""How long jobs' I/O takes where their nodes share I/O nodes: the second half of a replay, which ends the jobs.

A job computes and does I/O in turn: its phases, equally long and equally far apart. In a phase each of its nodes moves
its part at an even pace, which is done in time where no I/O node is asked for more than it carries. One that is asked
for more carries all streams through it more slowly, by the same factor; the phase lasts until the slowest is through,
and the job runs so much longer. I/O nodes are the bottleneck; what lies behind is fast enough. This is the fluid of
tarazu.sim.kernel.network, shared by what each stream asks for instead of equally, which takes one number a phase
and I/O node, and not one a node (tests/sim/bursts/test_io_time.py holds the two beside one another).

How much an I/O node carries is not published. It is overloaded by 4 to 8 compute nodes that do much I/O
(spatially-bursty-io, 6.4.3): it carries `NODES` times what a node of a data-intensive job moves in its phases.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tarazu.parts.bursts.nodes.slurm_fit import Indices
from tarazu.parts.bursts.study.queue import Queue
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.sim.kernel.fluid import Floats

NODES = 6
"""The middle of 4 to 8."""
SAME = 1e-9
"""Seconds: what is due within this is due now."""


def capacity(queue: Queue, nodes: float = NODES) -> float:
    """Bytes/s that an I/O node carries: `nodes` times the pace of a data-intensive job's node in its phases, each byte
    counting alike."""
    some = queue.intensive & (queue.size > 1)
    volume = queue.volume[some]
    return nodes * float((volume**2 / (queue.size[some] * queue.io_s[some])).sum() / volume.sum())


@dataclass
class _IoNode:
    """One that carries streams, each at its own pace as long as it has enough for all."""

    asked: float = 0.0
    """Bytes/s of all streams."""
    clock_s: float = 0.0
    """Time as the streams see it: it goes slower when more is asked for than there is."""
    at_s: float = 0.0
    due: list[tuple[float, int, float]] = field(default_factory=list)
    """Of each stream: when it is through by `clock_s`, whose job it is, bytes/s."""
    version: int = 0


@dataclass
class _Job:
    streams: list[tuple[int, float]]
    """(I/O node, bytes/s) in a phase."""
    phases: int
    """That are left."""
    length_s: float
    """Of a phase, where nothing is in its way."""
    pause_s: float
    """Between two phases; after the last one `rest_s`."""
    rest_s: float
    began_s: float = 0.0
    open: int = 0
    """Streams of the present phase that are not through."""


class SharedIoNodes:
    """Jobs of a queue on a machine; `tarazu.parts.bursts.study.replay.Runs`."""

    def __init__(
        self,
        machine: Machine,
        queue: Queue,
        parts: Sequence[Floats],
        capacity: float,
        logs: Floats | None = None,
    ) -> None:
        """`parts`: of each job, the part of its bytes that each rank moves. `capacity`: bytes/s of an I/O node.
        `logs`: (jobs,) part of its volume that a job writes a little at a time, between phases: nothing waits for that.
        """
        self._served_by = machine.served_by
        self._queue, self._parts, self._capacity = queue, parts, capacity
        self._in_phases = queue.volume * (1.0 if logs is None else 1.0 - logs)
        self._io_nodes = [_IoNode() for _ in machine.io_nodes]
        self._jobs: dict[int, _Job] = {}
        self._events: list[tuple[float, int, int, int]] = []
        """(when, I/O node or -1, its version or job's number, order)."""
        self._order = 0
        self.io_s = np.zeros(len(queue))
        """(jobs,): seconds that its phases have taken."""
        self.now_s = 0.0

    def asked(self, job: int, nodes: Indices) -> Floats:
        """(I/O nodes,): bytes/s that its phases ask of each."""
        pace = self._parts[job] * (float(self._in_phases[job]) / float(self._queue.io_s[job]))
        at = self._served_by[nodes]
        known = at >= 0
        # what one node alone moves, an I/O node carries
        return np.asarray(
            np.bincount(at[known], np.minimum(pace[known], self._capacity), len(self._io_nodes)),
            dtype=np.float64,
        )

    def start(self, job: int, nodes: Indices, now_s: float) -> None:
        queue = self._queue
        length_s = float(queue.io_s[job]) / int(queue.bursts[job])
        asked = self.asked(job, nodes)
        streams = [(i, float(asked[i])) for i in np.flatnonzero(asked).tolist()]
        phases = int(queue.bursts[job])
        idle_s = float(queue.run_s[job]) - float(queue.io_s[job])
        pause_s, rest_s = (idle_s / (phases - 1), 0.0) if phases > 1 else (0.0, idle_s)
        self._jobs[job] = _Job(streams, phases, length_s, pause_s, rest_s)
        self._push(now_s, -1, job)

    def run(self, until_s: float) -> tuple[float, list[int]]:
        ended: list[int] = []
        while self._events and self._events[0][0] <= (self.now_s + SAME if ended else until_s):
            at_s, io_node, what, _ = heapq.heappop(self._events)
            if io_node >= 0:
                if what == self._io_nodes[io_node].version:
                    self.now_s = max(self.now_s, at_s)
                    self._through(io_node)
                continue
            self.now_s = max(self.now_s, at_s)
            if self._jobs[what].phases:
                self._phase(what)
            else:
                del self._jobs[what]
                ended.append(what)
        if not ended and until_s < math.inf:
            self.now_s = until_s
        return self.now_s, ended

    def _push(self, at_s: float, io_node: int, what: int) -> None:
        self._order += 1
        heapq.heappush(self._events, (at_s, io_node, what, self._order))

    def _phase(self, number: int) -> None:
        job = self._jobs[number]
        job.phases -= 1
        job.began_s = self.now_s
        job.open = len(job.streams)
        if not job.streams:
            self._pause(number, job)
        for i, asked in job.streams:
            node = self._io_nodes[i]
            self._advance(node)
            node.asked += asked
            heapq.heappush(node.due, (node.clock_s + job.length_s, number, asked))
            self._expect(i, node)

    def _through(self, io_node: int) -> None:
        """Streams that are through now."""
        node = self._io_nodes[io_node]
        self._advance(node)
        while node.due and node.due[0][0] <= node.clock_s + SAME:
            _, number, asked = heapq.heappop(node.due)
            node.asked -= asked
            job = self._jobs[number]
            job.open -= 1
            if not job.open:
                self._pause(number, job)
        if not node.due:
            node.asked = 0.0
        self._expect(io_node, node)

    def _pause(self, number: int, job: _Job) -> None:
        """The phase is over."""
        self.io_s[number] += self.now_s - job.began_s
        self._push(self.now_s + (job.pause_s if job.phases else job.rest_s), -1, number)

    def _advance(self, node: _IoNode) -> None:
        passed_s = self.now_s - node.at_s
        if passed_s <= 0:
            return
        node.at_s = self.now_s
        if node.due:
            node.clock_s += passed_s * self._pace(node)

    def _expect(self, io_node: int, node: _IoNode) -> None:
        node.version += 1
        if node.due:
            left_s = max(0.0, node.due[0][0] - node.clock_s)
            self._push(self.now_s + left_s / self._pace(node), io_node, node.version)

    def _pace(self, node: _IoNode) -> float:
        return min(1.0, self._capacity / node.asked) if node.asked > 0 else 1.0
