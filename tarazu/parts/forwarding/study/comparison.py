"""What each policy would do with given applications, and what that would be worth by the model of congestion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Application, Resources, io_s
from tarazu.parts.forwarding.joint.congestion import Modelled, system
from tarazu.parts.forwarding.policy import Schedule
from tarazu.parts.forwarding.study import policies
from tarazu.parts.forwarding.study.characteristics import io_load, n_perf, n_sys
from tarazu.parts.forwarding.study.families import classify

TODAY = "static-gnc"
"""What most systems do: by number of compute nodes."""

Judged = tuple[float, float]
"""Mean-I/O-SlowDown and Machine-Idletime."""
Judge = Callable[[Sequence[Application], Schedule, Resources], Judged | None]
"""Another one than the model; None where it cannot say."""


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


def compare(
    applications: Sequence[Application],
    resources: Resources,
    names: Sequence[str],
    judge: Judge,
    seed: int = 0,
) -> tuple[PolicyOutcome, ...]:
    """The policies of these names, in their order."""
    of = system(applications, resources)
    outcomes = []
    for name in names:
        schedule = policies.named(name, seed).schedule(applications, resources)
        modelled = Modelled(of, [np.array(p) for p in schedule.placed])
        simulated = judge(applications, schedule, resources)
        slowdown, idletime = simulated or (modelled.mean_slowdown, modelled.idletime)
        on = [
            sum(r in placed for placed in schedule.placed)
            for r in sorted({r for p in schedule.placed for r in p})
        ]
        shares = tuple(
            ApplicationShare(
                application.name,
                len(placed),
                placed,
                float(modelled.slowdowns[i]),
                float(modelled.in_io[i]),
                why(applications, i, schedule, resources),
            )
            for i, (application, placed) in enumerate(zip(applications, schedule.placed, strict=True))
        )
        outcomes.append(
            PolicyOutcome(
                name,
                io_load(applications, schedule.counts, resources),
                slowdown,
                idletime,
                "model" if simulated is None else "simulator",
                max(on),
                shares,
            )
        )
    return tuple(outcomes)


def why(applications: Sequence[Application], i: int, schedule: Schedule, resources: Resources) -> str:
    """What speaks for this number and these resources, in a few words."""
    application, placed = applications[i], schedule.placed[i]
    best, least = n_perf(application, resources.count), n_sys(application, resources.count)
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
