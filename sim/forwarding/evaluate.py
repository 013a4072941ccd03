"""Several schedulers over the same sets of applications: to compare policies, one pair of seeds at a time.

curves = …                                         # a sequence of Curve
sets = levels.sets_at(0.5, curves, "ost", 20)
found = evaluate([named("ta-gnc"), named("joint")], sets, "ost")
print(means(found["joint"]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

import msgspec

from tarazu.forwarding.application import Application, Kind
from tarazu.forwarding.policy import Schedule, Scheduler
from tarazu.sim.forwarding.metrics import Measures, best_io_s, measure
from tarazu.sim.forwarding.workload import Set, resources

Known = Callable[[Set], Sequence[Application]]
"""What a scheduler is told of the applications of a set; without it the truth."""


class Means(msgspec.Struct, frozen=True):
    """Over sets."""

    mean_slowdown: float
    rho_io: float
    rho_con: float
    spread: float
    idletime: float


def evaluate(
    schedulers: Sequence[Scheduler], sets: Sequence[Set], kind: Kind, known: Known | None = None
) -> dict[str, list[Measures]]:
    """For each scheduler, by name, the measures of each set."""
    among = resources(kind)
    found: dict[str, list[Measures]] = {scheduler.name: [] for scheduler in schedulers}
    for one in sets:
        best_s = best_io_s(one.applications, among)
        told = one.applications if known is None else known(one)
        measured: dict[Schedule, Measures] = {}  # at low load TA is BBA
        for scheduler in schedulers:
            schedule = scheduler.schedule(told, among)
            if schedule not in measured:
                measured[schedule] = measure(one.applications, schedule, among, best_s=best_s)
            found[scheduler.name].append(measured[schedule])
    return found


def means(measures: Sequence[Measures]) -> Means:
    return Means(*(fmean(getattr(found, field) for found in measures) for field in Means.__struct_fields__))
