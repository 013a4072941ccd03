"""MCKP: I/O nodes as a multiple-choice knapsack (Bez et al. 2021, paper A's [7]); counts and placement at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.errors import TarazuError
from tarazu.flows import has_ortools
from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.policy import Need, Schedule
from tarazu.parts.forwarding.tables import Array, table

STEPS = 1 << 20
"""The largest bandwidth in whole numbers: the solver has no others."""
EFFORT = 20.0
"""CP-SAT's deterministic time; an answer that is not proven best by then is taken as it is."""

LONGEST_S = 20.0
"""And where its own time hardly passes, as with thousands of resources."""


class Knapsack:
    """The largest sum of bandwidths with resources of their own for each; of equal sums the fewest resources.

    Where there are more applications than resources, one resource (the last) is shared by those that get none of their
    own and add nothing to the sum.
    """

    name = "mckp"
    needs: frozenset[Need] = frozenset({"curve"})

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule:
        bandwidth = table(applications, resources).bandwidth
        shared = len(applications) > resources.count
        own = choose(bandwidth, resources.count - shared, must=not shared)
        ends = np.cumsum(own).tolist()
        return Schedule(
            tuple(
                tuple(range(end - n, end)) if n else (resources.count - 1,)
                for n, end in zip(own.tolist(), ends, strict=True)
            )
        )


def choose(bandwidth: Array, available: int, must: bool) -> Array:
    """(K,) of 0 … M resources for each row of `bandwidth` (K, M), together at most `available`; 1 … M where `must`."""
    if not must and available == 0:
        return np.zeros(len(bandwidth), int)
    if not has_ortools():
        raise TarazuError("policy mckp: expected the package ortools (tarazu[sim]), found none")
    from ortools.sat.python import cp_model

    worth = np.rint(bandwidth / bandwidth.max() * STEPS).astype(int)
    model = cp_model.CpModel()
    rows: list[list[tuple[int, cp_model.IntVar]]] = []
    used, value = [], []
    for i, row in enumerate(worth):
        better = np.flatnonzero(row > np.maximum.accumulate(np.concatenate(([-1], row[:-1])))) + 1
        choices = [(int(n), model.new_bool_var(f"{i} {n}")) for n in better if n <= available]
        if not must:
            choices.append((0, model.new_bool_var(f"{i} 0")))
        model.add_exactly_one(variable for _, variable in choices)
        used += [n * variable for n, variable in choices]
        value += [int(row[n - 1]) * variable for n, variable in choices if n]
        rows.append(choices)
    model.add(sum(used) <= available)
    model.maximize((available + 1) * sum(value) - sum(used))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = EFFORT
    solver.parameters.max_time_in_seconds = LONGEST_S
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise TarazuError(f"mckp: expected an answer of CP-SAT within {LONGEST_S:g} s, found none")
    return np.array([next(n for n, variable in row if solver.boolean_value(variable)) for row in rows])
