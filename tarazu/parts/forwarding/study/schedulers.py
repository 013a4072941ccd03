"""Paper A's policies (section 4) and ours, by name: `ta-gnc` is an allocator and a placer; `mckp`, `joint` are both.

How many: Random, Static, BestBdw (BBA), Nsys-Allocator (NSYSA), TCPU-Allocator (TA). Which: Random-Placement (RandP),
Greedy-Non-Clairvoyant (GNC), Greedy-Clairvoyant (GC).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

import msgspec
import numpy as np

from tarazu.errors import BadInput, TarazuError
from tarazu.flows import has_ortools
from tarazu.parts.forwarding import tcpu
from tarazu.parts.forwarding.application import Application, Need, Resources, Schedule, Scheduler, io_share
from tarazu.parts.forwarding.joint.policy import Joint, as_schedule, least_stressed, round_robin
from tarazu.parts.forwarding.tables import Array, check, table

STEPS = 1 << 20
"""The largest bandwidth in whole numbers: the solver has no others."""
EFFORT = 20.0
"""CP-SAT's deterministic time; an answer that is not proven best by then is taken as it is."""
LONGEST_S = 20.0
"""And where its own time hardly passes, as with thousands of resources."""


class Allocator(Protocol):
    """How many: 1 … N for each application."""

    name: str
    needs: frozenset[Need]

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]: ...


class Placer(Protocol):
    """Which: `counts[i]` different resources for `applications[i]`."""

    name: str
    needs: frozenset[Need]

    def place(
        self, applications: Sequence[Application], counts: Sequence[int], resources: Resources
    ) -> Schedule: ...


class TwoSteps(msgspec.Struct, frozen=True):
    """An allocator and then a placer: a scheduler."""

    allocator: Allocator
    placer: Placer

    @property
    def name(self) -> str:
        return f"{self.allocator.name}-{self.placer.name}"

    @property
    def needs(self) -> frozenset[Need]:
        return self.allocator.needs | self.placer.needs

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule:
        counts = self.allocator.allocate(applications, resources)
        return self.placer.place(applications, counts, resources)


class RandomCounts:
    """Each application a number picked at random: what the others are compared with. Of one seed always the same."""

    name = "random"
    needs: frozenset[Need] = frozenset()

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        check(applications, resources)
        random = Random(f"counts {self._seed}")
        return tuple(random.randint(1, resources.count) for _ in applications)


class Static:
    """The application's share of the compute nodes, Q_j · N / Q, rounded (a half up), at least 1 and at most N."""

    name = "static"
    needs: frozenset[Need] = frozenset({"nodes"})

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        check(applications, resources)
        n, whole = resources.count, max(1, resources.nodes)
        return tuple(min(n, max(1, (2 * a.nodes * n + whole) // (2 * whole))) for a in applications)


class BestBandwidth:
    """BBA: n_perf, at which its I/O alone takes the least time."""

    name = "bba"
    needs: frozenset[Need] = frozenset({"n_perf"})

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        return tuple(table(applications, resources).n_perf.tolist())


class LeastStress:
    """NSYSA: n_sys, at which it keeps the fewest resources busy (π_sys, the least I/O-load)."""

    name = "nsysa"
    needs: frozenset[Need] = frozenset({"volume", "cpu", "curve"})

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        return tuple(table(applications, resources).n_sys.tolist())


class Tcpu:
    """TA: from n_sys upwards, first what adds most to the compute nodes that compute, while I/O-load stays ≤ 1."""

    name = "ta"
    needs: frozenset[Need] = frozenset({"nodes", "volume", "cpu", "curve"})

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        return tuple(tcpu.counts(table(applications, resources), resources.count).tolist())


class RandomPlacement:
    """RandP: different resources at random, as where nobody looks at I/O. Of one seed always the same."""

    name = "randp"
    needs: frozenset[Need] = frozenset()

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def place(
        self, applications: Sequence[Application], counts: Sequence[int], resources: Resources
    ) -> Schedule:
        check(applications, resources)
        random = Random(f"places {self._seed}")
        return Schedule(tuple(tuple(sorted(random.sample(range(resources.count), n))) for n in counts))


class RoundRobin:
    """GNC: those with the most resources first, one resource after the other round the circle."""

    name = "gnc"
    needs: frozenset[Need] = frozenset()

    def place(
        self, applications: Sequence[Application], counts: Sequence[int], resources: Resources
    ) -> Schedule:
        check(applications, resources)
        return as_schedule(round_robin(np.array(counts), resources.count))


class LeastStressed:
    """GC: those that are most of their time in I/O first, each on the resources with the least of it so far."""

    name = "gc"
    needs: frozenset[Need] = frozenset({"volume", "cpu", "curve"})

    def place(
        self, applications: Sequence[Application], counts: Sequence[int], resources: Resources
    ) -> Schedule:
        check(applications, resources)
        busy = np.array(list(map(io_share, applications, counts)))
        return as_schedule(least_stressed(np.array(counts), busy, resources.count))


class Knapsack:
    """MCKP: I/O nodes as a multiple-choice knapsack (Bez et al. 2021, paper A's [7]).

    The largest sum of bandwidths with resources of their own for each; of equal sums the fewest resources.
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


ALLOCATORS: dict[str, Callable[[int], Allocator]] = {
    "random": RandomCounts,
    "static": lambda seed: Static(),
    "bba": lambda seed: BestBandwidth(),
    "nsysa": lambda seed: LeastStress(),
    "ta": lambda seed: Tcpu(),
}
PLACERS: dict[str, Callable[[int], Placer]] = {
    "randp": RandomPlacement,
    "gnc": lambda seed: RoundRobin(),
    "gc": lambda seed: LeastStressed(),
}
BOTH: dict[str, Callable[[int], Scheduler]] = {"mckp": lambda seed: Knapsack(), "joint": lambda seed: Joint()}

NAMES = (*(f"{a}-{p}" for a in ALLOCATORS for p in PLACERS), *BOTH)


def named(name: str, seed: int = 0) -> Scheduler:
    """The policy of that name; of the same name and seed always the same answers. Raises BadInput."""
    if name in BOTH:
        return BOTH[name](seed)
    allocator, _, placer = name.partition("-")
    if allocator not in ALLOCATORS or placer not in PLACERS:
        raise BadInput("policy", f"one of {', '.join(NAMES)}", name)
    return TwoSteps(ALLOCATORS[allocator](seed), PLACERS[placer](seed))
