"""Applications that compute and do I/O in turn, on resources that share themselves equally (paper A, sections 3 and 5).

An application never ends: after its last phase it goes on with phases like those before. So the state is constant for
as long as one looks (section 5.4), whichever application would be the first to end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import msgspec

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
