"""Paper A's figures 5 to 9, 11 to 13 and, for OSTs, 14 to 18, as PNG: a line for each policy, an area around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tarazu import drawing
from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.study.cases import OURS
from tarazu.parts.forwarding.study.summary import (
    METRICS,
    Band,
    ForwardingSummary,
    Metric,
    confidence,
    idletime,
    percentiles,
    rho_con,
    rho_io,
    slowdown,
    spread,
)

ALLOCATORS = ("random", "static", "bba", "nsysa", "ta")
PLACERS = ("gc", "gnc", "randp")
INFORMED = ("ta-gnc", "bba-gnc", "bba-gc", OURS)
"""Of figure 11."""
COMPARED = ("static-gnc", "bba-gnc", "nsysa-gnc", "ta-gnc", OURS)
"""Allocations with GNC (section 6.1.1), and ours; Random is far above all of them."""
LOAD = "I/O-load(π_sys)"
TENTH = "10th to 90th percentile of the sets"
SURE = "95 % interval of the mean"
COLOURS = {
    "random": "#8a8a8a",
    "static": "#e0a030",
    "bba": "#c0504d",
    "nsysa": "#33a02c",
    "ta": "#1f78b4",
    "mckp": "#9467bd",
    "joint": "#17becf",
    "gc": "#1f78b4",
    "gnc": "#e0a030",
    "randp": "#8a8a8a",
}
MARKERS = dict(zip(COLOURS, "osv^D<>oDs"))
ABOVE = 3.0
"""A line that lies so many times above all others is told, not shown: else nothing would be seen of those."""

Lines = Mapping[str, Mapping[Any, Band]]
"""By label: what is at each level, or at each name where there is but one level."""


class Panel(NamedTuple):
    beside: str
    lines: Lines
    title: str = ""
    below: str = LOAD


class Figure(NamedTuple):
    number: int
    """In the paper."""
    title: str
    band: str
    """What the area around a mean is."""
    panels: Sequence[Panel]


def draw(of: ForwardingSummary, folder: Path) -> None:
    """`figure-NN.png` of each that these rows allow. Raises Unavailable without matplotlib."""
    plt = drawing.pyplot()
    for figure in figures(of):
        drawing.saved(plt, _drawn(plt, figure), folder / f"figure-{figure.number:02d}.png")


def figures(of: ForwardingSummary) -> Iterator[Figure]:
    makers = (_placements, _spreads, _spread_by_load, _slowdowns, _idletimes)
    for kind in of.kinds:
        first, name = (5, "I/O nodes") if kind == "io-node" else (14, "OSTs")
        for number, make in enumerate(makers, first):
            title, band, panels = make(of, kind)
            yield Figure(number, f"{title}, {name}", band, panels)
    if "io-node" in of.kinds:
        yield Figure(11, "What it costs to know an application's family alone", TENTH, _informed(of))
    if "ost" in of.kinds:
        yield Figure(12, "OSTs: users and machine", TENTH, _users_and_machine(_by_load(of, "ost", COMPARED)))
    if len(of.kinds) == 2:
        more = _users_and_machine(
            lambda metric: {p: _difference(of, p, metric) for p in COMPARED}, ", % more"
        )
        yield Figure(13, "OSTs beside I/O nodes", SURE, more)


Made = tuple[str, str, Sequence[Panel]]
"""Title, band, panels."""
LinesOf = Callable[[Metric], Lines]


def _by_load(of: ForwardingSummary, kind: Kind, policies: Sequence[str]) -> LinesOf:
    return lambda metric: {policy: of.series(kind, policy, metric) for policy in policies}


def _users_and_machine(lines: LinesOf, unit: str = "") -> list[Panel]:
    return [Panel(f"{name}{unit}", lines(metric)) for name, metric in METRICS.items()]


def _more(
    of: ForwardingSummary, kind: Kind, ours: tuple[str, Any], theirs: tuple[str, Any]
) -> dict[float, Band]:
    """By how many per cent the slowdown is higher, set by set."""
    ratios = of.ratios(kind, ours, theirs, slowdown)
    return {level: percentiles([100 * (ratio - 1) for ratio in each]) for level, each in ratios.items()}


def _difference(of: ForwardingSummary, policy: str, metric: Metric) -> dict[float, Band]:
    """By how many per cent more for OSTs than for I/O nodes: ratio of means with its 95 % interval (delta method), for
    sets of one kind have no partner of the other.
    """
    bands = {}
    for level in of.levels:
        a, b = (np.array(of.values(kind, policy, metric, level)) for kind in ("ost", "io-node"))
        ratio = float(a.mean() / b.mean())
        parts = [np.var(x, ddof=1) / len(x) / x.mean() ** 2 if len(x) > 1 else 0.0 for x in (a, b)]
        half = 1.96 * ratio * float(np.sqrt(sum(parts)))
        bands[level] = Band(100 * (ratio - 1), 100 * (ratio - half - 1), 100 * (ratio + half - 1))
    return bands


def _placements(of: ForwardingSummary, kind: Kind) -> Made:
    panels = [
        Panel(
            "Mean-I/O-SlowDown, % more",
            {a: _more(of, kind, (f"{a}-{placer}", "truth"), (f"{a}-gc", "truth")) for a in ALLOCATORS},
            f"{placer} beside gc",
        )
        for placer in ("gnc", "randp")
    ]
    return "Placement: Mean-I/O-SlowDown beside that of GC", TENTH, panels


def _spreads(of: ForwardingSummary, kind: Kind) -> Made:
    level = min(of.levels, key=lambda level: abs(level - 0.5))
    lines = {
        placer: {a: percentiles(of.values(kind, f"{a}-{placer}", spread, level)) for a in ALLOCATORS}
        for placer in PLACERS
    }
    return f"I/O-spread at {LOAD} = {level:g} ± 0.05", TENTH, [Panel("I/O-spread", lines, below="allocation")]


def _spread_by_load(of: ForwardingSummary, kind: Kind) -> Made:
    lines = {placer: of.series(kind, f"bba-{placer}", spread, band=confidence) for placer in PLACERS}
    return "I/O-spread of placements with BBA", SURE, [Panel("I/O-spread", lines)]


def _slowdowns(of: ForwardingSummary, kind: Kind) -> Made:
    lines = _by_load(of, kind, (*COMPARED, "mckp"))
    metrics = {"Mean-I/O-SlowDown": slowdown, "ρ^io": rho_io, "ρ^con": rho_con}
    panels = [Panel(name, lines(metric)) for name, metric in metrics.items()]
    return "Mean-I/O-SlowDown and its two parts", TENTH, panels


def _idletimes(of: ForwardingSummary, kind: Kind) -> Made:
    lines = _by_load(of, kind, (*COMPARED, "mckp"))
    return "Machine-Idletime", TENTH, [Panel("Machine-Idletime", lines(idletime))]


def _informed(of: ForwardingSummary) -> list[Panel]:
    cost = {policy: _more(of, "io-node", (policy, "profile"), (policy, "truth")) for policy in INFORMED}
    idle = {policy: of.series("io-node", policy, idletime, told="profile") for policy in INFORMED}
    return [
        Panel("Mean-I/O-SlowDown, % more", cost, "beside the same policy with curves"),
        Panel("Machine-Idletime", idle, "with families alone"),
    ]


def _drawn(plt: Any, figure: Figure) -> Any:
    made, axes = drawing.panels(plt, 1, len(figure.panels), sharey=False)
    for axis, panel in zip(axes[0], figure.panels):
        for place, (label, points) in enumerate(panel.lines.items()):
            _line(axis, label, points, place - (len(panel.lines) - 1) / 2)
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel(panel.below)
        axis.set_ylabel(panel.beside)
        _cut(axis, panel.lines)
    made.suptitle(f"Figure {figure.number}: {figure.title}\nmean; around it: {figure.band}", fontsize=10)
    drawing.legend(made, axes)
    return made


def _line(axis: Any, label: str, points: Mapping[Any, Band], place: float) -> None:
    first = label.partition("-")[0]
    look = {"color": COLOURS[first], "marker": MARKERS[first], "label": label}
    bands = points.values()
    means, low, high = ([getattr(band, name) for band in bands] for name in ("mean", "low", "high"))
    if any(isinstance(x, str) for x in points):
        at = [number + 0.2 * place for number in range(len(means))]
        around = [[m - b for m, b in zip(means, low)], [b - m for m, b in zip(means, high)]]
        axis.errorbar(at, means, yerr=around, linestyle="none", capsize=3, **look)
        axis.set_xticks(range(len(means)), list(points))
        return
    axis.plot(list(points), means, "--" if label.endswith("-gc") else "-", markersize=4, **look)
    axis.fill_between(list(points), low, high, color=COLOURS[first], alpha=0.15, linewidth=0)


def _cut(axis: Any, lines: Lines) -> None:
    *others, last = sorted(lines, key=lambda label: max(band.mean for band in lines[label].values()))
    means = [band.mean for band in lines[last].values()]
    top = max(band.high for label in others for band in lines[label].values())
    low = min(band.low for label in others for band in lines[label].values())
    if max(means) > ABOVE * top > 0:
        axis.set_ylim(low - 0.05 * (top - low), top + 0.15 * (top - low))
        text = f"{last}: {min(means):.3g} to {max(means):.3g}"
        axis.text(0.98, 0.98, text, ha="right", va="top", fontsize=8, transform=axis.transAxes)
