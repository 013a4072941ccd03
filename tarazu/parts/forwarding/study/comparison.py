"""What each policy would do with given applications, and what that would be worth by the model of congestion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Application, Resources, Schedule, io_s, io_share
from tarazu.parts.forwarding.joint.congestion import Modelled, system
from tarazu.parts.forwarding.study import schedulers
from tarazu.parts.forwarding.study.families import classify
from tarazu.parts.forwarding.study.metrics import measure
from tarazu.parts.forwarding.tables import Table

PAPERS = (
    *("random-randp", "static-gnc", "static-gc", "bba-gnc", "bba-gc", "nsysa-gnc", "nsysa-gc"),
    *("ta-gnc", "ta-gc", "mckp"),
)
TODAY = "static-gnc"
"""What most systems do: by number of compute nodes."""
MOST_EVENTS = 30_000
"""Transfers up to which a schedule is simulated: half a second."""


class ApplicationShare(msgspec.Struct, frozen=True):
    """What one application gets."""

    application: str
    count: int
    placed: tuple[int, ...]
    slowdown: float
    """ρ: its I/O time beside that with n_perf resources alone; modelled."""
    in_io: float
    """Share of its time that it spends in I/O; modelled."""
    why: str


class PolicyOutcome(msgspec.Struct, frozen=True):
    """What one policy does."""

    policy: str
    io_load: float
    """I/O-load (equation 3): above 1 the resources cannot keep up."""
    mean_slowdown: float
    idletime: float
    judged: str
    """By whom: `simulator` or `model`."""
    most_shared: int
    """Applications on the resource that has the most."""
    shares: tuple[ApplicationShare, ...]


def outcome(name: str, applications: Sequence[Application], resources: Resources) -> PolicyOutcome:
    """Of the policy of this name."""
    schedule = schedulers.named(name).schedule(applications, resources)
    of = system(applications, resources)
    modelled = Modelled(of, [np.array(p) for p in schedule.placed])
    simulated = _simulated(applications, schedule, resources)
    slowdown, idletime = simulated or (modelled.mean_slowdown, modelled.idletime)
    shares = tuple(
        ApplicationShare(
            application.name,
            len(placed),
            placed,
            float(modelled.slowdowns[i]),
            float(modelled.in_io[i]),
            why(applications, i, schedule, of.values),
        )
        for i, (application, placed) in enumerate(zip(applications, schedule.placed, strict=True))
    )
    return PolicyOutcome(
        name,
        sum(n * io_share(a, n) for a, n in zip(applications, schedule.counts)) / resources.count,
        slowdown,
        idletime,
        "simulator" if simulated else "model",
        max(Counter(r for placed in schedule.placed for r in placed).values()),
        shares,
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


def why(applications: Sequence[Application], i: int, schedule: Schedule, values: Table) -> str:
    """What speaks for this number and these resources, in a few words."""
    application, placed = applications[i], schedule.placed[i]
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
        for a, other in zip(applications, schedule.placed)
        if a is not application and set(other) & set(placed)
    ]
    meets = (
        "alone there"
        if not others
        else f"meets {', '.join(others[:3])}" + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    )
    return f"{classify(application.curve)}; {number}; {meets}"
