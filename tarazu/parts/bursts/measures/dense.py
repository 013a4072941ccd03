"""Traffic interval by interval, as one number for each node of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tarazu.errors import BadInput
from tarazu.parts.bursts.measures.characteristics import Places
from tarazu.parts.bursts.measures.measures import Floats
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic


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
