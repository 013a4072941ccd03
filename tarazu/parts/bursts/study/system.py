"""A generated machine and its days: a queue with the published proportions, replayed as by Slurm, and its traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tarazu.batch.jobs import Job
from tarazu.parts.bursts.measures.published import HARDWARE, Name
from tarazu.parts.bursts.study.generator import JOBS, SEED, queue
from tarazu.parts.bursts.study.knobs import KNOBS, Knobs
from tarazu.parts.bursts.study.queue import Queue, shares
from tarazu.parts.bursts.study.replay import Replayed, replay
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Traffic
from tarazu.sim.kernel.fluid import Floats, Ints

INTERVAL_S = 10
CHUNK_S = 3600
QUIET_S = 10.0
"""A job is started and cleaned away without I/O: no interval has bytes of two jobs on a node."""
LOG_EVERY_S, LOG_S = 300.0, 5.0
"""Between its phases a job writes a little: so often, and for so long."""


def traffic(
    name: Name,
    queue: Queue,
    machine: Machine,
    start_s: Floats,
    end_s: Floats,
    nodes: Sequence[Ints | None],
    begin_s: int,
    until_s: int,
    chunk_s: int = CHUNK_S,
) -> Iterator[Traffic]:
    """Of [begin_s, until_s), a chunk of time after the other.

    start_s, end_s: (jobs,), NaN for one that did not run; nodes: of each job, index into the machine's in the order of
    ranks, None for one that did not run.
    """
    knobs = KNOBS[name]
    logs = np.where(queue.intensive, knobs.intensive.log, knobs.others.log)
    known: dict[int, Floats] = {}
    for low in range(begin_s, until_s, chunk_s):
        high = min(low + chunk_s, until_s)
        edges = np.arange(low, high + 1, INTERVAL_S, dtype=np.float64)
        shape = len(machine.nodes), len(edges) - 1
        read, written, network = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for job in np.flatnonzero((start_s < high) & (end_s > low)).tolist():
            at = nodes[job]
            assert at is not None
            if job not in known:
                known[job] = shares(queue, job)
            part = known[job][:, None]
            all_, first = moved(queue, job, float(start_s[job]), float(end_s[job]), float(logs[job]), edges)
            some = np.flatnonzero(all_)
            if len(some):
                where = at[:, None], some
                read[where] += part * first[some]
                written[where] += part * (all_ - first)[some]
                network[where] += part * all_[some] * (queue.network[job] / queue.volume[job])
        for job in np.flatnonzero(end_s <= high).tolist():
            known.pop(job, None)
        yield _rows(machine, low, read, written, network)


def moved(
    queue: Queue, job: int, start_s: float, end_s: float, log: float, edges: Floats
) -> tuple[Floats, Floats]:
    """Bytes of the job in each interval between `edges` (intervals + 1,): all of them, and those that it read."""
    quiet_s = min(QUIET_S, (end_s - start_s) / 4)
    start_s, end_s = start_s + quiet_s, end_s - quiet_s
    volume, run_s = float(queue.volume[job]), end_s - start_s
    bursts = int(queue.bursts[job])
    length = min(float(queue.io_s[job]), 0.95 * run_s) / bursts
    begin = start_s + np.linspace(0.0, run_s - length, bursts)
    knots = np.repeat(begin, 2)
    knots[1::2] += length
    done = np.repeat(np.arange(bursts + 1), 2)[1:-1] / bursts * (1 - log) * volume
    phases = np.diff(np.interp(edges, knots, done))
    first = np.diff(np.interp(edges, knots[:2], done[:2]))
    return phases + log * volume * np.diff(logged(edges - start_s, run_s)), first


def logged(after_s: Floats, run_s: float) -> Floats:
    """Part of what is logged in all that is written so long after the job's start."""
    whole, rest = np.divmod(np.clip(after_s, 0.0, run_s), LOG_EVERY_S)
    times = whole + np.minimum(rest / LOG_S, 1.0)
    last, rest_s = divmod(run_s, LOG_EVERY_S)
    parts: Floats = times / (last + min(rest_s / LOG_S, 1.0))
    return parts


def _rows(machine: Machine, low: int, read: Floats, written: Floats, network: Floats) -> Traffic:
    """Intervals and nodes with at least a byte."""
    columns = [np.rint(x.T).astype(np.int64) for x in (read, written, network)]
    interval, node = np.nonzero(columns[0] + columns[1])
    rows = [column[interval, node] for column in columns]
    return Traffic(
        machine.nodes,
        float(INTERVAL_S),
        low + interval.astype(np.int64) * INTERVAL_S,
        node.astype(np.int32),
        rows[0],
        rows[1],
        rows[2],
    )


WARM_S = 12 * 3600
"""Before, jobs still stand as they were put onto an empty machine."""


@dataclass(frozen=True, eq=False)
class BurstSystem:
    name: Name
    machine: Machine
    """Of contiguous mapping: an I/O node a cabinet."""
    queue: Queue
    replayed: Replayed

    @property
    def end_s(self) -> int:
        """When the last job has ended, to a whole hour."""
        return int(-(-float(self.replayed.end_s.max()) // 3600) * 3600)

    @property
    def steady_s(self) -> tuple[int, int]:
        """When the machine is warm, and jobs are still submitted."""
        last = int(self.queue.submit_s[-1]) // 3600 * 3600
        return min(WARM_S, last // 3 // 3600 * 3600), max(last, 3600)

    def traffic(self, begin_s: int, until_s: int) -> Iterator[Traffic]:
        history = self.replayed
        return traffic(
            self.name,
            self.queue,
            self.machine,
            history.start_s,
            history.end_s,
            history.nodes,
            begin_s,
            until_s,
        )

    def jobs(self) -> list[Job]:
        names, history = self.machine.nodes, self.replayed
        return [
            self.queue.batch_job(
                job,
                tuple(names[i] for i in history.nodes[job].tolist()),
                float(history.start_s[job]),
                float(history.end_s[job]),
            )
            for job in range(len(self.queue))
        ]


def generate(
    name: Name,
    jobs: int = JOBS,
    seed: int = SEED,
    knobs: Knobs | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> BurstSystem:
    machine = HARDWARE[name].machine()
    made = queue(name, jobs, seed, knobs)
    progress(f"{name}: {jobs:,} jobs are placed")
    return BurstSystem(name, machine, made, replay(machine, made))
