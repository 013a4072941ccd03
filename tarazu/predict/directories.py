"""Which directories a job step will make, and how many files and directories in each: named and continued as files
are, their creates in place of sizes.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence

import msgspec

from tarazu.model import DirectoryForecast, JobStep
from tarazu.predict import aipa
from tarazu.trace.records import CLOSED, KnownDirectory, KnownRun, PastFile, PastRun

MOST = 1 << 14
"""Directories of one forecast; of more, those with the fewest creates are left out. As many as one request
to mdsd may have."""


class DirectoryPrediction(msgspec.Struct, frozen=True):
    """The directories that are expected, in the order in which they are made."""

    directories: tuple[DirectoryForecast, ...]
    warnings: tuple[str, ...] = ()


def forecast(history: Sequence[KnownRun], step: JobStep, *, model: str = "arima") -> DirectoryPrediction:
    """Forecast the directories of the run `step` from its history, oldest run first; `model` as `aipa.forecast`."""
    if not any(run.directories for run in history):
        return DirectoryPrediction(())
    return _of(aipa.forecast(tuple(map(_as_files, history)), step, model=model))


def extend(run_so_far: KnownRun, step: JobStep, *, horizon_s: float) -> DirectoryPrediction:
    """Those of the next steps of a run that is going on, as `aipa.extend` finds its files."""
    if not run_so_far.directories:
        return DirectoryPrediction(())
    return _of(aipa.extend(_as_files(run_so_far), step, horizon_s=horizon_s))


def may_not_choose(history: Sequence[KnownRun]) -> bool:
    """Whether the last run that made directories was refused a choice of MDTs, as this user may not make one
    (`mdt.*.enable_remote_dir_gid`).
    """
    for run in reversed(history):
        if asked := [d for d in run.directories if d.outcome in ("hit", "refused")]:
            return any(d.errno == errno.EPERM for d in asked)
    return False


def _of(prediction: aipa.Prediction) -> DirectoryPrediction:
    found = [DirectoryForecast(f.name, f.size_bytes, f.at_s) for f in prediction.files]
    warnings = tuple(f"directories: {text}" for text in prediction.warnings)
    if len(found) > MOST:
        warnings = (
            *warnings,
            f"{len(found) - MOST} of {len(found)} directories left out, those of the fewest creates",
        )
        most = sorted(range(len(found)), key=lambda i: -found[i].creates)[:MOST]
        found = [found[i] for i in sorted(most)]
    return DirectoryPrediction(tuple(found), warnings)


def _as_files(run: KnownRun) -> PastRun:
    """The run with the directories that it made for files."""
    return PastRun(
        run.step,
        run.start_s,
        run.mode,
        tuple(_files(run.directories)),
        run.outcomes,
        run.ranks_seen,
        run.ranks_expected,
        run.dropped_records,
        run.lost_bytes,
        run.partial,
        run.exit_status,
        run.duration_s,
    )


def _files(directories: Iterable[KnownDirectory]) -> Iterable[PastFile]:
    """Those that were there before are no work for an MDT, and a place cannot be chosen for them."""
    for d in directories:
        if not d.existed:
            yield PastFile(
                d.key,
                d.precise,
                d.loose,
                d.rank,
                d.creator,
                d.creator_count,
                d.nth_precise,
                d.nth_loose,
                d.at_s,
                d.creates,
                max(1, d.creator_count),
                CLOSED,
            )
