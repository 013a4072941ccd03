"""What each policy would do with given applications, and what that would be worth by the model of congestion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tarazu.parts.forwarding.application import Application, Resources, Schedule, io_s, io_share
from tarazu.parts.forwarding.joint.congestion import Modelled, system
from tarazu.parts.forwarding.study import schedulers
from tarazu.parts.forwarding.study.families import classify
from tarazu.parts.forwarding.study.metrics import measure

PAPERS = (
    *("random-randp", "static-gnc", "static-gc", "bba-gnc", "bba-gc", "nsysa-gnc", "nsysa-gc"),
    *("ta-gnc", "ta-gc", "mckp"),
)
TODAY = "static-gnc"
"""What most systems do: by number of compute nodes."""
MOST_EVENTS = 30_000
"""Transfers up to which a schedule is simulated: half a second."""


class PolicyOutcome(NamedTuple):
    """What one policy does."""

    policy: str
    schedule: Schedule
    modelled: Modelled
    io_load: float
    """I/O-load (equation 3): above 1 the resources cannot keep up."""
    mean_slowdown: float
    idletime: float
    judged: str
    """By whom: `simulator` or `model`."""


def outcome(name: str, applications: Sequence[Application], resources: Resources) -> PolicyOutcome:
    """Of the policy of this name."""
    schedule = schedulers.named(name).schedule(applications, resources)
    modelled = Modelled(system(applications, resources), [np.array(p) for p in schedule.placed])
    io_load = sum(n * io_share(a, n) for a, n in zip(applications, schedule.counts)) / resources.count
    if simulated := _simulated(applications, schedule, resources):
        return PolicyOutcome(name, schedule, modelled, io_load, *simulated, "simulator")
    return PolicyOutcome(
        name, schedule, modelled, io_load, modelled.mean_slowdown, modelled.idletime, "model"
    )


def _simulated(
    applications: Sequence[Application], schedule: Schedule, resources: Resources
) -> tuple[float, float] | None:
    """Both metrics over the time that the longest takes without congestion; None where that is much work, or one does
    nothing at all.
    """
    took = [a.cpu_s + io_s(a, n) for a, n in zip(applications, schedule.counts)]
    if min(took) <= 0:
        return None
    events = sum(n * a.phases * max(took) / own for a, n, own in zip(applications, schedule.counts, took))
    if events > MOST_EVENTS:
        return None
    measures = measure(applications, schedule, resources, horizon_s=max(took))
    return measures.mean_slowdown, measures.idletime


def why(applications: Sequence[Application], i: int, of: PolicyOutcome) -> str:
    """What speaks for this number and these resources, in a few words."""
    application, placed, values = applications[i], of.schedule.placed[i], of.modelled.system.values
    best, least = int(values.n_perf[i]), int(values.n_sys[i])
    n = len(placed)
    alone = io_s(application, n)
    beside_best = alone / io_s(application, best) if alone else 1.0
    number = (
        "its best number"
        if n == best
        else f"{beside_best:.2f} times its I/O time with {best}, its best number"
    )
    if n == least != best:
        number += ", and the least load"
    others = [
        a.name
        for a, other in zip(applications, of.schedule.placed)
        if a is not application and set(other) & set(placed)
    ]
    meets = (
        "alone there"
        if not others
        else f"meets {', '.join(others[:3])}" + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    )
    return f"{classify(application.curve)}; {number}; {meets}"
