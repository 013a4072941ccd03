"""Whose bytes a node's traffic is: of the job that ran there (spatially-bursty-io, 2.4).

An interval in which one job ended and the next began is shared by the seconds that each was there; so is a node on
which several run at once. A job that was alone there gets all of the interval, its last bytes too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.batch.jobs import Job
from tarazu.parts.bursts.measures.characteristics import JobBytes, Places
from tarazu.parts.bursts.measures.intervals import Interval
from tarazu.parts.bursts.measures.measures import Floats


class Attribution:
    """Is shown one interval after another. A pair is a job and one of its nodes."""

    def __init__(self, jobs: Sequence[Job], places: Places) -> None:
        """Jobs whose nodes the machine does not know have no bytes there."""
        self.jobs = jobs
        sizes = [len(job.nodes) for job in jobs]
        self._ends = np.cumsum(sizes)
        self._node = np.concatenate([places.nodes(job.nodes) for job in jobs] or [np.zeros(0, np.int32)])
        self._start_s = np.repeat(np.array([job.start_s for job in jobs], float), sizes)
        self._end_s = np.repeat(np.array([job.end_s for job in jobs], float), sizes)
        self._moved = np.zeros(len(self._node))
        self._network = np.zeros(len(self._node))
        self._counted = False
        # Pairs in the order in which they begin; those of unknown nodes and of jobs that never ran are left out.
        order = np.argsort(self._start_s, kind="stable")
        self._order = order[(self._node[order] >= 0) & (self._end_s[order] > self._start_s[order])]
        self._starts = self._start_s[self._order]
        self._next = 0
        self._active = np.zeros(0, np.int64)
        self._share = np.zeros(0)
        self._steady: tuple[float, float] = (0.0, 0.0)
        """Between these times the same pairs are active, and none begins or ends."""
        self._held: Floats = np.zeros(len(places.machine.nodes))
        self._held_network: Floats = np.zeros(len(places.machine.nodes))
        self._holds = False

    def add(self, interval: Interval) -> None:
        low, high = float(interval.time_s), interval.time_s + interval.length_s
        if not (self._steady[0] <= low and high <= self._steady[1]):
            self._flush()
            self._change(low, high)
        self._held += interval.moved
        if interval.network is not None:
            self._counted = True
            self._held_network += interval.network
        self._holds = True

    def _flush(self) -> None:
        """What nodes moved since pairs changed, to those pairs."""
        if not self._holds:
            return
        node = self._node[self._active]
        self._moved[self._active] += self._held[node] * self._share
        self._network[self._active] += self._held_network[node] * self._share
        self._held[:] = 0
        self._held_network[:] = 0
        self._holds = False

    def _change(self, low: float, high: float) -> None:
        """Which pairs are there between low and high, and what of the interval is whose."""
        until = int(np.searchsorted(self._starts, high, "left"))
        active = np.concatenate([self._active, self._order[self._next : until]])
        self._next = max(self._next, until)
        active = active[self._end_s[active] > low]
        starts, ends = self._start_s[active], self._end_s[active]
        seconds = np.minimum(ends, high) - np.maximum(starts, low)
        node = self._node[active]
        whole = np.bincount(node, seconds, len(self._held))
        self._active, self._share = active, seconds / whole[node]
        latest = float(starts.max(initial=low))
        soonest = float(ends.min(initial=np.inf))
        if self._next < len(self._starts):
            soonest = min(soonest, float(self._starts[self._next]))
        # An interval with a beginning or an end in it is one of its own.
        self._steady = (low, soonest) if latest <= low and soonest >= high else (low, high)

    def result(self) -> list[JobBytes]:
        """Of each job, in their order. Rounded to whole bytes."""
        self._flush()
        job_bytes = []
        for job, high in zip(self.jobs, self._ends.tolist(), strict=True):
            part = slice(high - len(job.nodes), high)
            network = round(float(self._network[part].sum())) if self._counted else None
            moved = np.rint(self._moved[part]).astype(np.int64)
            job_bytes.append(JobBytes(job, moved, network))
        return job_bytes
