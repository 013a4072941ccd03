"""Min-cost flow by networkx' network simplex; and whether OR-tools, which only studies need, are there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from tarazu.errors import InsufficientResources

Array = npt.NDArray[Any]


def has_ortools() -> bool:
    return find_spec("ortools") is not None


def min_cost_flow(tails: Array, heads: Array, capacities: Array, costs: Array, supplies: Array) -> Array:
    """Flow on each arc that carries all supplies at the lowest cost.

    Arcs may be parallel; everything is integer; `supplies[node]` is negative for sinks and sums to 0.
    Raises InsufficientResources when the supplies do not fit through the arcs.
    """
    import networkx

    graph = networkx.MultiDiGraph()
    graph.add_nodes_from((node, {"demand": -supply}) for node, supply in enumerate(supplies.tolist()))
    arcs = zip(tails.tolist(), heads.tolist(), capacities.tolist(), costs.tolist())
    for arc, (tail, head, capacity, cost) in enumerate(arcs):
        graph.add_edge(tail, head, key=arc, capacity=capacity, weight=cost)
    try:
        _, flows = networkx.network_simplex(graph)
    except networkx.NetworkXUnfeasible:
        wanted = int(supplies[supplies > 0].sum())
        message = f"flow network: expected capacity for {wanted} stripes, found less"
        raise InsufficientResources(message) from None
    result = np.zeros(len(tails), np.int64)
    for heads_of in flows.values():
        for keyed in heads_of.values():
            for arc, amount in keyed.items():
                result[arc] = amount
    return result
