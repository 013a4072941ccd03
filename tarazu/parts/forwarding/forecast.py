"""The bandwidth curve of an application, and what else an allocation of OSTs looks at: from its earlier runs.

In the process of a forecast: the runs are a user's files, and matching benchmarks takes time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu.errors import BadInput, ConfigError, TarazuError
from tarazu.model import JobStep
from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.curve import Curve
from tarazu.parts.forwarding.curve_csv import read as read_curves
from tarazu.parts.forwarding.estimate import estimate, load
from tarazu.parts.forwarding.messages import MAX_POINTS, MOST_CHARACTERS, Profiled, StepProfile
from tarazu.parts.forwarding.profile import application, why_absurd
from tarazu.trace.records import KnownRun

READERS: Mapping[str, Callable[[Path], object]] = {"curves": read_curves, "benchmarks": load}
"""Setting → what reads its file."""


def by(curves: str, benchmarks: str) -> bytes:
    """Files: curves that were measured, benchmarks from which they are estimated."""
    return msgspec.msgpack.encode((curves, benchmarks))


def profiled(of: bytes, runs: Sequence[KnownRun], step: JobStep, kind: Kind = "ost") -> Profiled:
    """As `profile_of`; `of`: as `by` says it."""
    profile, why = profile_of(runs, step, *msgspec.msgpack.decode(of, type=tuple[str, str]), kind)
    return Profiled(profile, " ".join(why.split())[:MOST_CHARACTERS])


def unreadable(path: str, where: str, setting: str) -> Iterator[ConfigError]:
    """Why clientd could not use this file. One that is not on this node is other nodes' business."""
    if path and os.path.lexists(path):
        try:
            READERS[setting](Path(path))
        except BadInput as error:
            yield ConfigError(f"{where} ({error.where})", error.expected, error.found)


def profile_of(
    history: Sequence[KnownRun], step: JobStep, curves: str, benchmarks: str, kind: Kind = "ost"
) -> tuple[StepProfile | None, str]:
    """The profile of the next run over numbers of resources of a kind; and where its curve comes from, or why there is
    none.

    A curve that was measured (`curves`) goes before one that is estimated from `benchmarks`. Phases and duration are
    those of the newest complete run. Never raises for files that cannot be read.
    """
    whole = (run for run in reversed(history) if run.phases and not (run.exit_status or run.partial))
    run = next(whole, None)
    if run is None:
        return None, "no complete earlier run"
    try:
        if curves and (measured := read_curves(Path(curves)).get(step.application)):
            return _profile(run, step, measured, f"the curve of {step.application} in {curves}")
        if not benchmarks:
            return None, f"{curves} has no curve of {step.application}"
        estimated = estimate(run.phases, load(benchmarks), max(step.nodes, 1), kind)
    except TarazuError as error:
        return None, str(error)
    if estimated is None:
        return None, f"{benchmarks} has nothing like its phases"
    like = f"curve estimated from benchmarks, which {estimated.covered:.0%} of its last run's bytes are like"
    return _profile(run, step, estimated.curve, like)


def _profile(run: KnownRun, step: JobStep, curve: Curve, origin: str) -> tuple[StepProfile | None, str]:
    if len(curve.points) > MAX_POINTS:
        return None, f"{origin} has more than {MAX_POINTS} numbers of resources"
    made = application(step.application, step.nodes, run.phases, run.duration_s, curve)
    if absurd := why_absurd(made):
        return None, f"{origin}, with its last run: {absurd}"
    points = tuple((point.resources, point.median) for point in curve.points)
    return StepProfile(made.nodes, made.cpu_s, made.io_bytes, points, made.phases), origin
