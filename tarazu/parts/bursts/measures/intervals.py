"""How much of each interval's traffic the busiest nodes, cabinets and I/O nodes have (spatially-bursty-io, 4.1, 7.4).

At every moment, not in sum: those that take turns as the busiest look even in the sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tarazu.parts.bursts.measures.dense import Interval, sums
from tarazu.parts.bursts.measures.measures import Floats, busiest, how_many
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Seconds

NODES, CABINETS, IO_NODES = 0.01, 0.2, 0.1
"""How many of all are the busiest ones (4.1, 7.4.1)."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """By one mapping of compute nodes to I/O nodes."""

    busiest: Floats
    """(intervals,): share of the bytes of all I/O nodes that the busiest ones have."""
    of_busiest: Numbers
    """(intervals,): how many I/O nodes serve the busiest compute nodes."""
    bytes: Floats
    """(I/O nodes,): of all intervals."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Of intervals in which nodes of the machine moved anything."""

    time_s: Seconds
    """(intervals,): when they began."""
    bytes: Floats
    """(intervals,)"""
    nodes: Floats
    """(intervals,): share of the busiest nodes."""
    cabinets: Floats
    """(intervals,): share of the busiest cabinets in the bytes of all cabinets; NaN where no cabinet is known."""
    node_bytes: Floats
    """(nodes,): of all intervals."""
    elsewhere: float
    """Bytes of nodes that are not the machine's."""
    mapped: Mapping[str, Mapped]

    def mean(self, values: Floats) -> float:
        """Of intervals, each as much as another, as S counts; NaN where there are none."""
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else float("nan")

    def weighted(self, values: Floats) -> float:
        """Of bytes: what counts for a job that waits for its own."""
        known = ~np.isnan(values)
        total = self.bytes[known].sum()
        return float((values[known] * self.bytes[known]).sum() / total) if total else float("nan")


@dataclass(eq=False)
class _Mapping:
    at: Numbers
    """(nodes,): the I/O node, one more than there are where none is known."""
    bytes: Floats
    busiest: list[float] = field(default_factory=list)
    of_busiest: list[int] = field(default_factory=list)


class Collector:
    """Is shown one interval after another; keeps a few numbers of each."""

    def __init__(self, machine: Machine, mappings: Mapping[str, Numbers] | None = None) -> None:
        """mappings: name → (nodes,) index into `machine.io_nodes`, -1 where none; without any, `present`: the machine's
        own.
        """
        self.machine = machine
        self._cabinet = _known(machine.cabinet, len(machine.cabinets))
        count = len(machine.io_nodes)
        self._mappings = {
            name: _Mapping(_known(at, count), np.zeros(count))
            for name, at in (mappings or {"present": machine.served_by}).items()
        }
        self._most = how_many(len(machine.nodes), NODES) if machine.nodes else 0
        self._node_bytes = np.zeros(len(machine.nodes))
        self._elsewhere = 0.0
        self._time_s: list[int] = []
        self._bytes: list[float] = []
        self._nodes: list[float] = []
        self._cabinets: list[float] = []

    def add(self, interval: Interval) -> None:
        moved = interval.moved
        self._elsewhere += interval.elsewhere
        total = float(moved.sum())
        if not total > 0:
            return
        self._node_bytes += moved
        top = np.flatnonzero(moved)
        if len(top) > self._most:
            # Of those that moved anything: in most intervals few did, and many zeros would be slow to sort.
            top = top[np.argpartition(moved[top], len(top) - self._most)[len(top) - self._most :]]
        self._time_s.append(interval.time_s)
        self._bytes.append(total)
        self._nodes.append(float(moved[top].sum()) / total)
        self._cabinets.append(_share(_sums(self._cabinet, moved, len(self.machine.cabinets)), CABINETS))
        io_nodes = len(self.machine.io_nodes)
        for mapping in self._mappings.values():
            of_io_nodes = _sums(mapping.at, moved, io_nodes)
            mapping.bytes += of_io_nodes
            mapping.busiest.append(_share(of_io_nodes, IO_NODES))
            mapping.of_busiest.append(int((np.unique(mapping.at[top]) < io_nodes).sum()))

    def shares(self) -> Shares:
        return Shares(
            np.array(self._time_s, np.int64),
            np.array(self._bytes),
            np.array(self._nodes),
            np.array(self._cabinets),
            self._node_bytes,
            self._elsewhere,
            {
                name: Mapped(np.array(mapping.busiest), np.array(mapping.of_busiest, np.int32), mapping.bytes)
                for name, mapping in self._mappings.items()
            },
        )


def _sums(at: Numbers, moved: Floats, count: int) -> Floats:
    return sums(at, moved, count + 1)[:count]


def _share(of: Floats, share: float) -> float:
    return busiest(of, share) if len(of) and of.any() else float("nan")


def _known(at: Numbers, count: int) -> Numbers:
    """Unknown ones as one more, to be counted and left out."""
    return np.where(at < 0, count, at).astype(np.int32)
