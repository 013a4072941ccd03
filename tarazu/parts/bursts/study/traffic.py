"""The traffic of a queue whose jobs have been placed: what each node moved in each interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tarazu.parts.bursts.measures.published import Name
from tarazu.parts.bursts.study.knobs import KNOBS
from tarazu.parts.bursts.study.queue import Queue
from tarazu.parts.bursts.study.shares import shares
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
