"""Which node gets which I/O node when only so many fit: min-cost flow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tarazu.errors import InsufficientResources
from tarazu.flows import has_ortools, min_cost_flow
from tarazu.forwarding.traffic.traffic import Numbers

LARGEST = 1_000_000
"""Costs are made whole numbers up to this."""


def cheapest(costs: npt.NDArray[np.float64], room: npt.NDArray[np.int64]) -> Numbers:
    """(nodes,): for each node its I/O node, at the lowest sum of `costs` (nodes, I/O nodes), none over its `room`.

    Raises InsufficientResources when the rooms together are too small.
    """
    nodes, io_nodes = costs.shape
    if int(room.sum()) < nodes:
        raise InsufficientResources(f"expected room for {nodes} nodes, found room for {int(room.sum())}")
    open_to = np.flatnonzero(room > 0)
    among = costs[:, open_to]
    low, high = (float(among.min()), float(among.max())) if among.size else (0.0, 0.0)
    whole = np.rint((among - low) * (LARGEST / (high - low) if high > low else 0.0)).astype(np.int64)
    sink, pairs = nodes + io_nodes, nodes * len(open_to)
    heads = nodes + np.tile(open_to, nodes)
    flows = min_cost_flow(
        np.concatenate([np.repeat(np.arange(nodes), len(open_to)), nodes + open_to]),
        np.concatenate([heads, np.full(len(open_to), sink)]),
        np.concatenate([np.ones(pairs, np.int64), room[open_to]]),
        np.concatenate([whole.ravel(), np.zeros(len(open_to), np.int64)]),
        np.array([1] * nodes + [0] * io_nodes + [-nodes], np.int64),
        "ortools" if has_ortools() else "networkx",
    )
    found: Numbers = (heads[flows[:pairs] > 0] - nodes).astype(np.int32)
    return found


def relabelled(mapping: Numbers, kept: npt.NDArray[np.float64]) -> Numbers:
    """The same groups of nodes, each on the I/O node where most is kept: `kept` (groups, I/O nodes) is to be large."""
    of_group = cheapest(-kept, np.ones(kept.shape[1], np.int64))
    return of_group[mapping]


def overlap(mapping: Numbers, present: Numbers, io_nodes: int) -> npt.NDArray[np.float64]:
    """(groups, I/O nodes): nodes of a group that its I/O node serves at present."""
    found = np.zeros((io_nodes, io_nodes))
    known = present >= 0
    np.add.at(found, (mapping[known], present[known]), 1.0)
    return found
