"""Solvers of min-cost flow: one function in front of networkx' network simplex and OR-tools' SimpleMinCostFlow."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tarazu.errors import InsufficientResources, TarazuError

Array = npt.NDArray[Any]


def has_ortools() -> bool:
    return find_spec("ortools") is not None


def min_cost_flow(
    tails: Array,
    heads: Array,
    capacities: Array,
    costs: Array,
    supplies: Array,
    solver: Literal["networkx", "ortools"] = "networkx",
) -> Array:
    """Flow on each arc that carries all supplies at the lowest cost.

    Arcs may be parallel; everything is integer; `supplies[node]` is negative for sinks and sums to 0.
    Raises InsufficientResources when the supplies do not fit through the arcs.
    """
    run = _networkx if solver == "networkx" else _ortools
    return run(tails, heads, capacities, costs, supplies)


def _networkx(tails: Array, heads: Array, capacities: Array, costs: Array, supplies: Array) -> Array:
    import networkx

    graph = networkx.MultiDiGraph()
    graph.add_nodes_from((node, {"demand": -supply}) for node, supply in enumerate(supplies.tolist()))
    arcs = zip(tails.tolist(), heads.tolist(), capacities.tolist(), costs.tolist())
    for arc, (tail, head, capacity, cost) in enumerate(arcs):
        graph.add_edge(tail, head, key=arc, capacity=capacity, weight=cost)
    try:
        _, flows = networkx.network_simplex(graph)
    except networkx.NetworkXUnfeasible:
        raise InsufficientResources(_unfeasible(supplies)) from None
    result = np.zeros(len(tails), np.int64)
    for heads_of in flows.values():
        for keyed in heads_of.values():
            for arc, amount in keyed.items():
                result[arc] = amount
    return result


def _ortools(tails: Array, heads: Array, capacities: Array, costs: Array, supplies: Array) -> Array:
    from ortools.graph.python import min_cost_flow as ortools_flow

    solver = ortools_flow.SimpleMinCostFlow()
    arcs = solver.add_arcs_with_capacity_and_unit_cost(
        tails.astype(np.int32), heads.astype(np.int32), capacities.astype(np.int64), costs.astype(np.int64)
    )
    solver.set_nodes_supplies(np.arange(len(supplies), dtype=np.int32), supplies.astype(np.int64))
    status = solver.solve()
    if status == solver.INFEASIBLE:
        raise InsufficientResources(_unfeasible(supplies))
    if status != solver.OPTIMAL:
        raise TarazuError(f"OR-tools' min-cost flow: expected OPTIMAL, found status {status}")
    return np.asarray(solver.flows(arcs), np.int64)


def _unfeasible(supplies: Array) -> str:
    wanted = int(supplies[supplies > 0].sum())
    return f"flow network: expected capacity for {wanted} stripes, found less"
