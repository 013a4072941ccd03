"""A queue of batch jobs replayed on a machine: who starts when on which nodes, first in first out with EASY backfill.

Whole nodes, all alike, each job's as soon as so many are idle. While the head of the queue waits, jobs behind it start
that end before it could start (by the time that their users asked for), or leave it its nodes (Lifka 1995). Slurm
looks at so many jobs only (bf_max_job_test). Which nodes of the idle ones a job gets is the selector's choice.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tarazu.parts.bursts.nodes.slurm_fit import Flags, Indices, tree
from tarazu.parts.bursts.study.queue import Queue
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.sim.kernel.fluid import Floats, Ints

BACKFILL = 500
"""Waiting jobs that are looked at: Slurm's default of bf_max_job_test."""


class Selector(Protocol):
    """Nodes for a job that starts now."""

    def nodes(self, idle: Flags, job: int, waiting: Sequence[int]) -> Indices:
        """In the order of ranks, of those that are idle: there are enough. `waiting`: the queue without this job."""

    def ended(self, job: int) -> None:
        """It has given its nodes back."""


class Runs(Protocol):
    """How long jobs run."""

    def start(self, job: int, nodes: Indices, now_s: float) -> None: ...

    def run(self, until_s: float) -> tuple[float, list[int]]:
        """The clock goes on to `until_s` (inf: to the next end), or until jobs end before: when it stands, and they."""


@dataclass(frozen=True, eq=False)
class Replayed:
    start_s: Floats
    """(jobs,)"""
    end_s: Floats
    """(jobs,)"""
    nodes: list[Indices]
    """Of each job, in the order of ranks."""


class Slurms:
    """Slurm's own choice (tarazu.parts.bursts.nodes.slurm_fit)."""

    def __init__(self, machine: Machine, sizes: Ints) -> None:
        self._machine, self._sizes = machine, sizes

    def nodes(self, idle: Flags, job: int, waiting: Sequence[int]) -> Indices:
        allocation = tree(self._machine, idle, int(self._sizes[job]))
        assert allocation is not None
        return allocation

    def ended(self, job: int) -> None:
        pass


class AsLong:
    """Each job runs as long as its queue says, wherever it runs."""

    def __init__(self, run_s: Floats) -> None:
        self._run_s = run_s
        self._ends: list[tuple[float, int]] = []

    def start(self, job: int, nodes: Indices, now_s: float) -> None:
        heapq.heappush(self._ends, (now_s + float(self._run_s[job]), job))

    def run(self, until_s: float) -> tuple[float, list[int]]:
        if not self._ends or self._ends[0][0] > until_s:
            return until_s, []
        now_s, job = heapq.heappop(self._ends)
        ended_jobs = [job]
        while self._ends and self._ends[0][0] <= now_s:
            ended_jobs.append(heapq.heappop(self._ends)[1])
        return now_s, ended_jobs


def replay(
    machine: Machine, jobs: Queue, select: Selector | None = None, runs: Runs | None = None
) -> Replayed:
    """Every job once, until the last has ended. `select`: Slurm's own choice where None. `runs`: as long as the queue
    says where None."""
    return _Replay(machine, jobs, select or Slurms(machine, jobs.size), runs or AsLong(jobs.run_s)).run()


class _Replay:
    def __init__(self, machine: Machine, jobs: Queue, select: Selector, runs: Runs) -> None:
        count = len(machine.nodes)
        self._size: list[int] = jobs.size.tolist()
        self._sizes, self._limits = jobs.size, jobs.limit_s
        self._submit: list[float] = jobs.submit_s.tolist()
        self._select, self._runs = select, runs
        self._idle = np.ones(count, dtype=np.bool_)
        self._free = count
        self._waiting: list[int] = []
        self._running: dict[int, None] = {}
        self._until = np.zeros(len(self._size))
        """(jobs,): when a running job ends at the latest, as its user has said."""
        self._replayed = Replayed(
            np.full(len(self._size), np.nan),
            np.full(len(self._size), np.nan),
            [np.zeros(0, dtype=np.int64)] * len(self._size),
        )

    def run(self) -> Replayed:
        coming, ended = 0, 0
        while ended < len(self._size):
            submitted = self._submit[coming] if coming < len(self._submit) else math.inf
            before = len(self._waiting)
            now, done = self._runs.run(submitted)
            for job in done:
                self._end(job, now)
            ended += len(done)
            while coming < len(self._submit) and self._submit[coming] <= now:
                self._waiting.append(coming)
                coming += 1
            if done or len(self._waiting) > before:
                self._schedule(now)
        return self._replayed

    def _end(self, job: int, now: float) -> None:
        self._idle[self._replayed.nodes[job]] = True
        self._free += self._size[job]
        del self._running[job]
        self._replayed.end_s[job] = now
        self._select.ended(job)

    def _schedule(self, now: float) -> None:
        started = 0
        while started < len(self._waiting) and self._size[self._waiting[started]] <= self._free:
            self._start(self._waiting[started], self._waiting[started + 1 :], now)
            started += 1
        del self._waiting[:started]
        if self._waiting and self._free:
            self._backfill(now)

    def _start(self, job: int, waiting: Sequence[int], now: float) -> None:
        nodes = self._select.nodes(self._idle, job, waiting)
        self._idle[nodes] = False
        self._free -= self._size[job]
        self._running[job] = None
        self._until[job] = now + self._limits[job]
        self._replayed.start_s[job] = now
        self._replayed.nodes[job] = nodes
        self._runs.start(job, nodes, now)

    def _backfill(self, now: float) -> None:
        behind = np.array(self._waiting[1 : 1 + BACKFILL], dtype=np.int64)
        behind = behind[self._sizes[behind] <= self._free]
        if not len(behind):
            return
        starts_s, spare = self._reserved(now)
        for job in behind.tolist():
            size = self._size[job]
            if size > self._free:
                continue
            in_time = now + self._limits[job] <= starts_s
            if in_time or size <= spare:
                spare -= 0 if in_time else size
                self._waiting.remove(job)
                self._start(job, self._waiting, now)

    def _reserved(self, now: float) -> tuple[float, int]:
        """When the head of the queue starts at the latest, and how many nodes it leaves idle then."""
        running = np.fromiter(self._running, dtype=np.int64, count=len(self._running))
        until = np.maximum(self._until[running], now)
        order = np.argsort(until, kind="stable")
        free = self._free + np.cumsum(self._sizes[running[order]])
        head = self._size[self._waiting[0]]
        at = int(np.searchsorted(free, head))
        return float(until[order[at]]), int(free[at]) - head
