"""AIPA, the prediction model (paper, section 5.5.1): history of an application → files of its next run."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median

import msgspec

from tarazu.model import FileName, Forecast, JobStep
from tarazu.predict import RUNS, regression
from tarazu.predict.classes import FileClass, classes, usable
from tarazu.predict.next_names import NextNames
from tarazu.predict.series import SeriesModel
from tarazu.predict.sizes import (
    SizeForecast,
    closed_s,
    continue_sizes,
    file_count,
    group_sizes,
    lasts_s,
    opened_s,
    rank_shares,
)
from tarazu.trace.records import NOT_KNOWN_S, KnownFile, KnownRun, is_volatile, why_absurd
from tarazu.units import counted, human_bytes

MOST_FILES = 1 << 18
"""Of one prediction: a class that would go beyond is left out. As many as one history may have."""
MOST_BYTES = 1 << 60
"""Of one file: a size that ran away must not break the sums of those who are told."""
MOST_GROWTH = 4
"""The number of files per rank grows at most by this factor from one run to the next."""
FIRST_STEPS = 3
"""In a run, a stepped writer is recognised from this step on."""
SHORTEST_INTERVAL_S = 0.01


class SeriesReport(msgspec.Struct, frozen=True):
    """One series behind a prediction, for `--explain`."""

    loose: str
    nth: int
    shared: bool
    files: int
    count_detail: str
    size: SizeForecast


class Prediction(msgspec.Struct, frozen=True):
    """The files that are expected, in order of creation."""

    files: tuple[Forecast, ...]
    methods: dict[str, int]
    """Number of files per method of their size."""
    elapsed_s: float
    warnings: tuple[str, ...] = ()
    series: tuple[SeriesReport, ...] = ()
    fits: int = 0
    """ARIMA fits that were made."""


def forecast(history: Sequence[KnownRun], step: JobStep, *, model: str | SeriesModel = "arima") -> Prediction:
    """Forecast the run `step` from its history, oldest run first. No history: no files, and a warning.

    `model`: `arima` (with regression on what is known before the run) or a baseline, `last`, `mean`, `drift`; or one
    with fits of its own.
    """
    started = time.perf_counter()
    absurd = why_absurd(step)
    if absurd:
        return Prediction((), {}, 0.0, (f"no forecast for this step: {absurd}",))
    warnings: list[str] = []
    runs = usable(history, warnings.append)
    if not runs:
        return Prediction((), {}, time.perf_counter() - started, ("no run in history has files",))
    series_model = SeriesModel(model) if isinstance(model, str) else model
    if series_model.model == "arima":
        warnings += regression.unseen([r.step for r in runs[-RUNS:]], step)
    builder = _Builder(runs, step, series_model)
    expected = classes(runs, warnings.append)
    while expected:
        cls = expected.pop(0)
        per_rank, detail = file_count(cls, runs, step, series_model)
        builder.add(cls, per_rank, detail)
    return builder.finish(started, [*warnings, *builder.warnings, *series_model.warnings])


def extend(run_so_far: KnownRun, step: JobStep, *, horizon_s: float, model: str = "arima") -> Prediction:
    """The next steps of a run that is going on: for each stepped writer, as many steps again as it made.

    A class counts as stepped from its third file per rank on, when these came one after another. Only files
    that this run has not created yet, and that are expected within `horizon_s` of the last one, are returned.
    """
    started = time.perf_counter()
    absurd = why_absurd(step)
    if absurd or not run_so_far.files:
        return Prediction((), {}, 0.0, (f"no forecast for this step: {absurd}",) if absurd else ())
    series_model = SeriesModel(model)
    builder = _Builder([run_so_far], step, series_model)
    known = {f.key for f in run_so_far.files}
    for cls in classes([run_so_far], builder.warnings.append):
        steps = cls.slots
        if steps < FIRST_STEPS:
            continue
        interval_s = median(b - a for a, b in pairwise(opened_s(cls, n) for n in range(steps)))
        if interval_s < SHORTEST_INTERVAL_S:
            continue
        more = max(1, min(steps, int(horizon_s / interval_s)))
        builder.add(
            cls, steps + more, f"{counted(steps, 'step')} so far, one every {interval_s:.3g} s", created=True
        )
    prediction = builder.finish(started, [*builder.warnings, *series_model.warnings])
    # The key of a volatile name is no more than a guess: it may well be that of a file that is there.
    files = tuple(f for f in prediction.files if f.name.volatile or f.name.key not in known)
    return msgspec.structs.replace(prediction, files=files, methods=dict(Counter(f.method for f in files)))


class _Builder:
    """Collects the forecasts of one run, class by class."""

    def __init__(self, runs: Sequence[KnownRun], step: JobStep, model: SeriesModel) -> None:
        self.runs = runs
        self.step = step
        self.model = model
        self.files: list[Forecast] = []
        self.reports: list[SeriesReport] = []
        self.warnings: list[str] = []
        self.shared = {f.loose for run in runs for f in run.files if f.shared}
        """Templates of files that any run has seen several processes open: the last one may not have seen all."""
        self.creators: dict[int, int] = {}
        """Index of a shared file → the one rank that creates it."""
        self.numbered: defaultdict[tuple[int, str], int] = defaultdict(int)
        """(rank, precise) → next n."""
        self.counted: dict[tuple[str, int], bool] | None = None
        """(loose, n) → contiguous, of the latest run that counted writes."""

    def add(self, cls: FileClass, per_rank: float, detail: str, *, created: bool = False) -> None:
        """Forecast one class.

        `created`: the reference run is the one that is going on. Every rank will make `per_rank` files, also
        one that lags behind, and those that it has made are not forecast.
        """
        counts = self._counts(cls, per_rank, created)
        if not counts:
            return
        total = max(counts.values())
        latest = cls.latest
        slots = range(min(len(latest.get(r, ())) for r in counts) if created else 0, total)
        sizes = group_sizes(cls, self.runs, self.step, len(counts), self.model)
        forecasts = continue_sizes(sizes, total, self.model)
        names = NextNames(cls, self.runs, self.step)
        times = [opened_s(cls, n) for n in range(cls.slots)]
        ends, lasts = [closed_s(cls, n) for n in range(cls.slots)], lasts_s(cls)
        everyone, least = list(counts), min(counts.values())
        pace_s = median([b - a for a, b in pairwise(times)] or [0.0])
        for n in slots:
            size = forecasts[n]
            known_slot = min(n, cls.slots - 1)
            late_s = max(n - cls.slots + 1, 0) * max(pace_s, 0.0)
            creating = everyone if n < least else [r for r, count in counts.items() if n < count]
            shares = rank_shares(cls, known_slot, creating)
            new = [r for r in creating if n >= len(latest.get(r, ()))] if created else creating
            for rank in new:
                known = latest.get(rank)
                if known:
                    donor = known[min(n, len(known) - 1)]
                    nth_loose = donor.nth_loose + max(n - len(known) + 1, 0)
                else:
                    donor = names.donor(rank, n)
                    nth_loose = donor.nth_loose + names.beyond(n)
                # Of one run: when files were open beside one another is lost in a mean over several.
                own = cls.runs[cls.reference].find(known_slot, rank)
                at_s, until_s = (own.at_s, own.until_s) if own else (times[known_slot], ends[known_slot])
                if late_s:
                    at_s += late_s
                    until_s = at_s + lasts if math.isfinite(lasts) else NOT_KNOWN_S
                self._file(
                    cls,
                    donor,
                    names.name(rank, n),
                    rank,
                    nth_loose,
                    size_bytes=min(max(round(size.mean_bytes * shares[rank]), 0), MOST_BYTES),
                    at_s=at_s,
                    until_s=until_s,
                    method=size.method,
                )
            if new:
                self.reports.append(SeriesReport(cls.loose, n, cls.shared, len(new), detail, size))

    def _file(
        self,
        cls: FileClass,
        donor: KnownFile,
        name: tuple[str, str],
        rank: int,
        nth_loose: int,
        *,
        size_bytes: int,
        at_s: float,
        until_s: float,
        method: str,
    ) -> None:
        key, precise = name
        same = precise == donor.precise and nth_loose == donor.nth_loose
        nth_precise = donor.nth_precise if same else self.numbered[rank, precise]
        self.numbered[rank, precise] = max(self.numbered[rank, precise], nth_precise + 1)
        if cls.shared and donor.creator_count == 1:
            self.creators[len(self.files)] = donor.creator
        before = self.runs[cls.reference].step.ranks
        writers = self.step.ranks if donor.writers == before > 1 else donor.writers
        writers = max(writers, 1 + (cls.loose in self.shared))
        self.files.append(
            Forecast(
                FileName(key, precise, cls.loose, is_volatile(precise), rank, nth_precise, nth_loose),
                size_bytes=size_bytes,
                at_s=at_s,
                until_s=until_s,
                writers=writers,
                contiguous=cls.shared and self._contiguous(donor),
                method=method,
            )
        )

    def _contiguous(self, donor: KnownFile) -> bool:
        """As the latest run that counted writes saw it: light recordings do not know."""
        if donor.counted:
            return donor.contiguous
        if self.counted is None:
            self.counted = {
                (f.loose, f.nth_loose): f.contiguous for run in self.runs for f in run.files if f.counted
            }
        return self.counted.get((donor.loose, donor.nth_loose), False)

    def _counts(self, cls: FileClass, per_rank: float, created: bool) -> dict[int, int]:
        """Rank → number of its files in the run to come; empty when there would be too many."""
        latest = {r: len(files) for r, files in cls.latest.items()}
        ranks = creating_ranks(sorted(latest), self.runs[cls.reference].step, self.step, cls.shared)
        mean = sum(latest.values()) / len(latest)
        growth = min(per_rank / mean, float(MOST_GROWTH))
        if created or min(latest.values()) == max(latest.values()):
            each = max(round(growth * mean), 1)
            return dict.fromkeys(ranks, each) if self._has_room(cls, len(ranks) * each) else {}
        if not self._has_room(cls, len(ranks)):
            return {}
        usual = median(latest.values())
        counts = {r: max(round(latest.get(r, usual) * growth), 1) for r in ranks}
        return counts if self._has_room(cls, sum(counts.values())) else {}

    def _has_room(self, cls: FileClass, files: int) -> bool:
        if len(self.files) + files <= MOST_FILES:
            return True
        self.warnings.append(
            f"{counted(files, 'file')} like {cls.loose} left out: one forecast has at most {MOST_FILES} files"
        )
        return False

    def finish(self, started: float, warnings: Sequence[str]) -> Prediction:
        files = self._told_apart()
        files.sort(key=lambda f: f.at_s)
        return Prediction(
            files=tuple(files),
            methods=dict(Counter(f.method for f in files)),
            elapsed_s=time.perf_counter() - started,
            warnings=tuple(dict.fromkeys(warnings)),
            series=tuple(self.reports),
            fits=self.model.made,
        )

    def _told_apart(self) -> list[Forecast]:
        """Shared files with the same template and n are looked up by the one rank that creates each."""
        if not self.creators:
            return self.files
        names = [f.name for f in self.files]
        times = Counter((n.loose, n.rank, n.nth_loose) for n in names)
        files = self.files.copy()
        for i, rank in self.creators.items():
            name = names[i]
            if times[name.loose, name.rank, name.nth_loose] > 1:
                files[i] = msgspec.structs.replace(files[i], name=msgspec.structs.replace(name, rank=rank))
        return files


def creating_ranks(latest: Sequence[int], before: JobStep, step: JobStep, shared: bool) -> Sequence[int]:
    """Ranks that will create files of a class, from those (sorted) that did on `before.ranks` ranks.

    All ranks stay all ranks; every k-th stays every k-th (one per node stays one per node); others stay.
    """
    known = latest[-1] < before.ranks  # else nobody knew how many ranks there would be
    if shared or step.ranks == before.ranks or not known:
        return latest
    if (latest[0], len(latest)) == (0, before.ranks):
        return range(step.ranks)
    strides = {b - a for a, b in pairwise(latest)}
    if len(strides) == 1:
        stride = strides.pop()
        first = latest[0]
        if len(latest) == len(range(first, before.ranks, stride)):
            if before.nodes > 1 and stride * before.nodes == before.ranks and step.nodes > 0:
                stride = max(step.ranks // step.nodes, 1)
            return range(first, step.ranks, stride)
    return [r for r in latest if r < max(step.ranks, 1)]


MOST_SERIES = 6
"""Series shown per class."""
MOST_VALUES = 8


def explain_prediction(prediction: Prediction, history: Sequence[KnownRun], step: JobStep) -> list[str]:
    """Lines for people (`tarazu history predict --explain`): series, model and order, forecast, alternatives."""
    total = human_bytes(sum(f.size_bytes for f in prediction.files))
    lines = [
        f"{step.application}: {counted(len(prediction.files), 'file')}, {total}, from {counted(len(history), 'run')} "
        f"({counted(step.ranks, 'rank')}, {counted(step.nodes, 'node')}, arguments {_numbers(step.numbers)})"
    ]
    for (loose, shared), group in groupby(prediction.series, key=lambda r: (r.loose, r.shared)):
        reports = list(group)
        kind = "shared" if shared else f"{counted(max(r.files for r in reports), 'rank')}"
        lines.append(f"{loose}  ({kind}, {len(reports)} per rank: {reports[0].count_detail})")
        for report in reports[:MOST_SERIES]:
            lines += _series(report)
        if len(reports) > MOST_SERIES:
            lines.append(f"  … and {len(reports) - MOST_SERIES} more")
    lines += [f"note: {text}" for text in prediction.warnings]
    return lines


def _series(report: SeriesReport) -> list[str]:
    size = report.size
    past = " ".join(human_bytes(v) for v in size.history[-MOST_VALUES:]) or "none"
    lines = [
        f"  #{report.nth}: {past} → {human_bytes(size.mean_bytes)} each × {report.files}"
        f"  [{size.method}: {size.detail}]"
    ]
    others = ", ".join(f"{label} → {human_bytes(value)}" for label, value in size.alternatives)
    if others:
        lines.append(f"      considered: {others}")
    return lines


def _numbers(numbers: Sequence[float]) -> str:
    return " ".join(f"{n:g}" for n in numbers) or "none"
