"""How much of each interval's traffic the busiest nodes, cabinets and I/O nodes have (spatially-bursty-io, 4.1, 7.4).

At every moment, not in sum: those that take turns as the busiest look even in the sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from tarazu.parts.bursts.measures.dense import Interval, sums
from tarazu.parts.bursts.measures.measures import Floats, busiest, how_many
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Seconds


class Busiest(msgspec.Struct, frozen=True):
    """How many of all are the busiest ones."""

    nodes: float = 0.01
    cabinets: float = 0.2
    io_nodes: float = 0.1


@dataclass(frozen=True, eq=False)
class Mapped:
    """By one mapping of compute nodes to I/O nodes."""

    busiest: Floats
    """(intervals,): share of the bytes of all I/O nodes that the busiest ones have."""
    of_busiest: Numbers
    """(intervals,): how many I/O nodes serve the busiest compute nodes."""
    bytes: Floats
    """(I/O nodes,): of the whole period."""
    heat: Floats
    """(I/O nodes, columns): bytes in each piece of the period."""


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
    """(nodes,): of the whole period."""
    elsewhere: float
    """Bytes of nodes that are not the machine's."""
    mapped: Mapping[str, Mapped]
    column_s: float
    """Length of a column of heat."""

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
    heat: Floats
    busiest: list[float] = field(default_factory=list)
    of_busiest: list[int] = field(default_factory=list)


class Collector:
    """Is shown one interval after another; keeps a few numbers of each."""

    def __init__(
        self,
        machine: Machine,
        period: tuple[float, float],
        mappings: Mapping[str, Numbers] | None = None,
        busy: Busiest | None = None,
        columns: int = 720,
    ) -> None:
        """period: (from, to) in seconds since 1970, in so many columns of heat. mappings: name → (nodes,) index into
        `machine.io_nodes`, -1 where none; without any, `present`: the machine's own.
        """
        self.machine = machine
        self.busy = busy or Busiest()
        self._start_s = period[0]
        self._column_s = max((period[1] - period[0]) / columns, 1.0)
        self._columns = columns
        self._cabinet = _known(machine.cabinet, len(machine.cabinets))
        count = len(machine.io_nodes)
        self._mappings = {
            name: _Mapping(_known(at, count), np.zeros((count, columns)))
            for name, at in (mappings or {"present": machine.served_by}).items()
        }
        self._most = how_many(len(machine.nodes), self.busy.nodes) if machine.nodes else 0
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
        self._cabinets.append(
            self._share(self._sums(self._cabinet, moved, len(self.machine.cabinets)), "cabinets")
        )
        columns, parts = self._in_columns(interval)
        io_nodes = len(self.machine.io_nodes)
        for mapping in self._mappings.values():
            sums = self._sums(mapping.at, moved, io_nodes)
            mapping.busiest.append(self._share(sums, "io_nodes"))
            serving = np.unique(mapping.at[top])
            mapping.of_busiest.append(int((serving < io_nodes).sum()))
            mapping.heat[:, columns] += sums[:, None] * parts

    def _in_columns(self, interval: Interval) -> tuple[slice, Floats]:
        """Which columns it is in, and which part of it is in each; what is beyond the period's ends counts there."""
        begin = (interval.time_s - self._start_s) / self._column_s
        edges = np.array([begin, begin + interval.length_s / self._column_s])
        first, last = np.clip(np.floor(edges), 0, self._columns - 1).astype(int).tolist()
        within = np.arange(first + 1, last + 1)
        parts = np.diff(np.concatenate([edges[:1], within, edges[1:]])) / (edges[1] - edges[0])
        return slice(first, last + 1), parts

    def _sums(self, at: Numbers, moved: Floats, count: int) -> Floats:
        return sums(at, moved, count + 1)[:count]

    def _share(self, sums: Floats, what: str) -> float:
        return busiest(sums, getattr(self.busy, what)) if len(sums) and sums.any() else float("nan")

    def shares(self) -> Shares:
        return Shares(
            np.array(self._time_s, np.int64),
            np.array(self._bytes),
            np.array(self._nodes),
            np.array(self._cabinets),
            self._node_bytes,
            self._elsewhere,
            {
                name: Mapped(
                    np.array(mapping.busiest),
                    np.array(mapping.of_busiest, np.int32),
                    mapping.heat.sum(axis=1),
                    mapping.heat,
                )
                for name, mapping in self._mappings.items()
            },
            self._column_s,
        )


def _known(at: Numbers, count: int) -> Numbers:
    """Unknown ones as one more, to be counted and left out."""
    return np.where(at < 0, count, at).astype(np.int32)
