"""What Slurm chooses by itself, as a model: whole nodes, all alike, none asked for by name.

Two choices of Slurm's select/cons_tres (src/plugins/select/cons_tres/job_test.c, 20.11 to 23.02; later ones have
them in topology/). Without a topology, best fit by consecutive nodes: the smallest run of idle nodes that holds all
that is left, else the largest one; and again, until the job has its nodes. With topology/tree the same of leaf
switches instead of runs, which takes the least number of them. Equal ones: the first. The nodes of a run or switch are
taken in their order.

Of trees only leaves are looked at here: all leaves stand under one switch.
"""

from __future__ import annotations

import heapq
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tarazu.parts.bursts.traffic.machine import Machine

Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


class Fit(Protocol):
    def __call__(self, machine: Machine, idle: Flags, nodes: int) -> Indices | None: ...


def consecutive(machine: Machine, idle: Flags, nodes: int) -> Indices | None:
    """Best fit by runs of idle nodes. `idle`: (nodes of the machine,). Ascending; None: not so many are idle."""
    edges = np.flatnonzero(np.diff(idle.astype(np.int8), prepend=0, append=0))
    starts, ends = edges[::2], edges[1::2]
    taken = _best_fit(ends - starts, nodes)
    if taken is None:
        return None
    return np.sort(np.concatenate([np.arange(starts[i], starts[i] + count) for i, count in taken]))


def tree(machine: Machine, idle: Flags, nodes: int) -> Indices | None:
    """Best fit by cabinets, which are the leaf switches. As `consecutive`."""
    free = np.flatnonzero(idle)
    at = machine.cabinet[free]
    taken = _best_fit(np.bincount(at, minlength=len(machine.cabinets)), nodes)
    if taken is None:
        return None
    return np.sort(np.concatenate([free[at == i][:count] for i, count in taken]))


def _best_fit(sizes: Indices, nodes: int) -> list[tuple[int, int]] | None:
    """(which, nodes of it) until `nodes` are had; None: there are too few, or none is wanted."""
    if not 0 < nodes <= int(sizes.sum()):
        return None
    taken: list[tuple[int, int]] = []
    left = nodes
    largest: list[tuple[int, int]] | None = None
    """Largest first, equal ones in their order; what does not hold all now will not, as only whole ones are taken."""
    while True:
        enough = np.flatnonzero(sizes >= left)
        if len(enough):
            best = int(enough[np.argmin(sizes[enough])])
            return [*taken, (best, left)]
        if largest is None:
            largest = [(-size, i) for i, size in enumerate(sizes.tolist()) if size]
            heapq.heapify(largest)
            sizes = sizes.copy()
        size, best = heapq.heappop(largest)
        taken.append((best, -size))
        left += size
        sizes[best] = 0


FITS: dict[str, Fit] = {"consecutive": consecutive, "tree": tree}
