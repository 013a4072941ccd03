"""Rows of all seeds as one line for each policy, layout and swept value: means, intervals, gains over the baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from tarazu.sim.study.results import ScenarioRow
from tarazu.sim.study.scenario import Scalar
from tarazu.sim.study.statistics import MeanEstimate, estimate, ratio

BASELINE = "lsa"
"""What a site has today: gains are over this policy, else over the first one."""

Sweep = tuple[tuple[str, Scalar], ...]


class Summary(msgspec.Struct, frozen=True):
    """All seeds of one combination; of several runs in a row their mean. Bandwidths in bytes/s."""

    sweep: Sweep
    layout: str
    policy: str
    seeds: int
    failed: int
    """Seeds without a result, left out of the means."""
    read: MeanEstimate
    write: MeanEstimate
    read_limit: float
    write_limit: float
    ost_cost: MeanEstimate
    ost_cost_bound: float
    completion_s: MeanEstimate
    read_gain: MeanEstimate | None = None
    """Its bandwidth over that of the baseline with the same seed; None for the baseline, and for what moves nothing."""
    write_gain: MeanEstimate | None = None
    speedup: MeanEstimate | None = None
    """The baseline's completion over its own."""


def baseline_of(policies: Sequence[str]) -> str:
    return BASELINE if BASELINE in policies else policies[0]


def summaries(rows: Sequence[ScenarioRow]) -> list[Summary]:
    """In the order in which the combinations first stand in `rows`."""
    groups: dict[tuple[Sweep, str, str], list[ScenarioRow]] = {}
    for row in rows:
        groups.setdefault((tuple(row.sweep.items()), row.layout, row.policy), []).append(row)
    baseline = baseline_of(list(dict.fromkeys(row.policy for row in rows))) if rows else ""
    return [_summary(key, group, groups.get((key[0], key[1], baseline), [])) for key, group in groups.items()]


def per_seed(rows: Sequence[ScenarioRow], metric: Callable[[ScenarioRow], float]) -> dict[int, float]:
    """Seed → the metric's mean over the runs; seeds of which a run failed are left out."""
    values: dict[int, list[float]] = {}
    failed = {row.seed for row in rows if row.error}
    for row in rows:
        if row.seed not in failed:
            values.setdefault(row.seed, []).append(metric(row))
    return {seed: math.fsum(of_runs) / len(of_runs) for seed, of_runs in values.items()}


def _summary(
    key: tuple[Sweep, str, str], rows: Sequence[ScenarioRow], base: Sequence[ScenarioRow]
) -> Summary:
    def of(metric: Callable[[ScenarioRow], float]) -> MeanEstimate:
        return estimate(list(per_seed(rows, metric).values()) or [math.nan])

    def gain(metric: Callable[[ScenarioRow], float], inverse: bool = False) -> MeanEstimate | None:
        if not base or base[0].policy == key[2]:
            return None
        ours, theirs = per_seed(rows, metric), per_seed(base, metric)
        if inverse:
            ours, theirs = theirs, ours
        both = [seed for seed in ours if theirs.get(seed) and ours[seed]]
        return ratio([ours[s] for s in both], [theirs[s] for s in both]) if both else None

    def read(row: ScenarioRow) -> float:
        return row.read_bytes_per_s

    def write(row: ScenarioRow) -> float:
        return row.write_bytes_per_s

    def completion(row: ScenarioRow) -> float:
        return row.completion_s

    whole = [row for row in rows if not row.error]
    return Summary(
        *key,
        seeds=len({row.seed for row in rows}),
        failed=len({row.seed for row in rows if row.error}),
        read=of(read),
        write=of(write),
        read_limit=max((row.read_limit_bytes_per_s for row in whole), default=math.nan),
        write_limit=max((row.write_limit_bytes_per_s for row in whole), default=math.nan),
        ost_cost=of(lambda row: row.ost_cost),
        ost_cost_bound=of(lambda row: row.ost_cost_bound).mean,
        completion_s=of(completion),
        read_gain=gain(read),
        write_gain=gain(write),
        speedup=gain(completion, inverse=True),
    )


def gain_text(gain: MeanEstimate | None) -> str:
    """`+36 % (+30 to +41)`, `none (-2 to +3 %)` where the interval holds 0; empty where there is nothing to compare."""
    if gain is None:
        return ""
    low, mean, high = (100 * (value - 1) for value in (gain.low, gain.mean, gain.high))
    if math.isnan(low):
        return f"{mean:+.1f} % (one seed)"
    if low <= 0 <= high:
        return f"none ({low:+.1f} to {high:+.1f} %)"
    return f"{mean:+.1f} % ({low:+.1f} to {high:+.1f})"


def axis_of(rows: Sequence[ScenarioRow]) -> str:
    """The first swept key with several values that are all numbers: what plots have below; empty without one."""
    for key in rows[0].sweep if rows else ():
        values = {row.sweep[key] for row in rows}
        if len(values) > 1 and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            return key
    return ""
