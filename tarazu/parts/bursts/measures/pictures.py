"""A period's spatial bursts as pictures: those of spatially-bursty-io (2, 4, 5, 7, 8, 10, 11, 16), of any system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tarazu.drawing import Picture, legend, picture, pyplot
from tarazu.parts.bursts.measures.characteristics import Thresholds
from tarazu.parts.bursts.measures.day import Period
from tarazu.parts.bursts.measures.measures import Floats
from tarazu.parts.bursts.measures.report import by_size
from tarazu.parts.bursts.traffic.traffic import Seconds

COLOURS = ("#c0504d", "#1f8fd6", "#3f9b57", "#d08a2e", "#8064a2")
POINTS = 360
"""Of a curve over time: intervals are joined to so many."""
DAY_S = 86_400


def pictures(
    period: Period, limits: Thresholds | None = None, progress: Callable[[str], None] = lambda _: None
) -> list[Picture]:
    """Those for which there is something to draw; `progress` hears of each. Raises Unavailable without matplotlib."""
    limits = limits or Thresholds()
    plt = pyplot()
    draw: dict[str, Callable[[], Picture]] = {}
    if len(period.shares.time_s):
        if period.machine.io_nodes:
            draw["I/O nodes over time"] = lambda: _heat(plt, period)
            draw["the busiest I/O nodes"] = lambda: _busiest(plt, period)
            draw["bytes of I/O nodes"] = lambda: _totals(plt, period)
        draw["the busiest nodes"] = lambda: _moments(plt, period)
    if any(c.nodes > 1 for c in period.characters):
        draw["jobs"] = lambda: _jobs(plt, period, limits)
    if any(a.nodes > 1 for a in period.applications.values()):
        draw["applications"] = lambda: _applications(plt, period, limits)
    drawn = []
    for what, one in draw.items():
        progress(f"drawing {what}")
        drawn.append(one())
    return drawn


def _heat(plt: Any, period: Period) -> Picture:
    name, mapped = next(iter(period.shares.mapped.items()))

    def draw(plt: Any) -> Any:
        from matplotlib.colors import LogNorm

        figure, axis = plt.subplots(figsize=(9, 4.6), layout="constrained")
        rate = mapped.heat / period.shares.column_s / 1e6
        some = rate[rate > 0]
        low = max(float(some.min()), float(some.max()) / 1e5) if len(some) else 1.0
        norm = LogNorm(low, max(float(some.max()), low * 10) if len(some) else 10.0)
        end = period.start_s + rate.shape[1] * period.shares.column_s
        shown = axis.imshow(
            np.where(rate > 0, rate, np.nan),
            aspect="auto",
            interpolation="nearest",
            origin="lower",
            norm=norm,
            cmap="inferno",
            extent=(period.start_s, end, -0.5, len(rate) - 0.5),
        )
        axis.grid(False)
        axis.set_facecolor("#000000")
        axis.set_ylabel("I/O node")
        _time(axis, period.start_s, end)
        figure.colorbar(shown, ax=axis, label="MB/s", pad=0.01)
        return figure

    return picture(
        plt,
        "heat",
        "I/O nodes over time",
        f"What each I/O node carried, by the mapping {name!r}; black is nothing. At each moment few carry most.",
        draw,
    )


def _busiest(plt: Any, period: Period) -> Picture:
    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(2, 1, figsize=(9, 5.4), sharex=True, squeeze=False, layout="constrained")
        (above,), (below,) = axes
        for colour, (name, mapped) in zip(COLOURS, period.shares.mapped.items(), strict=False):
            mean = period.shares.mean(mapped.busiest)
            label = f"{name}: {_percent(mean)}"
            when, values = joined(period.shares.time_s, mapped.busiest)
            above.plot(when, 100 * values, color=colour, linewidth=1.1, label=label)
            when, counts = joined(period.shares.time_s, mapped.of_busiest.astype(np.float64))
            below.plot(when, counts, color=colour, linewidth=1.1)
        above.set_ylim(0, 102)
        above.set_ylabel("% of all bytes")
        above.set_title("carried by the busiest 10 % of I/O nodes", fontsize=9)
        below.set_ylim(bottom=0)
        below.set_ylabel("I/O nodes")
        below.set_title("that serve the busiest 1 % of compute nodes", fontsize=9)
        _time(below, period.start_s, period.end_s)
        legend(figure, axes)
        return figure

    return picture(
        plt,
        "busiest-io-nodes",
        "The busiest I/O nodes",
        "At every moment, by the mapping that is there and by others on the same traffic (figures 15c and 16c). The "
        "mean of intervals stands beside each name.",
        draw,
    )


def _totals(plt: Any, period: Period) -> Picture:
    def draw(plt: Any) -> Any:
        count = len(period.shares.mapped)
        figure, axes = plt.subplots(
            count,
            1,
            figsize=(9, 1.3 + 1.6 * count),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for colour, axis, (name, mapped) in zip(
            COLOURS, axes[:, 0], period.shares.mapped.items(), strict=False
        ):
            axis.bar(np.arange(len(mapped.bytes)), mapped.bytes / 1e12, 0.8, color=colour)
            axis.set_title(name, fontsize=9)
            axis.set_ylabel("TB")
        axes[-1, 0].set_xlabel("I/O node")
        return figure

    return picture(
        plt,
        "io-nodes",
        "Bytes of each I/O node",
        "Of the whole period (figures 7, 15a, 15b, 16a and 16b).",
        draw,
    )


def _moments(plt: Any, period: Period) -> Picture:
    shares = period.shares

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(1, 1, figsize=(9, 3.4), squeeze=False, layout="constrained")
        axis = axes[0, 0]
        every = {"1 % of nodes": shares.nodes, "20 % of cabinets": shares.cabinets}
        for colour, (name, values) in zip(COLOURS, every.items(), strict=False):
            if not np.isnan(values).all():
                when, mean = joined(shares.time_s, values)
                label = f"the busiest {name}: {_percent(shares.mean(values))}"
                axis.plot(when, 100 * mean, color=colour, linewidth=1.1, label=label)
        axis.set_ylim(0, 102)
        axis.set_ylabel("% of all bytes")
        _time(axis, period.start_s, period.end_s)
        legend(figure, axes)
        return figure

    return picture(
        plt,
        "busiest-nodes",
        "The busiest nodes and cabinets",
        "Their share of each interval's bytes (section 4.1, figure 8); the mean of intervals stands beside each name.",
        draw,
    )


def _jobs(plt: Any, period: Period, limits: Thresholds) -> Picture:
    many = [c for c in period.characters if c.nodes > 1]
    traffic = [c.unevenness for c in many if c.all_rank]
    standing = [
        c.cabinet_unevenness for c in many if c.cabinet_unevenness is not None and (c.cabinets or 0) > 1
    ]
    sizes = by_size(many)

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), squeeze=False, layout="constrained")
        left, middle, right = axes[0]
        _falling(left, traffic, limits.uneven, "jobs with all ranks' I/O, %", "NUD of their bytes on nodes")
        _falling(
            middle, standing, limits.uneven, "jobs in several cabinets, %", "NUD of their nodes on cabinets"
        )
        names = [str(size) for size in sizes]
        right.bar(names, [100 * (each.share or 0) for each in sizes.values()], 0.8, color=COLOURS[1])
        right.set_ylim(0, 102)
        right.set_ylabel("% in as few cabinets as can be")
        right.set_xlabel("nodes, up to")
        right.tick_params(axis="x", labelsize=7, rotation=60)
        return figure

    return picture(
        plt,
        "jobs",
        "How evenly jobs' bytes and nodes lie",
        "Jobs on several nodes (figures 2, 5 and 4). Above the dashed line, a distribution is uneven.",
        draw,
    )


def _applications(plt: Any, period: Period, limits: Thresholds) -> Picture:
    statistics = period.application_statistics
    degrees = {
        "data-intensive": statistics.consistency_intensive,
        "all ranks' I/O": statistics.consistency_all_rank,
        "low communication": statistics.consistency_low_communication,
    }

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), squeeze=False, layout="constrained")
        left, right = axes[0]
        for colour, (name, values) in zip(COLOURS, degrees.items(), strict=False):
            if values:
                left.plot(
                    _places(len(values)),
                    100 * np.array(values),
                    color=colour,
                    label=name,
                    drawstyle="steps-mid",
                )
        left.set_ylim(48, 101)
        left.set_xlabel("applications, %")
        left.set_ylabel("degree of consistency, %")
        _falling(
            right,
            statistics.divergence,
            limits.divergence,
            "applications, %",
            "divergence of their bytes on nodes",
        )
        legend(figure, axes)
        return figure

    return picture(
        plt,
        "applications",
        "Whether jobs of an application are alike",
        "Applications on several nodes with more than five jobs in the period (figures 10 and 11). Above the dashed "
        "line, the next job's bytes cannot be told from the last ones'.",
        draw,
    )


def joined(time_s: Seconds, values: Floats, points: int = POINTS) -> tuple[Floats, Floats]:
    """Means of neighbouring intervals, at most so many: (when, value). NaN is left out."""
    known = ~np.isnan(values)
    time_s, values = time_s[known], values[known]
    if len(values) <= points:
        return time_s.astype(np.float64), values
    span = float(time_s[-1] - time_s[0]) + 1
    at = ((time_s - time_s[0]) / span * points).astype(np.int64)
    counts = np.bincount(at, minlength=points)
    some = counts > 0
    when = np.bincount(at, time_s.astype(np.float64), points)[some] / counts[some]
    return when, np.bincount(at, values, points)[some] / counts[some]


def _falling(axis: Any, values: Sequence[float], threshold: float, below: str, beside: str) -> None:
    """From large to small, as the paper draws them."""
    if values:
        axis.plot(_places(len(values)), sorted(values, reverse=True), color=COLOURS[1], drawstyle="steps-mid")
    axis.axhline(threshold, color=COLOURS[0], linestyle="--", linewidth=1)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(below)
    axis.set_ylabel(beside)


def _places(count: int) -> Floats:
    return (np.arange(count, dtype=np.float64) + 0.5) * (100 / count)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _time(axis: Any, start_s: float, end_s: float) -> None:
    """Ticks at whole days or hours, UTC."""
    steps = (600, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, DAY_S, 2 * DAY_S, 7 * DAY_S, 28 * DAY_S)
    step = next((s for s in steps if (end_s - start_s) / s <= 9), steps[-1])
    ticks = np.arange(np.ceil(start_s / step) * step, end_s + 1, step)
    form = "%Y-%m-%d" if step >= DAY_S else "%m-%d %H:%M"
    axis.set_xticks(ticks, [datetime.fromtimestamp(t, UTC).strftime(form) for t in ticks])
    axis.tick_params(axis="x", labelsize=8)
    axis.set_xlim(start_s, end_s)
    axis.set_xlabel("UTC")
