"""Sizes and numbers of the files of one class in the run to come; a handful of series, not one per file."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from tarazu.model import JobStep
from tarazu.predict import RUNS, regression
from tarazu.predict.classes import FileClass
from tarazu.predict.series import LONGEST, SHORTEST_ARIMA, SeriesEstimate, SeriesModel, shape
from tarazu.trace.records import NOT_KNOWN_S, KnownRun
from tarazu.units import counted

MOST_SHAPES = 8
"""A class whose groups have more different histories is forecast as a whole and shared out."""
SHARE_RUNS = 3
"""Shares of ranks and groups are means over this many of the latest runs."""


EXPLAINED = 16
"""Only this many series of a class keep their history for `--explain`."""


class Series(NamedTuple):
    """Mean sizes of the files of one group that were closed."""

    runs: tuple[int, ...]
    """Oldest first, those with such a file."""
    values: array[float]

    def newest(self) -> Series:
        """What numbers on command lines are to explain: a program that was changed since is another one."""
        return Series(self.runs[-RUNS:], self.values[-RUNS:])


class SizeForecast(msgspec.Struct, frozen=True):
    """Forecast mean size of the files of one group, and how it came about."""

    mean_bytes: float
    method: str
    detail: str
    history: tuple[float, ...] = ()
    """Mean sizes of the runs before."""
    alternatives: tuple[tuple[str, float], ...] = ()


def file_count(
    cls: FileClass, runs: Sequence[KnownRun], step: JobStep, model: SeriesModel
) -> tuple[float, str]:
    """Files per creating rank (shared class: files), and how that was found."""
    counts = cls.counts()[-RUNS:]
    series = [count for _, count in counts]
    if model.model == "arima":
        steps = [runs[t].step for t, _ in counts]
        explained = regression.explain(steps, series, step)
        if explained is None:
            explained = regression.identity(steps, series, step, least=3)
        if explained is not None:
            return explained.value, f"regression: {explained.detail}"
    recent = series[-5:]
    differences = {b - a for a, b in pairwise(recent)}
    if model.model == "last" or len(recent) < 3 or recent[-1] == recent[-2]:
        return series[-1], "as in the last run"
    if len(differences) == 1:
        return max(recent[-1] + differences.pop(), 1), "constant difference"
    estimate = model.ahead(series)
    return estimate.values[0], f"{estimate.method}: {estimate.detail}"


def group_sizes(
    cls: FileClass, runs: Sequence[KnownRun], step: JobStep, files: int, model: SeriesModel
) -> list[SizeForecast | None]:
    """Forecast of each group of the class; None where no file of the group was ever closed.

    `files` is the number of files that a group will have (ranks that create one).
    """
    forecasts = _unscaled_sizes(cls, runs, step, files, model)
    before = runs[cls.reference].step.ranks
    if model.model != "arima" or not _scales_with_ranks(cls, runs, step):
        return forecasts
    for i, size in enumerate(forecasts):
        # A size that an argument gives outright is that of the whole file, on any number of ranks.
        if size is not None and size.mean_bytes not in step.numbers:
            mean = size.mean_bytes * step.ranks / before
            detail = f"{size.detail}; as much per rank on {counted(step.ranks, 'rank')} as on {before}"
            forecasts[i] = msgspec.structs.replace(size, mean_bytes=mean, method="regression", detail=detail)
    return forecasts


def _scales_with_ranks(cls: FileClass, runs: Sequence[KnownRun], step: JobStep) -> bool:
    """A shared file that every rank writes, on a number of ranks that history never varied: weak scaling."""
    before = runs[cls.reference].step.ranks
    writers = max(f.writers for files in cls.latest.values() for f in files)
    never_varied = len({r.step.ranks for r in runs[-RUNS:]}) == 1
    return cls.shared and never_varied and step.ranks != before and writers >= before > 1


def _unscaled_sizes(
    cls: FileClass, runs: Sequence[KnownRun], step: JobStep, files: int, model: SeriesModel
) -> list[SizeForecast | None]:
    series = _mean_series(cls)
    regressors = _Regressors(runs, step)
    forecasts = [_explained(cls, n, y, regressors, files, model) for n, y in enumerate(series)]
    open_groups = [i for i, y in enumerate(series) if y.runs and forecasts[i] is None]
    histories = [series[i].values for i in open_groups]
    shapes = {shape(y[-RUNS:]) for y in histories if len(y) >= SHORTEST_ARIMA} - {()}
    if model.model == "arima" and len(shapes) > MOST_SHAPES:
        return _pooled(series, forecasts, open_groups, model)
    for i in open_groups:
        forecasts[i] = _of(model.ahead(series[i].values), _kept(i, series[i]))
    if model.model == "arima":
        _lead_newcomers(series, forecasts)
    return forecasts


def _lead_newcomers(series: Sequence[Series], found: list[SizeForecast | None]) -> None:
    """A group that came late to the class changes as the nearest group before it that was there all along."""
    longest = max(len(y.runs) for y in series)
    leader: SizeForecast | None = None
    for i, size in enumerate(found):
        if size is None:
            continue
        if len(series[i].runs) == longest:
            leader = size
        elif leader is not None and size.method == "last" and leader.history[-1] > 0:
            change = leader.mean_bytes / leader.history[-1]
            detail = f"{size.detail}; changes as the file before it: {leader.detail}"
            found[i] = SizeForecast(size.mean_bytes * change, leader.method, detail, size.history)


def continue_sizes(sizes: list[SizeForecast | None], total: int, model: SeriesModel) -> list[SizeForecast]:
    """Fill groups without a forecast, and groups beyond the known ones, by the growth within the run."""
    result: list[SizeForecast] = []
    known = [s for s in sizes if s is not None]
    for i in range(total):
        given = sizes[i] if i < len(sizes) else None
        if given is not None:
            result.append(given)
        elif not known:
            result.append(SizeForecast(0.0, "last", "no file of this class was ever closed"))
        elif not result:
            result.append(msgspec.structs.replace(known[0], detail="as the first file that was closed"))
        else:
            values = [s.mean_bytes for s in result[-LONGEST:]]
            estimates = model.ahead(values, total - i)
            detail = f"continued within the run: {estimates.detail}"
            past = tuple(values)
            result.extend(SizeForecast(v, estimates.method, detail, past) for v in estimates.values)
            break
    return result[:total]


def rank_shares(cls: FileClass, n: int, ranks: Sequence[int]) -> Mapping[int, float]:
    """Size of each rank's file relative to the mean of slot `n`, which stays 1; a new rank has the mean."""
    if len(ranks) == 1:
        return {ranks[0]: 1.0}
    latest = [[f for f in cls.runs[t].slot(n) if f.closed] for t in cls.having(n)[-SHARE_RUNS:]]
    if all(len({f.size_bytes for f in files}) <= 1 for files in latest):
        return dict.fromkeys(ranks, 1.0)
    totals: dict[int, list[float]] = {}
    for files in latest:
        total = sum(f.size_bytes for f in files)
        for f in files:
            totals.setdefault(f.rank, []).append(f.size_bytes * len(files) / total if total else 1.0)
    shares = {r: sum(totals[r]) / len(totals[r]) if r in totals else 1.0 for r in ranks}
    scale = sum(shares.values()) / len(shares) if shares else 1.0
    return {r: share / scale if scale else 1.0 for r, share in shares.items()}


def opened_s(cls: FileClass, n: int) -> float:
    """Median time of creation of a slot in the latest run of the class."""
    return _middle([f.at_s for f in cls.runs[cls.reference].slot(n)])


def closed_s(cls: FileClass, n: int) -> float:
    """Median time of the last close of a slot in the latest run of the class; that of no file that stayed open."""
    ends = [f.until_s for f in cls.runs[cls.reference].slot(n)]
    return NOT_KNOWN_S if min(ends) < 0 else _middle(ends)


def lasts_s(cls: FileClass) -> float:
    """Median time for which a file of the class was open in its latest run; infinite where none was seen closed."""
    known = [f.until_s - f.at_s for f in cls.runs[cls.reference].files if f.until_s >= f.at_s]
    return _middle(known) if known else math.inf


def _middle(values: list[float]) -> float:
    """`statistics.median`, faster for a few values."""
    values.sort()
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _mean_series(cls: FileClass) -> list[Series]:
    """One per group."""
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    series = []
    for n in range(cls.slots):
        runs: list[int] = []
        values = array("d")
        for t, run in cls.runs.items():
            low, high = run.starts[n], run.starts[n + 1]
            if high - low == 1:
                sizes = [run.files[low].size_bytes] if run.files[low].closed else []
            else:
                sizes = [f.size_bytes for f in run.files[low:high] if f.closed]
            if sizes:
                runs.append(t)
                values.append(sum(sizes) / len(sizes))
        key = tuple(runs)
        series.append(Series(known.setdefault(key, key), values))
    return series


class _Regressors:
    """The steps behind the runs of a series."""

    def __init__(self, runs: Sequence[KnownRun], step: JobStep) -> None:
        self.step = step
        self._runs = runs
        self._steps: dict[tuple[int, ...], list[JobStep]] = {}

    def steps(self, runs: tuple[int, ...]) -> list[JobStep]:
        if runs not in self._steps:
            self._steps[runs] = [self._runs[t].step for t in runs]
        return self._steps[runs]


def _explained(
    cls: FileClass, n: int, series: Series, regressors: _Regressors, files: int, model: SeriesModel
) -> SizeForecast | None:
    """What a regressor gives: of the mean size, else (files of single ranks) of the sum over ranks."""
    if model.model != "arima" or not series.runs:
        return None
    series = series.newest()
    steps, step, y = regressors.steps(series.runs), regressors.step, series.values
    explained = regression.explain(steps, y, step) or regression.identity(steps, y, step, least=4096)
    if explained is not None:
        kept = _kept(n, series)
        return SizeForecast(explained.value, "regression", explained.detail, kept, (("last value", y[-1]),))
    if cls.shared or min(y) == max(y):
        return None
    starts = [cls.runs[t].starts for t in series.runs]
    numbers = [s[n + 1] - s[n] for s in starts]
    if len({*numbers, files}) == 1:
        return None
    sums = [v * count for v, count in zip(y, numbers, strict=True)]
    if len(set(numbers)) > 1 and max(sums) - min(sums) <= regression.TOLERANCE * max(sums):
        detail = f"the sum over ranks is constant, {sums[-1]:.6g} bytes"
        return SizeForecast(sums[-1] / files, "regression", detail, _kept(n, series))
    explained = regression.explain(steps, sums, step)
    if explained is not None:
        return SizeForecast(
            explained.value / files, "regression", f"sum = {explained.detail}", _kept(n, series)
        )
    return None


def _pooled(
    series: Sequence[Series],
    found: list[SizeForecast | None],
    open_groups: Sequence[int],
    model: SeriesModel,
) -> list[SizeForecast | None]:
    """One series, the sum over groups; each group keeps its share of the latest runs."""
    everywhere = sorted(set.intersection(*(set(series[i].runs) for i in open_groups)))
    runs = everywhere or [series[open_groups[0]].runs[-1]]
    sums = dict.fromkeys(runs, 0.0)
    for i in open_groups:
        for t, value in zip(*series[i], strict=True):
            if t in sums:
                sums[t] += value
    estimate = model.ahead(list(sums.values()))
    detail = f"share of the sum over {counted(len(open_groups), 'file')}: {estimate.detail}"
    latest = [t for t in runs[-SHARE_RUNS:] if sums[t] > 0]
    for i in open_groups:
        values = dict(zip(*series[i], strict=True))
        shares = [values[t] / sums[t] for t in latest if t in values]
        mean = estimate.values[0] * sum(shares) / len(shares) if shares else series[i].values[-1]
        found[i] = SizeForecast(mean, estimate.method, detail, _kept(i, series[i]))
    return found


def _of(estimate: SeriesEstimate, history: tuple[float, ...]) -> SizeForecast:
    others = estimate.alternatives if len(history) > 1 else ()
    return SizeForecast(estimate.values[0], estimate.method, estimate.detail, history, others)


def _kept(n: int, series: Series) -> tuple[float, ...]:
    """What a SizeForecast keeps of its history; for most of a hundred thousand, the last value."""
    return tuple(series.values if n < EXPLAINED else series.values[-1:])
