"""The network of one group of objects, and the cheapest flow through it: so many objects on each OST.

It is the paper's (source → OSS → OST → sink), with an arc of its own for each object, whose costs rise. networkx solves
it up to its limit of time. Beyond, one sort does: a server's objects in the order of their OSTs' costs, its own cost of
one object more added, cost ever more, and the cheapest of all servers' are the flow. Nobody has to give an object back
for the next one, because the only ways from OST to OST lead through source or sink. Both find the same lowest cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tarazu.allocate.problem import Array
from tarazu.flows import min_cost_flow

NETWORKX_ARCS = 400
"""Up to here, as with the paper's 16 files on 35 OSTs, networkx needs 10 ms at most (`make bench-alloc`). A plan has
several networks, and a sort needs 0.1 ms.
"""


class Network(NamedTuple):
    """Costs are whole numbers."""

    oss: Array
    """(n,) server of each OST, numbered from 0."""
    counts: Array
    """(n,) arcs of each OST."""
    ost_costs: Array
    """(arcs,) OST after OST, rising along each."""
    oss_costs: Array
    """(arcs,) server after server, rising along each: as many as its OSTs have."""


def cheapest(network: Network, objects: int) -> Array:
    """(n,) objects on each OST where so many, of as many arcs at least, cost least."""
    solve = by_networkx if 2 * len(network.ost_costs) <= NETWORKX_ARCS else by_sorting
    return solve(network, objects)


def by_sorting(network: Network, objects: int) -> Array:
    ost = np.repeat(np.arange(len(network.counts)), network.counts)
    of_server = np.lexsort((network.ost_costs, network.oss[ost]))
    costs = network.ost_costs[of_server] + network.oss_costs
    chosen = of_server[np.argsort(costs, kind="stable")[:objects]]
    counts: Array = np.bincount(ost[chosen], minlength=len(network.counts))
    return counts


def by_networkx(network: Network, objects: int) -> Array:
    # Nodes: 0 source, 1.. servers, then the sink. An OST's own node would have one arc, of room for all that comes:
    # its arcs lead to the sink at once.
    ost = np.repeat(np.arange(len(network.counts)), network.counts)
    arcs, sink = len(ost), 2 + int(network.oss.max())
    servers = 1 + network.oss[ost]
    tails = np.concatenate([np.zeros(arcs, np.int64), servers])
    heads = np.concatenate([np.sort(servers), np.full(arcs, sink)])
    supplies = np.zeros(sink + 1, np.int64)
    supplies[0], supplies[sink] = objects, -objects
    costs = np.concatenate([network.oss_costs, network.ost_costs])
    flow = min_cost_flow(tails, heads, np.ones(2 * arcs, np.int64), costs, supplies)
    counts: Array = np.bincount(ost, flow[arcs:], len(network.counts)).astype(np.int64)
    return counts
