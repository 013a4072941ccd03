"""Directories of remembered runs: on which MDTs they were made, and on which tarazu would have had them, by time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

import msgspec

from tarazu.allocate.mdts import allocate
from tarazu.allocate.mdts_course import LEFT, Course, bound_s, build
from tarazu.config import Weights
from tarazu.model import DirectoryForecast, DirectorySpec, SystemView
from tarazu.predict import directories
from tarazu.predict.accuracy import match
from tarazu.trace.records import DirectoryRecord, RunRecord


class DirectoriesOfRun(msgspec.Struct, frozen=True):
    """Of one run. Times are modelled: seconds, if each MDT makes one create at a time; None: not known."""

    application: str
    fs_name: str
    start_s: float
    directories: int
    creates: int
    found: int
    """Directories that a forecast from the runs before has named."""
    by_mdt: dict[int, int]
    """MDT → directories made there; -1: not seen where."""
    placed: int
    """Made where tarazu wanted them."""
    refused: int
    left: int = 0
    """Named by such a forecast and left to Lustre, by a plan that placed others."""
    seen_s: float | None = None
    """As they lay."""
    tarazu_s: float | None = None
    """As tarazu would place them now, by its forecast."""
    bound_s: float | None = None
    """No choice of MDTs is below."""


class DirectoriesReport(msgspec.Struct, frozen=True):
    """Of one application on one file system: sums, and medians of times over the runs where they are known."""

    application: str
    fs_name: str
    runs: int
    directories: int
    creates: int
    found: int
    placed: int
    refused: int
    left: int
    seen_s: float | None
    tarazu_s: float | None
    bound_s: float | None


def of_run(
    run: RunRecord, before: Sequence[RunRecord], view: SystemView | None, weights: Weights
) -> DirectoriesOfRun | None:
    """None for a run that made none."""
    made = [d for d in run.directories if not d.existed]
    if not made:
        return None
    expected = directories.forecast(before, run.step).directories if before else ()
    found = match(made, expected)
    times: dict[str, float | None] = {}
    if view is not None and sum(mdt.usable for mdt in view.mdts) >= 2:
        times = _times(view, made, found, weights)
    outcomes = Counter(d.outcome for d in made)
    return DirectoriesOfRun(
        run.step.application,
        run.step.fs_name,
        run.start_s,
        len(made),
        sum(d.creates for d in made),
        sum(f is not None for f in found),
        dict(sorted(Counter(d.mdt for d in made).items())),
        outcomes["hit"],
        outcomes["refused"],
        sum(d.outcome == "miss" and f is not None for d, f in zip(made, found, strict=True)),
        **times,
    )


def _times(
    view: SystemView,
    made: Sequence[DirectoryRecord],
    found: Sequence[DirectoryForecast | None],
    weights: Weights,
) -> dict[str, float | None]:
    order = sorted(range(len(made)), key=lambda i: made[i].key.count("/"))
    place = {made[i].key: n for n, i in enumerate(order)}
    # A parent that was there before lies where most of the run's first directories do, as far as that was seen.
    home = Counter(made[i].mdt for i in order if made[i].mdt >= 0).most_common(1)
    outside = home[0][0] if home else -1
    real, guessed = [], []
    for i in order:
        parent = place.get(made[i].key.rpartition("/")[0], -1)
        spec = DirectorySpec(made[i].creates, parent, 0, -1 if parent >= 0 else outside)
        real.append(spec)
        forecast = found[i]
        guessed.append(msgspec.structs.replace(spec, creates=forecast.creates if forecast else 0))
    course = build(view, real, weights)
    bound = bound_s(course)
    seen = [made[i].mdt for i in order]
    chosen = allocate(view, guessed, weights, -1.0).mdts
    places: list[int] = []
    for spec, mdt in zip(real, chosen, strict=True):
        places.append(mdt if mdt != LEFT else places[spec.parent] if spec.parent >= 0 else spec.mdt)
    return {
        "seen_s": _time_s(course, seen),
        "tarazu_s": _time_s(course, places),
        "bound_s": bound if bound < float("inf") else None,
    }


def _time_s(course: Course, mdts: Sequence[int]) -> float | None:
    """None where one lies on an MDT that is not known, or may not be used now."""
    if any(mdt not in course.position for mdt in mdts):
        return None
    for i, mdt in enumerate(mdts):
        course.put(i, course.position[mdt])
    time = course.time_s()
    course.clear()
    return time


def summed(runs: Sequence[DirectoriesOfRun]) -> tuple[DirectoriesReport, ...]:
    """By application and file system, those of most creates first."""
    groups: dict[tuple[str, str], list[DirectoriesOfRun]] = {}
    for run in runs:
        groups.setdefault((run.application, run.fs_name), []).append(run)
    reports = [
        DirectoriesReport(
            application,
            fs_name,
            len(of),
            sum(r.directories for r in of),
            sum(r.creates for r in of),
            sum(r.found for r in of),
            sum(r.placed for r in of),
            sum(r.refused for r in of),
            sum(r.left for r in of),
            *(
                median(known) if (known := [v for r in of if (v := getattr(r, name)) is not None]) else None
                for name in ("seen_s", "tarazu_s", "bound_s")
            ),
        )
        for (application, fs_name), of in groups.items()
    ]
    return tuple(sorted(reports, key=lambda r: -r.creates))
