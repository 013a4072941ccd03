"""Mean-I/O-SlowDown of 40 jobs with the routers that mdsd's plans give them as they come, over that of all alike."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from tarazu.nids import Nid
from tarazu.parts.forwarding.application import Schedule
from tarazu.parts.forwarding.curve import Curve
from tarazu.parts.forwarding.study import metrics, workload
from tarazu.parts.forwarding.study.curve_sets import generated
from tarazu.parts.forwarding.study.schedulers import named
from tarazu.parts.forwarding.study.workload import Set, resources
from tarazu.parts.routers import placing
from tarazu.parts.routers.placing import RunningJob
from tests.benchmarks.figure import Figure

EACH = 6
LOADS = (0.1, 0.3, 0.5, 0.8)
GAIN = 0.05
POLICY = named("joint")
AMONG = resources("io-node")
ROUTERS = tuple(Nid((10, 0, 0, number + 1), "tcp") for number in range(AMONG.count))


def arrived(one: Set) -> tuple[Schedule, int]:
    """What the jobs of a set have when all have come, and how often one that ran got other routers."""
    current: placing.Placed = {}
    jobs: list[RunningJob] = []
    moved = 0
    for number, application in enumerate(one.applications):
        jobs.append(RunningJob(f"j{number}", frozenset({Nid((10, 1, 0, number + 1), "tcp1")}), application))
        plan = placing.plan(jobs, ROUTERS, POLICY, current, GAIN)
        current, moved = plan.placed, moved + plan.moved
    return Schedule(tuple(tuple(map(ROUTERS.index, current[job.id])) for job in jobs)), moved


def compared(one: Set) -> tuple[float, float, int]:
    """(mean slowdown over that of all alike, over that of a plan of all at once; moves)."""
    best_s = metrics.best_io_s(one.applications, AMONG)
    schedule, moved = arrived(one)
    everywhere = Schedule((tuple(range(AMONG.count)),) * len(one.applications))
    came, alike, anew = (
        metrics.measure(one.applications, each, AMONG, best_s=best_s).mean_slowdown
        for each in (schedule, everywhere, POLICY.schedule(one.applications, AMONG))
    )
    return came / alike, came / anew, moved


def at(load: float, each: int, curves: Sequence[Curve]) -> list[Figure]:
    found = [compared(one) for one in workload.sets_at(load, curves, "io-node", each)]
    alike, anew = [a for a, _, _ in found], [b for _, b, _ in found]
    what = f"least I/O load {load:g}"
    return [
        Figure(f"{what}: with rules / all alike, median", median(alike), "", most=0.5),
        Figure(f"{what}: … worst of {each}", max(alike), "", most=1.0),
        Figure(f"{what}: as they came / all at once, median", median(anew), "", most=1.1),
        Figure(f"{what}: … worst of {each}", max(anew), "", most=1.25),
        Figure(f"{what}: moves of a running job, per job that comes", fmean(m for *_, m in found) / 40, ""),
    ]


def measure(short: bool) -> list[Figure]:
    """At each load, of so many sets."""
    curves = generated("io-node")
    return [figure for load in LOADS for figure in at(load, 1 if short else EACH, curves)]
