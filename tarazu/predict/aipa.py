"""AIPA, the prediction model (paper, section 5.5.1): history of an application → files of its next run."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import msgspec

from tarazu.model import Forecast, JobStep
from tarazu.predict import regression
from tarazu.predict.classes import FileClass, classes, usable
from tarazu.predict.naming import ClassNames
from tarazu.predict.series import SeriesModel
from tarazu.predict.sizes import (
    SizeForecast,
    continue_sizes,
    creation_time,
    file_count,
    group_sizes,
    group_time,
    rank_shares,
)
from tarazu.trace.records import FileRecord, RunRecord, is_volatile

MOST_FILES = 1_000_000
"""A prediction stops here: a count that ran away must not fill the leader's memory."""
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


def forecast(history: Sequence[RunRecord], step: JobStep, *, model: str = "arima") -> Prediction:
    """Forecast the run `step` from its history, oldest run first. No history: no files, and a warning.

    `model`: `arima` (with regression on what is known before the run) or a baseline, `last`, `mean`, `drift`.
    """
    started = time.perf_counter()
    warnings: list[str] = []
    runs = usable(history, warnings.append)
    if not runs:
        return Prediction((), {}, time.perf_counter() - started, ("no run in history has files",))
    series_model = SeriesModel(model)
    if model == "arima":
        warnings += regression.unseen([r.step for r in runs], step)
    builder = _Builder(runs, step, series_model)
    for cls in classes(runs):
        per_rank, detail = file_count(cls, runs, step, series_model)
        builder.add(cls, per_rank, detail)
    return builder.finish(started, [*warnings, *series_model.warnings])


def extend(
    run_so_far: RunRecord, step: JobStep, *, horizon_s: float = 1800.0, model: str = "arima"
) -> Prediction:
    """The next steps of a run that is going on: for each stepped writer, as many steps again as it made.

    A class counts as stepped from its third file per rank on, when these came one after another. Only files
    that do not exist yet, and are expected within `horizon_s` of the last one, are returned.
    """
    started = time.perf_counter()
    series_model = SeriesModel(model)
    builder = _Builder([run_so_far], step, series_model)
    known = {f.key for f in run_so_far.files}
    for cls in classes([run_so_far]) if run_so_far.files else []:
        steps = len(cls.groups)
        if steps < FIRST_STEPS:
            continue
        interval_s = median(b - a for a, b in pairwise(group_time(g) for g in cls.groups))
        if interval_s < SHORTEST_INTERVAL_S:
            continue
        more = max(1, min(steps, int(horizon_s / interval_s)))
        builder.add(cls, steps + more, f"{steps} steps so far, one every {interval_s:.3g} s", even=True)
    prediction = builder.finish(started, series_model.warnings)
    files = tuple(f for f in prediction.files if f.key not in known)
    return msgspec.structs.replace(prediction, files=files, methods=dict(Counter(f.method for f in files)))


class _Builder:
    """Collects the forecasts of one run, class by class."""

    def __init__(self, runs: Sequence[RunRecord], step: JobStep, model: SeriesModel) -> None:
        self.runs = runs
        self.step = step
        self.model = model
        self.files: list[Forecast] = []
        self.reports: list[SeriesReport] = []
        self.creators: dict[int, int] = {}
        """Index of a shared file → the one rank that creates it."""
        self.numbered: defaultdict[tuple[int, str], int] = defaultdict(int)
        """(rank, precise) → next n."""
        self.counted: dict[tuple[str, int], bool] | None = None
        """(loose, n) → contiguous, of the latest run that counted writes."""

    def add(self, cls: FileClass, per_rank: float, detail: str, *, even: bool = False) -> None:
        """Forecast one class. `even`: every rank makes `per_rank` files, also one that lags behind."""
        counts = self._counts(cls, per_rank, even)
        total = max(counts.values(), default=0)
        if not total or len(self.files) + sum(counts.values()) > MOST_FILES:
            return
        sizes = group_sizes(cls, self.runs, self.step, len(counts), self.model)
        forecasts = continue_sizes(sizes, total, self.model)
        names = ClassNames(cls, self.runs, self.step)
        times = [group_time(g) for g in cls.groups]
        pace_s = median([b - a for a, b in pairwise(times)] or [0.0])
        latest = cls.latest
        for n, size in enumerate(forecasts):
            group = cls.groups[min(n, len(cls.groups) - 1)]
            late_s = max(n - len(cls.groups) + 1, 0) * max(pace_s, 0.0)
            creating = [r for r, count in counts.items() if n < count]
            shares = rank_shares(group, creating)
            for rank in creating:
                known = latest.get(rank, [])
                donor = known[min(n, len(known) - 1)] if known else names.donor(rank, n)
                nth_loose = donor.nth_loose + (max(n - len(known) + 1, 0) if known else names.beyond(n))
                self._file(
                    cls,
                    donor,
                    names.name(rank, n),
                    rank,
                    nth_loose,
                    size_bytes=max(round(size.mean_bytes * shares[rank]), 0),
                    at_s=creation_time(group, rank) + late_s,
                    method=size.method,
                )
            self.reports.append(SeriesReport(cls.loose, n, cls.shared, len(creating), detail, size))

    def _file(
        self,
        cls: FileClass,
        donor: FileRecord,
        name: tuple[str, str],
        rank: int,
        nth_loose: int,
        *,
        size_bytes: int,
        at_s: float,
        method: str,
    ) -> None:
        key, precise = name
        same = precise == donor.precise and nth_loose == donor.nth_loose
        nth_precise = donor.nth_precise if same else self.numbered[rank, precise]
        self.numbered[rank, precise] = max(self.numbered[rank, precise], nth_precise + 1)
        if cls.shared and len(donor.creators) == 1:
            self.creators[len(self.files)] = donor.creators[0]
        before = self.runs[cls.reference].step.ranks
        writers = self.step.ranks if donor.writers == before > 1 else donor.writers
        self.files.append(
            Forecast(
                key=key,
                precise=precise,
                loose=cls.loose,
                volatile=is_volatile(precise),
                rank=rank,
                nth_precise=nth_precise,
                nth_loose=nth_loose,
                size_bytes=size_bytes,
                at_s=at_s,
                writers=writers,
                contiguous=cls.shared and self._contiguous(donor),
                method=method,
            )
        )

    def _contiguous(self, donor: FileRecord) -> bool:
        """As the latest run that counted writes saw it: light recordings do not know."""
        if donor.counted:
            return donor.contiguous
        if self.counted is None:
            self.counted = {
                (f.loose, f.nth_loose): f.contiguous for run in self.runs for f in run.files if f.counted
            }
        return self.counted.get((donor.loose, donor.nth_loose), False)

    def _counts(self, cls: FileClass, per_rank: float, even: bool) -> dict[int, int]:
        """Rank → number of its files in the run to come."""
        latest = {r: len(files) for r, files in cls.latest.items()}
        ranks = creating_ranks(sorted(latest), self.runs[cls.reference].step, self.step, cls.shared)
        mean = sum(latest.values()) / len(latest)
        growth = min(per_rank / mean, float(MOST_GROWTH))
        if even or min(latest.values()) == max(latest.values()):
            return dict.fromkeys(ranks, max(round(growth * mean), 1))
        usual = median(latest.values())
        return {r: max(round(latest.get(r, usual) * growth), 1) for r in ranks}

    def finish(self, started: float, warnings: Sequence[str]) -> Prediction:
        files = self._told_apart()
        files.sort(key=lambda f: f.at_s)
        return Prediction(
            files=tuple(files),
            methods=dict(Counter(f.method for f in files)),
            elapsed_s=time.perf_counter() - started,
            warnings=tuple(dict.fromkeys(warnings)),
            series=tuple(self.reports),
            fits=self.model.fits,
        )

    def _told_apart(self) -> list[Forecast]:
        """Shared files with the same template and n are looked up by the one rank that creates each."""
        times = Counter((f.loose, f.rank, f.nth_loose) for f in self.files)
        return [
            msgspec.structs.replace(f, rank=self.creators[i])
            if i in self.creators and times[f.loose, f.rank, f.nth_loose] > 1
            else f
            for i, f in enumerate(self.files)
        ]


def creating_ranks(latest: Sequence[int], before: JobStep, step: JobStep, shared: bool) -> list[int]:
    """Ranks that will create files of a class, from those (sorted) that did on `before.ranks` ranks.

    All ranks stay all ranks; every k-th stays every k-th (one per node stays one per node); others stay.
    """
    known = latest[-1] < before.ranks  # else nobody knew how many ranks there would be
    if shared or step.ranks == before.ranks or not known:
        return list(latest)
    if list(latest) == list(range(before.ranks)):
        return list(range(step.ranks))
    strides = {b - a for a, b in pairwise(latest)}
    if len(strides) == 1:
        stride = strides.pop()
        first = latest[0]
        if len(latest) == len(range(first, before.ranks, stride)):
            if before.nodes > 1 and stride * before.nodes == before.ranks and step.nodes > 0:
                stride = max(step.ranks // step.nodes, 1)
            return list(range(first, step.ranks, stride))
    return [r for r in latest if r < max(step.ranks, 1)]
