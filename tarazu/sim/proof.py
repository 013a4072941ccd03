"""Bounds that CP-SAT proves: placements of few object sizes are judged by them, and nothing is placed by it.

Without OR-tools they are those of `tarazu.allocate.bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tarazu.allocate import bounds, packing
from tarazu.allocate.marginal_cost import Levels
from tarazu.allocate.problem import Array, build
from tarazu.flows import has_ortools
from tarazu.model import CreateRequest, SystemView

SEARCHED = 1.3
"""How far above the counting bound the search looks."""
PROVEN = 2e-4
"""Relative distance from the true optimum at which it ends."""
MAX_SERVER_PATTERNS = 1_500
"""Fillings times servers; beyond, a question takes minutes."""
SERVERS_SEARCHED = 1.1
"""How far above the counting bound the servers' bound is looked for."""
SERVER_TOLERANCE = 2e-3
"""Relative distance at which that ends."""
EFFORT = 2.0
"""CP-SAT's deterministic time per question: the same answer on every machine."""


def utilization_bound(view: SystemView, requests: Sequence[CreateRequest]) -> float:
    """Lower bound of the OST cost: max / mean of the new bytes per usable OST (paper, equation 4)."""
    problem = build(view, requests)
    if not problem.total_bytes:
        return 1.0
    osts = len(problem.osts)
    level = bounds.lowest_level(problem, np.ones(osts), np.zeros(osts))
    level, _ = packing.pack(problem, Levels.of_bytes(osts), level, level * SEARCHED, PROVEN, search=_uses)
    return max(1.0, level * osts / problem.total_bytes)


def oss_bound(view: SystemView, requests: Sequence[CreateRequest], ost_cost: float) -> float:
    """Lower bound of the OSS cost of placements whose OST cost is not above `ost_cost`; the two goals can exclude one
    another. That of all placements where there are too many fillings.
    """
    problem, known = build(view, requests), bounds.oss_bound(view, requests)
    mean = problem.total_bytes / len(problem.osts)
    both = packing.fillings(problem, int(ost_cost * mean * (1 + 1e-9)))
    width = np.bincount(problem.oss, minlength=len(problem.oss_names)).tolist()
    if both is None or len(both[1]) * len(width) > MAX_SERVER_PATTERNS:
        return known
    objects, patterns = both
    low, high = known, known * SERVERS_SEARCHED
    while high > low * (1 + SERVER_TOLERANCE):
        middle = (low + high) / 2
        most = [int(middle * mean * osts) for osts in width]
        if _uses(objects.sizes, objects.counts, [(osts, patterns) for osts in width], most) is False:
            low = middle
        else:
            high = middle
    return low


def _uses(
    sizes: Array, counts: Array, kinds: Sequence[tuple[int, Array]], most_bytes: Sequence[int] = ()
) -> list[list[int]] | Literal[False] | None:
    """As `tarazu.allocate.filling.fill`, with so many bytes at most on all OSTs of each kind; False when it cannot be,
    None when undecided.
    """
    if not has_ortools():
        return None
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    uses = [[model.new_int_var(0, osts, "") for _ in patterns] for osts, patterns in kinds]
    for (osts, _), of_kind in zip(kinds, uses, strict=True):
        model.add(cp_model.LinearExpr.sum(of_kind) <= osts)
    for most, (_, patterns), of_kind in zip(most_bytes, kinds, uses):
        model.add(cp_model.LinearExpr.weighted_sum(of_kind, (patterns @ sizes).tolist()) <= most)
    every = [use for of_kind in uses for use in of_kind]
    for held, count in zip(np.concatenate([patterns for _, patterns in kinds]).T, counts.tolist()):
        model.add(cp_model.LinearExpr.weighted_sum(every, held.tolist()) >= count)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = EFFORT
    # Models this small are solved by their linear relaxation; what prepares for a long search takes ten times as long.
    solver.parameters.cp_model_presolve = False
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.use_sat_inprocessing = False
    solver.parameters.add_lp_constraints_lazily = False
    solver.parameters.cut_level = 0
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return [[solver.value(use) for use in of_kind] for of_kind in uses]
    return False if status == cp_model.INFEASIBLE else None
