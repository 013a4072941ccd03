"""Sizes and numbers of the files of one class in the run to come; a handful of series, not one per file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import msgspec

from tarazu.model import JobStep
from tarazu.predict import regression
from tarazu.predict.classes import FileClass, Group
from tarazu.predict.series import Estimate, SeriesModel
from tarazu.trace.records import RunRecord

MOST_SHAPES = 8
"""A class whose groups have more different histories is forecast as a whole and shared out."""
SHARE_RUNS = 3
"""Shares of ranks and groups are means over this many of the latest runs."""


class SizeForecast(msgspec.Struct, frozen=True):
    """Forecast mean size of the files of one group, and how it came about."""

    mean_bytes: float
    method: str
    detail: str
    history: tuple[float, ...] = ()
    """Mean sizes of the runs before."""
    alternatives: tuple[tuple[str, float], ...] = ()


def file_count(
    cls: FileClass, runs: Sequence[RunRecord], step: JobStep, model: SeriesModel
) -> tuple[float, str]:
    """Files per creating rank (shared class: files), and how that was found."""
    counts = cls.counts()
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
    cls: FileClass, runs: Sequence[RunRecord], step: JobStep, files: int, model: SeriesModel
) -> list[SizeForecast | None]:
    """Forecast of each group of the class; None where no file of the group was ever closed.

    `files` is the number of files that a group will have (ranks that create one).
    """
    found = _unscaled_sizes(cls, runs, step, files, model)
    before = runs[cls.reference].step.ranks
    if model.model != "arima" or not _scales_with_ranks(cls, runs, step):
        return found
    for i, size in enumerate(found):
        # A size that an argument gives outright is that of the whole file, on any number of ranks.
        if size is not None and size.mean_bytes not in step.numbers:
            mean = size.mean_bytes * step.ranks / before
            detail = f"{size.detail}; as much per rank on {step.ranks} ranks as on {before}"
            found[i] = msgspec.structs.replace(size, mean_bytes=mean, method="regression", detail=detail)
    return found


def _scales_with_ranks(cls: FileClass, runs: Sequence[RunRecord], step: JobStep) -> bool:
    """A shared file that every rank writes, on a number of ranks that history never varied: weak scaling."""
    before = runs[cls.reference].step.ranks
    writers = max(f.writers for files in cls.latest.values() for f in files)
    never_varied = len({r.step.ranks for r in runs}) == 1
    return cls.shared and never_varied and step.ranks != before and writers >= before > 1


def _unscaled_sizes(
    cls: FileClass, runs: Sequence[RunRecord], step: JobStep, files: int, model: SeriesModel
) -> list[SizeForecast | None]:
    series = [_mean_series(group) for group in cls.groups]
    found = [_explained(cls, g, y, runs, step, files, model) for g, y in zip(cls.groups, series, strict=True)]
    open_groups = [i for i, y in enumerate(series) if y and found[i] is None]
    shapes = {_shape([v for _, v in series[i]]) for i in open_groups} - {()}
    if model.model == "arima" and len(shapes) > MOST_SHAPES:
        return _pooled(series, found, open_groups, model)
    for i in open_groups:
        y = [v for _, v in series[i]]
        found[i] = _of(model.ahead(y), y)
    if model.model == "arima":
        _lead_newcomers(series, found)
    return found


def _lead_newcomers(series: Sequence[Sequence[object]], found: list[SizeForecast | None]) -> None:
    """A group that came late to the class changes as the nearest group before it that was there all along."""
    longest = max(map(len, series))
    leader: SizeForecast | None = None
    for i, size in enumerate(found):
        if size is None:
            continue
        if len(series[i]) == longest:
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
            values = [s.mean_bytes for s in result]
            estimates = model.ahead(values, total - i)
            detail = f"continued within the run: {estimates.detail}"
            result.extend(SizeForecast(v, estimates.method, detail, tuple(values)) for v in estimates.values)
            break
    return result[:total]


def rank_shares(group: Group, ranks: Sequence[int]) -> dict[int, float]:
    """Size of each rank's file relative to the mean of the group, which stays 1; a new rank has the mean."""
    totals: dict[int, list[float]] = {}
    for t in sorted(group)[-SHARE_RUNS:]:
        sizes = {r: f.size_bytes for r, f in group[t].items() if f.closed}
        total = sum(sizes.values())
        for rank, size in sizes.items():
            totals.setdefault(rank, []).append(size * len(sizes) / total if total else 1.0)
    shares = {r: sum(totals[r]) / len(totals[r]) if r in totals else 1.0 for r in ranks}
    scale = sum(shares.values()) / len(shares) if shares else 1.0
    return {r: share / scale if scale else 1.0 for r, share in shares.items()}


def creation_time(group: Group, rank: int) -> float:
    """Median time of creation over the latest runs, of this rank where it took part, s after the start."""
    latest = sorted(group)[-5:]
    own = [group[t][rank].at_s for t in latest if rank in group[t]]
    return median(own) if own else group_time(group)


def group_time(group: Group) -> float:
    """Median time of creation of a group in its latest run."""
    return median(f.at_s for f in group[max(group)].values())


def _mean_series(group: Group) -> list[tuple[int, float]]:
    """(run, mean size of the files that were closed), oldest first."""
    series = []
    for t in sorted(group):
        sizes = [f.size_bytes for f in group[t].values() if f.closed]
        if sizes:
            series.append((t, sum(sizes) / len(sizes)))
    return series


def _explained(
    cls: FileClass,
    group: Group,
    series: Sequence[tuple[int, float]],
    runs: Sequence[RunRecord],
    step: JobStep,
    files: int,
    model: SeriesModel,
) -> SizeForecast | None:
    """What a regressor gives: of the mean size, else (files of single ranks) of the sum over ranks."""
    if model.model != "arima" or not series:
        return None
    steps = [runs[t].step for t, _ in series]
    y = [v for _, v in series]
    explained = regression.explain(steps, y, step) or regression.identity(steps, y, step, least=4096)
    if explained is not None:
        return SizeForecast(
            explained.value, "regression", explained.detail, tuple(y), (("last value", y[-1]),)
        )
    if cls.shared:
        return None
    numbers = [len(group[t]) for t, _ in series]
    if min(y) == max(y) or len({*numbers, files}) == 1:
        return None
    sums = [v * n for v, n in zip(y, numbers, strict=True)]
    if len(set(numbers)) > 1 and max(sums) - min(sums) <= regression.TOLERANCE * max(sums):
        detail = f"the sum over ranks is constant, {sums[-1]:.6g} bytes"
        return SizeForecast(sums[-1] / files, "regression", detail, tuple(y))
    explained = regression.explain(steps, sums, step)
    if explained is not None:
        return SizeForecast(explained.value / files, "regression", f"sum = {explained.detail}", tuple(y))
    return None


def _pooled(
    series: Sequence[Sequence[tuple[int, float]]],
    found: list[SizeForecast | None],
    open_groups: Sequence[int],
    model: SeriesModel,
) -> list[SizeForecast | None]:
    """One series, the sum over groups; each group keeps its share of the latest runs."""
    by_run = [dict(series[i]) for i in open_groups]
    everywhere = sorted(set.intersection(*(set(values) for values in by_run)))
    runs = everywhere or [max(by_run[0])]
    sums = [sum(values.get(t, 0.0) for values in by_run) for t in runs]
    estimate = model.ahead(sums)
    for i, values in zip(open_groups, by_run, strict=True):
        latest = [t for t in runs[-SHARE_RUNS:] if t in values and sums[runs.index(t)] > 0]
        shares = [values[t] / sums[runs.index(t)] for t in latest]
        mean = estimate.values[0] * sum(shares) / len(shares) if shares else series[i][-1][1]
        detail = f"share of the sum over {len(open_groups)} files: {estimate.detail}"
        found[i] = SizeForecast(mean, estimate.method, detail, tuple(v for _, v in series[i]))
    return found


def _of(estimate: Estimate, y: Sequence[float]) -> SizeForecast:
    return SizeForecast(estimate.values[0], estimate.method, estimate.detail, tuple(y), estimate.alternatives)


def _shape(y: Sequence[float]) -> tuple[float, ...]:
    """Normalised history; empty for one that needs no fit."""
    scale = max(abs(v - y[-1]) for v in y)
    if len(y) < 4 or scale == 0:
        return ()
    return tuple(round((v - y[-1]) / scale, 4) for v in y)
