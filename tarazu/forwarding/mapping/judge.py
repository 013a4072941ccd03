"""What a mapping gives: how the traffic of a period would have lain on the I/O nodes.

The busiest 10 % of the I/O nodes are other ones in each interval, and so are the busiest 1 % of the nodes
(spatially-bursty-io, 7.4.1). Shares are means over the intervals with traffic, each counting alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from tarazu.forwarding.mapping.history import intervals
from tarazu.forwarding.traffic.machine import Machine
from tarazu.forwarding.traffic.traffic import Numbers, Traffic

BUSIEST_IO_NODES = 0.1
BUSIEST_NODES = 0.01


class Judged(msgspec.Struct, frozen=True):
    intervals: int
    """With traffic."""
    busiest_share: float
    """Of the bytes, by the busiest tenth of the I/O nodes (rounded up)."""
    io_nodes_of_busiest: float
    """I/O nodes that serve the busiest 1 % of the nodes (rounded up, of all nodes), those without traffic not among
    them."""
    in_use: float
    """I/O nodes that it comes to, were they used alike: 1 / Σ share² (mean of the intervals)."""


def judge(
    mappings: Mapping[str, Numbers], io_nodes: int, chunks: Iterable[Traffic], machine: Machine
) -> dict[str, Judged]:
    """Each mapping on the same traffic, read once; nodes that a mapping gives none (-1) are left out of its sums."""
    top = max(1, math.ceil(BUSIEST_IO_NODES * io_nodes))
    busiest = max(1, math.ceil(BUSIEST_NODES * len(machine.nodes)))
    sums = {name: np.zeros(4) for name in mappings}
    for _, node, moved in intervals(chunks, machine):
        largest = np.argpartition(-moved, busiest - 1)[:busiest] if len(moved) > busiest else slice(None)
        for name, mapping in mappings.items():
            served_by = mapping[node]
            known = served_by >= 0
            load = np.bincount(served_by[known], weights=moved[known], minlength=io_nodes)
            total = load.sum()
            if not total:
                continue
            of_largest = served_by[largest]
            sums[name] += (
                1,
                np.partition(load, io_nodes - top)[io_nodes - top :].sum() / total,
                len(np.unique(of_largest[of_largest >= 0])),
                total * total / np.square(load).sum(),
            )
    return {
        name: Judged(int(n), *(float(each / n) if n else 0.0 for each in rest))
        for name, (n, *rest) in sums.items()
    }
