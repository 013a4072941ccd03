"""From arrays back to files: the OST list of every component, and start hints beyond the forecast."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from time import perf_counter

import numpy as np

from tarazu.allocate import bounds, quality
from tarazu.allocate.eligible import in_pool
from tarazu.allocate.problem import Array, Problem
from tarazu.model import Allocation, Component, FilePlacement


def answer(
    problem: Problem,
    policy: str,
    placed: Array,
    start_s: float,
    order: Array | None = None,
    bound: float | None = None,
) -> Allocation:
    """What a policy called `policy` that began at `start_s` answers once every group has its OSTs.

    placed: (n,) new bytes of each OST; order: OST positions, those that hints prefer first (default: those with the
    fewest new bytes); bound: of the OST cost.
    """
    if order is None:
        order = np.argsort(placed, kind="stable")
    files = _placements(problem, order)
    reached = quality.ost_cost(dict(enumerate(placed.astype(np.int64).tolist())))
    bound = bounds.utilization_of(problem) if bound is None else bound
    return Allocation(files, policy, reached, bound, perf_counter() - start_s)


def _placements(problem: Problem, order: Array) -> tuple[FilePlacement, ...]:
    """The answer in OST indices; components beyond the forecast get one hint each, rotating over `order`.

    `order`: OST positions, emptiest first.
    """
    index = np.array([o.index for o in problem.osts], np.int64)
    parts: list[list[tuple[int, ...]]] = [[] for _ in problem.requests]
    for group in sorted(problem.groups, key=lambda g: (g.component, g.first_stripe)):
        position, first = group.component, group.first_stripe
        for request, row in zip(group.requests.tolist(), index[group.osts].tolist()):
            part = parts[request]
            if first:
                part[position] += tuple(row)
                continue
            while len(part) < position:
                part.append(())
            part.append(tuple(row))
    hints = _Hints(problem, order)
    placements = []
    for request, part in zip(problem.requests, parts):
        wanted = len(request.layout.components)
        if len(part) < wanted:
            covered = request.layout.covered(request.size_bytes)
            while len(part) < covered:
                part.append(())
            part += [hints.next(c) for c in request.layout.components[covered:]]
        placements.append(FilePlacement(tuple(part)))
    return tuple(placements)


class _Hints:
    """Start hints for components beyond the forecast: the emptier half of the pool in turn."""

    def __init__(self, problem: Problem, order: Array) -> None:
        self._osts = [problem.osts[i] for i in order.tolist()]
        self._turns: dict[str, Iterator[int]] = {}

    def next(self, component: Component) -> tuple[int, ...]:
        if not component.stripe_count or component.pattern == "mdt":
            return ()
        if component.pool not in self._turns:
            osts = [o.index for o in in_pool(self._osts, component.pool)]
            self._turns[component.pool] = cycle(osts[: (len(osts) + 1) // 2])
        return tuple(islice(self._turns[component.pool], 1))
