"""The paper's allocator taken literally (section 5.7, figure 13), for comparison.

Linear costs: each OSS costs its load, each OST used / total, whatever is already assigned to it in this run (what
others were promised is no space, as for every policy);
so the cheapest OST is filled up to its capacity before the next one gets anything. Distinctness is not part
of the network: a file may get one OST several times, which Lustre would refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from tarazu.allocate.answer import answer
from tarazu.allocate.eligible import too_little_space
from tarazu.allocate.problem import build
from tarazu.config import Weights
from tarazu.flows import min_cost_flow
from tarazu.model import Allocation, CreateRequest, SystemView

COST_SCALE = 1_000_000


class Linear:
    """Policy `tarazu-linear`."""

    name = "tarazu-linear"

    def __init__(self, seed: int = 0, weights: Weights | None = None) -> None:
        """The policy has no freedom: `seed` and `weights` are accepted and unused."""

    def allocate(
        self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
    ) -> Allocation:
        """Place `requests`. Raises InfeasibleRequest (never) or InsufficientResources (not now)."""
        start = perf_counter()
        problem = build(view, requests)
        osts, servers = len(problem.osts), len(problem.oss_names)
        stripes = sum(g.weights.size for g in problem.groups)
        largest = max((int(g.weights.max()) for g in problem.groups), default=1)
        room = [max(0, o.avail_bytes - o.promised_bytes) for o in problem.osts]
        capacity = np.array(room, np.int64) // largest
        if capacity.sum() < stripes:
            raise too_little_space(f"file system {view.fs_name}", stripes, largest, int(capacity.sum()))
        load = [view.oss_of(name).load for name in problem.oss_names]
        filled = [o.used_bytes / max(1, o.total_bytes) for o in problem.osts]
        # Nodes: 0 source, 1.. servers, then OSTs, then the sink; arcs: source → OSS, OSS → OST, OST → sink.
        oss_nodes = 1 + np.arange(servers)
        ost_nodes = 1 + servers + np.arange(osts)
        sink = 1 + servers + osts
        tails = np.concatenate([np.zeros(servers, np.int64), 1 + problem.oss, ost_nodes])
        heads = np.concatenate([oss_nodes, ost_nodes, np.full(osts, sink)])
        capacities = np.concatenate([np.full(servers + osts, stripes), capacity])
        costs = np.rint(np.array(load + [0.0] * osts + filled) * COST_SCALE).astype(np.int64)
        supplies = np.zeros(sink + 1, np.int64)
        supplies[0], supplies[sink] = stripes, -stripes
        flow = min_cost_flow(tails, heads, capacities, costs, supplies)
        cards = np.repeat(np.arange(osts), flow[-osts:])
        placed = np.zeros(osts)
        dealt = 0
        for group in problem.groups:
            group.osts = cards[dealt : dealt + group.weights.size].reshape(group.weights.shape)
            dealt += group.weights.size
            placed += np.bincount(group.osts.ravel(), group.weights.ravel(), osts)
        return answer(problem, self.name, placed, start)
