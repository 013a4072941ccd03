"""`joint`: counts and placement chosen together by the slowdown that they cause, improved by moves until none helps.

The start is the best, under the model of `congestion`, of some schedules of the paper (`starts`).
A move takes one application off its resources and gives it any number of any resources: for each number those that cost
least, which is what its own I/O takes there and what it costs the others. For that each resource has a price: what one
more application that is at work there all the time would add to the others' cost. Moves found at the prices of now are
tried in the model itself and kept where it says that they help (`moves`). Applications are gone through, the costliest
first, until none can be moved. What is made least is both of paper A's metrics at once (`objective`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.parts.forwarding import tcpu
from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.joint.congestion import CongestedSystem, Modelled, system
from tarazu.parts.forwarding.joint.moves import Search
from tarazu.parts.forwarding.joint.objective import Objective
from tarazu.parts.forwarding.policy import Need, Schedule
from tarazu.parts.forwarding.tables import Array

ROUNDS = 30
"""More than are ever needed; a bound where rounding makes every move help a little."""


class Joint:
    """Allocation and placement at once, by the slowdown that they cause."""

    name = "joint"
    needs: frozenset[Need] = frozenset({"nodes", "volume", "cpu", "curve"})

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule:
        of = system(applications, resources)
        placed = improved(of, starts(of))
        return Schedule(tuple(tuple(sorted(places.tolist())) for places in placed))


def starts(of: CongestedSystem) -> list[list[Array]]:
    """The schedules to begin with: TA (which is BBA unless that saturates the resources), NSYSA, Static, each placed
    round-robin with the widest first; and TA on the least stressed where TA is not BBA.
    """
    values, n = of.values, of.count
    share = np.clip(np.floor(of.nodes * n + 0.5), 1, n).astype(int)
    by_cpu = tcpu.counts(values, n)
    busy = values.stress[np.arange(len(by_cpu)), by_cpu - 1] / by_cpu
    schedules = [_round_robin(counts, n) for counts in (by_cpu, values.n_sys, share)]
    if (by_cpu != values.n_perf).any():  # little to do is best spread evenly: GC would put it together
        schedules.append(least_stressed(by_cpu, busy, n))
    return schedules


def least_stressed(counts: Array, busy: Array, n: int) -> list[Array]:
    """GC: those that are most of their time in I/O (`busy`) first, each on what is stressed least so far."""
    placed: list[Array] = [np.empty(0, int)] * len(counts)
    stressed = np.zeros(n)
    for i in np.argsort(-busy, kind="stable").tolist():
        placed[i] = np.argsort(stressed, kind="stable")[: counts[i]]
        stressed[placed[i]] += busy[i]
    return placed


def _round_robin(counts: Array, n: int) -> list[Array]:
    order = np.argsort(-counts, kind="stable")
    placed: list[Array] = [np.empty(0, int)] * len(counts)
    at = 0
    for i in order.tolist():
        placed[i] = (at + np.arange(counts[i])) % n
        at += int(counts[i])
    return placed


def improved(of: CongestedSystem, from_any: Sequence[list[Array]]) -> list[Array]:
    """The best of these schedules, improved by moves: of each application its resources."""
    modelled = [(Modelled(of, placed), placed) for placed in from_any]
    goal = Objective(min(m.mean_slowdown for m, _ in modelled), min(m.idletime for m, _ in modelled))
    best, placed = min(modelled, key=lambda pair: goal.of(pair[0]))
    search = Search(of, goal, best, list(placed))
    for _ in range(ROUNDS):
        if not search.round():
            break
    return search.placed
