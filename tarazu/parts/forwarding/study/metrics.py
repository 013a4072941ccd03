"""What a schedule is worth (paper A, section 3.3.2), measured where the state is constant (section 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tarazu.parts.forwarding.application import Application, Resources, io_s
from tarazu.parts.forwarding.policy import Schedule
from tarazu.parts.forwarding.study.characteristics import n_perf
from tarazu.parts.forwarding.study.simulate import ObservedApplications, ScheduledApplication, observe
from tarazu.parts.forwarding.study.workload import HORIZON_S

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
    return [io_s(a, n_perf(a, resources.count)) for a in applications]
