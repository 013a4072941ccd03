"""What a schedule is worth (paper A, section 3.3.2): applications that compute and do I/O in turn, simulated.

An application never ends: after its last phase it goes on with phases like those before. So the state is constant for
as long as one looks (section 5.4), whichever application would be the first to end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from tarazu.parts.forwarding.application import Application, Resources, Schedule, io_s
from tarazu.parts.forwarding.study.workload import HORIZON_S
from tarazu.parts.forwarding.tables import table
from tarazu.sim.kernel.servers import Servers


class ScheduledApplication(msgspec.Struct, frozen=True):
    """One application under a schedule, phase by phase: all phases are alike."""

    compute_s: float
    io_s: float
    """Seconds of its I/O subphase without congestion: so long it occupies each of its resources."""
    resources: tuple[int, ...]


class ObservedApplications(msgspec.Struct, frozen=True):
    """What was seen from 0 to `interval_s`."""

    interval_s: float
    phases: tuple[int, ...]
    """Whole phases of each application."""
    whole_io_s: tuple[float, ...]
    """I/O seconds of those."""
    io_s: tuple[float, ...]
    """I/O seconds of each application in all, also of the phase that was under way at the end."""
    busy_s: tuple[float, ...]
    """Seconds for which each resource was busy."""


def observe(jobs: Sequence[ScheduledApplication], resources: int, horizon_s: float) -> ObservedApplications:
    """Equal share, event by event: each of k transfers on a resource gets 1/k of it (3.1), and an I/O subphase ends
    with the last of its transfers (3.2.2).

    Until `horizon_s`, or for as much longer as it takes until each application has done a whole phase.
    Raises ValueError for a job that does nothing at all.
    """
    check(jobs)
    servers = Servers(resources)
    computing = [(job.compute_s, number) for number, job in enumerate(jobs)]
    heapify(computing)
    places = [job.resources for job in jobs]
    io = [job.io_s for job in jobs]
    compute = [job.compute_s for job in jobs]
    phases = [0] * len(jobs)
    whole = [0.0] * len(jobs)
    began: list[float] = [math.inf] * len(jobs)
    without = len(jobs)
    until = horizon_s
    while True:
        limit = math.inf if without else until
        wakes = computing[0][0] if computing else math.inf
        number = servers.serve(min(limit, wakes))
        if number is None:
            if wakes > limit:
                break
            now, number = heappop(computing)
            began[number] = now
            if io[number] > 0:
                servers.start(number, places[number], io[number], now)
                continue
        else:
            now = servers.now_s
        whole[number] += now - began[number]
        began[number] = math.inf
        phases[number] += 1
        if phases[number] == 1:
            without -= 1
            if not without:
                until = max(until, now)
        heappush(computing, (now + compute[number], number))
    under_way = [max(0.0, until - start) for start in began]
    return ObservedApplications(
        until,
        tuple(phases),
        tuple(whole),
        tuple(done + more for done, more in zip(whole, under_way)),
        tuple(servers.busy(until)),
    )


def check(jobs: Sequence[ScheduledApplication]) -> None:
    for job in jobs:
        if not job.compute_s + job.io_s > 0 or not job.resources:
            raise ValueError(f"expected an application that computes or does I/O, found {job}")


Simulator = Callable[[Sequence[ScheduledApplication], int, float], ObservedApplications]


class Measures(msgspec.Struct, frozen=True):
    """Of one schedule for one set of applications."""

    mean_slowdown: float
    """Mean-I/O-SlowDown (equations 4 and 5): `rho_io` + `rho_con`."""
    rho_io: float
    """Its part that comes from another number of resources than the best, mean over the applications."""
    rho_con: float
    """Its part that comes from congestion."""
    occupancy: tuple[float, ...]
    """I/O-res-occ: share of the time for which each resource is busy."""
    spread: float
    """I/O-spread (equation 6): the highest occupancy less the lowest."""
    idletime: float
    """Machine-Idletime: share of the compute nodes' time that passes in I/O."""
    interval_s: float


def measure(
    applications: Sequence[Application],
    schedule: Schedule,
    resources: Resources,
    horizon_s: float = HORIZON_S,
    best_s: Sequence[float] | None = None,
    simulator: Simulator = observe,
) -> Measures:
    """Simulate `applications` (which do as they are, whatever a policy took them for) under `schedule`.

    best_s: V / b(n_perf) of each, where the caller has it already (`best_io_s`).
    """
    jobs = [
        job(application, placed) for application, placed in zip(applications, schedule.placed, strict=True)
    ]
    seen = simulator(jobs, resources.count, horizon_s)
    best = best_io_s(applications, resources) if best_s is None else best_s
    count = len(applications)
    rho, rho_io = 0.0, 0.0
    for number, (application, one) in enumerate(zip(applications, jobs)):
        least = best[number] / application.phases
        if least > 0:
            rho += seen.whole_io_s[number] / (seen.phases[number] * least) / count
            rho_io += one.io_s / least / count
        else:  # no I/O: nothing slows it down
            rho, rho_io = rho + 1 / count, rho_io + 1 / count
    occupancy = tuple(busy / seen.interval_s for busy in seen.busy_s)
    idle_s = sum(application.nodes * spent for application, spent in zip(applications, seen.io_s))
    return Measures(
        mean_slowdown=rho,
        rho_io=rho_io,
        rho_con=rho - rho_io,
        occupancy=occupancy,
        spread=max(occupancy) - min(occupancy),
        idletime=idle_s / (seen.interval_s * resources.nodes),
        interval_s=seen.interval_s,
    )


def job(application: Application, placed: tuple[int, ...]) -> ScheduledApplication:
    """The application on these resources, all phases alike."""
    return ScheduledApplication(
        application.cpu_s / application.phases,
        io_s(application, len(placed)) / application.phases,
        placed,
    )


def best_io_s(applications: Sequence[Application], resources: Resources) -> list[float]:
    """V / b(n_perf): seconds of I/O of each with the best number of resources, alone."""
    best: list[float] = table(applications, resources).io_s.min(axis=1).tolist()
    return best
