"""Mappings that need no history: compute node → I/O node, each serving as many nodes as the others (give or take one).

A mapping is (nodes,) int32: for each node, in the order of the machine, the index of its I/O node.
"""

from __future__ import annotations

import numpy as np

from tarazu.errors import BadInput
from tarazu.parts.bursts.traffic.traffic import Numbers


def contiguous(nodes: int, io_nodes: int) -> Numbers:
    """Neighbours share an I/O node: node i has ⌊i / (m / n)⌋ (spatially-bursty-io, 5.1). Raises BadInput."""
    _check(nodes, io_nodes)
    return (np.arange(nodes, dtype=np.int64) * io_nodes // max(1, nodes)).astype(np.int32)


def round_robin(nodes: int, io_nodes: int) -> Numbers:
    """Neighbours have different I/O nodes: node i has i % n (spatially-bursty-io, 5.1). Raises BadInput."""
    _check(nodes, io_nodes)
    return (np.arange(nodes, dtype=np.int64) % io_nodes).astype(np.int32)


def moved(before: Numbers, after: Numbers) -> int:
    """Nodes with another I/O node than before; one that had none (-1) is not moved."""
    return int(np.count_nonzero((before != after) & (before >= 0)))


def _check(nodes: int, io_nodes: int) -> None:
    if nodes < 0 or io_nodes < 1:
        raise BadInput("mapping", "an I/O node at least, and no fewer than 0 nodes", f"{io_nodes}, {nodes}")
