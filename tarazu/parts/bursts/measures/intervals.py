"""Traffic interval by interval, as one number for each node of a machine; and how much of each the busiest nodes,
cabinets and I/O nodes have (spatially-bursty-io, 4.1, 7.4).

At every moment, not in sum: those that take turns as the busiest look even in the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tarazu.errors import BadInput
from tarazu.parts.bursts.measures.characteristics import Places
from tarazu.parts.bursts.measures.measures import Floats, busiest, how_many
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Seconds, Traffic


@dataclass(eq=False, slots=True)
class Interval:
    time_s: int
    """When it began, in seconds since 1970."""
    length_s: float
    moved: Floats
    """(nodes,): bytes read and written, in the order of the machine's nodes."""
    elsewhere: float
    """Bytes of nodes that are not the machine's."""
    network: Floats | None
    """(nodes,): bytes besides Lustre's; None: nobody counted."""

    def add(self, other: Interval) -> None:
        """The rest of the same interval."""
        self.moved += other.moved
        self.elsewhere += other.elsewhere
        if self.network is not None and other.network is not None:
            self.network += other.network


def intervals(chunks: Iterable[Traffic], places: Places) -> Iterator[Interval]:
    """Those in which anything was written down, in order. An interval may be spread over several chunks.

    Raises BadInput for time that goes back, as it does where intervals of two lengths were kept at once.
    """
    last: Interval | None = None
    names: tuple[str, ...] | None = None
    at = np.zeros(0, np.int32)
    for chunk in chunks:
        if chunk.nodes is not names:
            names, at = chunk.nodes, places.nodes(chunk.nodes)
        for each in _of_chunk(chunk, at, len(places.machine.nodes)):
            if last is not None and each.time_s == last.time_s:
                last.add(each)
                continue
            if last is not None:
                if each.time_s < last.time_s:
                    found = f"{each.time_s} ({each.length_s:g} s) after {last.time_s} ({last.length_s:g} s)"
                    raise BadInput("traffic", "intervals that follow one another", found)
                yield last
            last = each
    if last is not None:
        yield last


def sums(at: Numbers, values: Floats, count: int) -> Floats:
    """(count,): the values by where they are."""
    return np.bincount(at, values, count).astype(
        np.float64, copy=False
    )  # which it is; numpy's types do not say


def _of_chunk(chunk: Traffic, at: Numbers, nodes: int) -> Iterator[Interval]:
    if not len(chunk):
        return
    begins = np.flatnonzero(np.diff(chunk.time_s)) + 1
    edges = [0, *begins.tolist(), len(chunk)]
    for low, high in pairwise(edges):
        moved = (chunk.read[low:high] + chunk.written[low:high]).astype(np.float64)
        # Nodes that the machine does not know are counted as one more, and taken off.
        where = at[chunk.node[low:high]]
        where = np.where(where < 0, nodes, where)
        dense = sums(where, moved, nodes + 1)
        network = None
        if chunk.network is not None:
            network = sums(where, chunk.network[low:high].astype(np.float64), nodes + 1)[:nodes]
        yield Interval(
            int(chunk.time_s[low]), chunk.interval_s, dense[:nodes].copy(), float(dense[nodes]), network
        )


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
