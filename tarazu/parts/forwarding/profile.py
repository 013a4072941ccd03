"""The application that an allocation looks at: from phases of an earlier run and a curve, or as a step tells it."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.parts.forwarding.application import Application
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.messages import StepProfile
from tarazu.trace.phases.phase import Phase

MOST = 1_000_000
"""Compute nodes, phases, resources."""
MOST_S = 1e9
MOST_BYTES = 1e21
LEAST_RATE, MOST_RATE = 1.0, 1e18
MOST_RATIO = 1e4
"""Of the best bandwidth of a curve to its worst."""
_PAUSE_S = 1.0
"""Phases that begin within so long after those before ended are one alternation of computing and I/O."""


def application(name: str, nodes: int, phases: Sequence[Phase], duration_s: float, b: Curve) -> Application:
    """Its computing time is what is left of the run's duration, once its I/O time is taken away.

    `phases`: each byte once, as `tarazu.trace.phases` gives them without more being asked for.
    """
    io_bytes = float(sum(phase.bytes for phase in phases))
    rates = [point.median for point in b.points]
    # Recorded times last from opening to closing: no I/O took longer than it does with the fewest bytes a second.
    # Where no times are known it took as long as it has to.
    busy = min(io_time_s(phases) or io_bytes / max(rates), io_bytes / min(rates))
    return Application(
        name=name,
        nodes=max(nodes, 1),
        curve=b,
        cpu_s=max(duration_s - busy, 0.0),
        io_bytes=io_bytes,
        phases=max(len(_stretches(phases, _PAUSE_S)), 1),
    )


def as_told(name: str, profile: StepProfile) -> Application:
    """What a step says of itself. Raises ValueError for what no application is."""
    told = Application(
        name=name,
        nodes=profile.nodes,
        curve=curve(profile.points),
        cpu_s=profile.cpu_s,
        io_bytes=profile.io_bytes,
        phases=profile.phases,
    )
    if absurd := why_absurd(told):
        raise ValueError(absurd)
    return told


def why_absurd(application: Application) -> str:
    """What of it no application is: with such numbers it alone would decide what all others get. Empty: nothing."""
    rates = [point.median for point in application.curve.points]
    for what, found, least, most in (
        ("compute nodes", application.nodes, 1, MOST),
        ("phases", application.phases, 1, MOST),
        ("resources", application.curve.points[-1].resources, 1, MOST),
        ("seconds of computing", application.cpu_s, 0, MOST_S),
        ("bytes of I/O", application.io_bytes, 1, MOST_BYTES),
        ("bytes a second at the least", min(rates), LEAST_RATE, MOST_RATE),
        ("bytes a second at the most", max(rates), LEAST_RATE, min(rates) * MOST_RATIO),
    ):
        if not least <= found <= most:
            return f"expected {what} from {least:g} to {most:g}, found {found:g}"
    return ""


def io_time_s(phases: Sequence[Phase]) -> float:
    """Seconds in which any of them did I/O: those of phases that overlap add up, but to no more than they last."""
    return sum(
        min(sum(phase.io_s for phase in of), max(p.end_s for p in of) - of[0].start_s)
        for of in _stretches(phases, 0.0)
    )


def _stretches(phases: Sequence[Phase], pause_s: float) -> list[list[Phase]]:
    stretches: list[list[Phase]] = []
    end = float("-inf")
    for phase in sorted(phases, key=lambda p: p.start_s):
        if phase.start_s > end + pause_s:
            stretches.append([])
        stretches[-1].append(phase)
        end = max(end, phase.end_s)
    return stretches
