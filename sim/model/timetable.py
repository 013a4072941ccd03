"""When a workload's files will be touched first, as far as that can be told before the job runs."""

from __future__ import annotations

import numpy as np

from tarazu.sim.model.links import Floats
from tarazu.sim.workloads.workload import OperationKind, Workload

RANK_BYTES_PER_S = 2e7
"""What a rank is taken to move while all do: tells apart what has no times of its own."""


def first_touched_s(work: Workload) -> tuple[Floats, Floats]:
    """(files,) seconds after the start, and the rank that is first; infinite and -1 for files that nobody touches.

    Ranks go through their delays and bytes, and wait for one another at barriers.
    """
    operations = work.operations
    at_s, first = np.full(len(work.files), np.inf), np.full(len(work.files), -1.0)
    if not len(operations):
        return at_s, first
    ranks = operations["rank"].astype(np.int64)
    takes_s = operations["delay_s"] + operations["bytes"] / RANK_BYTES_PER_S
    barrier = operations["kind"] == OperationKind.BARRIER
    starts = np.flatnonzero(np.r_[True, ranks[1:] != ranks[:-1]])
    lengths = np.diff(np.r_[starts, len(ranks)])

    def since_start(values: Floats) -> Floats:
        """Sum of what the same rank did before each operation."""
        before = np.cumsum(values) - values
        sums: Floats = before - np.repeat(before[starts], lengths)
        return sums

    phase = since_start(barrier.astype(np.float64)).astype(np.int64)
    # A rank's clock at the start of each of its phases is the phase's: that of the slowest.
    phases = np.flatnonzero(np.r_[True, (ranks[1:] != ranks[:-1]) | (phase[1:] != phase[:-1])])
    own = np.cumsum(takes_s) - takes_s
    own -= np.repeat(own[phases], np.diff(np.r_[phases, len(ranks)]))
    longest = np.zeros(int(phase.max()) + 1)
    np.maximum.at(longest, phase, own + takes_s)
    begins = np.cumsum(longest) - longest
    clock = np.maximum(begins[phase] + own + operations["delay_s"], operations["earliest_s"])
    touching = np.flatnonzero(operations["file"] >= 0)
    touching = touching[np.lexsort((ranks[touching], clock[touching]))][::-1]
    at_s[operations["file"][touching]] = clock[touching]
    first[operations["file"][touching]] = ranks[touching]
    return at_s, first
