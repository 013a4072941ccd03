"""Paper A's simulator, unit by unit (section 5.2): applications that collide on a resource alternate, one unit each.

It is what the event-driven form (`metrics.py`) is held against, and slow: its cost grows with time, not with events.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from tarazu.parts.forwarding.study.metrics import ObservedApplications, ScheduledApplication, check


def alternate(
    jobs: Sequence[ScheduledApplication], resources: int, horizon_s: float, unit_s: float = 1.0
) -> ObservedApplications:
    """As `metrics.observe`, in whole units: what takes part of one takes all of it.

    Who comes to a resource is served after those that wait there; of several that come at once the first job first.
    """
    check(jobs)
    compute = [_units(job.compute_s, unit_s) for job in jobs]
    io = [_units(job.io_s, unit_s) for job in jobs]
    queues: list[deque[int]] = [deque() for _ in range(resources)]
    left = [[0] * resources for _ in jobs]
    """Units of service that each job still wants of each resource."""
    transfers = [0] * len(jobs)
    wakes: dict[int, list[int]] = {}
    """Unit → jobs whose computing ends with its beginning."""
    began = [-1] * len(jobs)
    phases, whole = [0] * len(jobs), [0] * len(jobs)
    busy = [0] * resources
    now, until = 0, _units(horizon_s, unit_s)

    def after(job: int) -> None:
        """Its I/O has ended: it computes."""
        phases[job] += 1
        whole[job] += now - began[job]
        began[job] = -1
        wakes.setdefault(now + compute[job], []).append(job)

    for number in range(len(jobs)):
        wakes.setdefault(compute[number], []).append(number)
    while now < until or not all(phases):
        while now in wakes:  # again: who has no I/O and computes for no time at all is refused
            for job in sorted(wakes.pop(now)):
                began[job] = now
                transfers[job] = len(jobs[job].resources) if io[job] else 0
                for resource in jobs[job].resources if io[job] else ():
                    left[job][resource] = io[job]
                    queues[resource].append(job)
                if not io[job]:
                    after(job)
        served = [(resource, queue.popleft()) for resource, queue in enumerate(queues) if queue]
        now += 1
        for resource, job in served:
            busy[resource] += 1
            left[job][resource] -= 1
            if left[job][resource]:
                queues[resource].append(job)
            else:
                transfers[job] -= 1
                if not transfers[job]:
                    after(job)
    under_way = [now - start if start >= 0 else 0 for start in began]
    return ObservedApplications(
        now * unit_s,
        tuple(phases),
        tuple(units * unit_s for units in whole),
        tuple((units + more) * unit_s for units, more in zip(whole, under_way)),
        tuple(units * unit_s for units in busy),
    )


def _units(seconds: float, unit_s: float) -> int:
    return math.ceil(seconds / unit_s - 1e-9)
