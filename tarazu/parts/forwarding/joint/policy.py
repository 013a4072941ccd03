"""`joint`: counts and placement chosen together by the slowdown that they cause, improved by moves until none helps.

The start is the best, under the model of `congestion`, of some schedules of the paper (`starts`).
A move takes one application off its resources and gives it any number of any resources: for each number those that cost
least, which is what its own I/O takes there and what it costs the others. For that each resource has a price: what one
more application that is at work there all the time would add to the others' cost. Moves found at the prices of now are
tried in the model itself and kept where it says that they help (`moves`). Applications are gone through, the costliest
first, until none can be moved. What is made least is both of paper A's metrics at once (`Objective`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.parts.forwarding import tcpu
from tarazu.parts.forwarding.application import Application, Need, Resources, Schedule, io_share
from tarazu.parts.forwarding.joint.congestion import CongestedSystem, Modelled, Objective, system
from tarazu.parts.forwarding.joint.moves import Search, choices
from tarazu.parts.forwarding.tables import Array, bandwidths

ROUNDS = 30
"""More than are ever needed; a bound where rounding makes every move help a little."""
MOST_LOSS = 4.0
"""Times its I/O with its best number, alone. What is always in I/O and always in the way still leaves it so much."""


class Joint:
    """Allocation and placement at once, by the slowdown that they cause."""

    name = "joint"
    needs: frozenset[Need] = frozenset({"nodes", "volume", "cpu", "curve"})

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule:
        of = system(applications, resources)
        placed = improved(of, starts(of))
        return as_schedule(placed)


def as_schedule(placed: Sequence[Array]) -> Schedule:
    return Schedule(tuple(tuple(sorted(places.tolist())) for places in placed))


def starts(of: CongestedSystem) -> list[list[Array]]:
    """The schedules to begin with: TA (which is BBA unless that saturates the resources), NSYSA, Static, each placed
    round-robin with the widest first; and TA on the least stressed where TA is not BBA.
    """
    values, n = of.values, of.count
    share = np.clip(np.floor(of.nodes * n + 0.5), 1, n).astype(int)
    by_cpu = tcpu.counts(values, n)
    busy = values.stress[np.arange(len(by_cpu)), by_cpu - 1] / by_cpu
    schedules = [round_robin(counts, n) for counts in (by_cpu, values.n_sys, share)]
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


def round_robin(counts: Array, n: int) -> list[Array]:
    """GNC: those with the most resources first, one resource after the other round the circle."""
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


def count(running: Sequence[tuple[Application, int]], new: Application, among: Resources) -> int:
    """How many `new` gets beside those that keep the number that they have (`running`), as the stripes of their files.

    The number with which Mean-I/O-SlowDown is the least under `joint`'s model, each number placed on what is stressed
    least (GC). Never fewer, nor so many more than it can use, that its I/O alone would take more than MOST_LOSS times
    what it takes with its best number: whatever the others say of themselves.
    """
    applications = [*(application for application, _ in running), new]
    of = system(applications, among)
    taken = [min(number, among.count) for _, number in running]

    def slowdown(number: int) -> float:
        counts = [*taken, number]
        busy = np.array(list(map(io_share, applications, counts)))
        placed = least_stressed(np.array(counts), busy, among.count)
        return Modelled(of, [np.sort(resources) for resources in placed]).mean_slowdown

    # Of numbers that are as good the least: whoever comes next has more room.
    numbers: list[int] = choices(of, len(applications) - 1).tolist()
    return bounded(min(numbers, key=lambda number: (round(slowdown(number), 9), number)), new, among.count)


def bounded(number: int, new: Application, most: int) -> int:
    """The nearest number with which it does not lose too much; of two the smaller one."""
    rates = bandwidths(new.curve, most)
    good = np.flatnonzero(rates >= rates.max() / MOST_LOSS) + 1
    return int(good[np.abs(good - number).argmin()])
