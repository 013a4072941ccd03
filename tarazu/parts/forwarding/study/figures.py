"""Paper A's figures 5 to 9, 11 to 13 and, for OSTs, 14 to 18, as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.study.cases import OURS
from tarazu.parts.forwarding.study.summary import (
    Band,
    ForwardingSummary,
    Metric,
    Series,
    confidence,
    idletime,
    percentiles,
    rho_con,
    rho_io,
    slowdown,
    spread,
)

ALLOCATORS = ("random", "static", "bba", "nsysa", "ta")
COMPARED = ("static-gnc", "bba-gnc", "nsysa-gnc", "ta-gnc", "mckp", OURS)
"""Allocations with GNC (section 6.1.1), what does both at once, and ours; Random is far above all of them."""
INFORMED = ("ta-gnc", "bba-gnc", "bba-gc", OURS)
"""Of figure 11."""
LOAD = "I/O-load(π_sys)"


class Line(msgspec.Struct, frozen=True):
    label: str
    points: tuple[tuple[float | str, Band], ...]
    """By level, or by name where there is but one level."""


class Panel(msgspec.Struct, frozen=True):
    title: str
    below: str
    beside: str
    lines: tuple[Line, ...]


class Figure(msgspec.Struct, frozen=True):
    number: int
    """In the paper."""
    title: str
    band: str
    """What the area around a mean is."""
    panels: tuple[Panel, ...]
    note: str = ""


TENTH = "10th to 90th percentile of the sets"
SURE = "95 % interval of the mean"


def figures(of: ForwardingSummary) -> list[Figure]:
    """All that these rows allow, in the order of their numbers."""
    all_figures: list[Figure] = []
    for kind in of.kinds:
        numbers = (5, 6, 7, 8, 9) if kind == "io-node" else (14, 15, 16, 17, 18)
        makers = (_placements, _spreads, _spread_by_load, _slowdowns, _idletimes)
        all_figures += [maker(of, kind, number) for maker, number in zip(makers, numbers)]
        if kind == "io-node":
            all_figures.append(_informed(of, kind))
        else:
            all_figures.append(_both(of, kind))
    if len(of.kinds) == 2:
        all_figures.append(_difference(of))
    return sorted(all_figures, key=lambda figure: figure.number)


def _line(label: str, series: Series) -> Line:
    return Line(label, tuple(series.items()))


def _percent(ratios: dict[float, list[float]]) -> Series:
    return {level: percentiles([100 * (ratio - 1) for ratio in values]) for level, values in ratios.items()}


def _of(kind: Kind) -> str:
    return "I/O nodes" if kind == "io-node" else "OSTs"


def _placements(of: ForwardingSummary, kind: Kind, number: int) -> Figure:
    def panel(placer: str) -> Panel:
        lines = tuple(
            _line(
                allocator,
                _percent(
                    of.ratios(
                        kind, (f"{allocator}-{placer}", "truth"), (f"{allocator}-gc", "truth"), slowdown
                    )
                ),
            )
            for allocator in ALLOCATORS
        )
        return Panel(
            f"{placer.upper() if placer != 'randp' else 'RandP'} beside GC",
            LOAD,
            "Mean-I/O-SlowDown, % more",
            lines,
        )

    return Figure(
        number,
        f"Placement: Mean-I/O-SlowDown beside that of GC, {_of(kind)}",
        TENTH,
        (panel("gnc"), panel("randp")),
    )


def _spreads(of: ForwardingSummary, kind: Kind, number: int) -> Figure:
    level = min(of.levels, key=lambda level: abs(level - 0.5))
    lines = tuple(
        Line(
            placer,
            tuple(
                (allocator, percentiles(of.values(kind, f"{allocator}-{placer}", spread, level)))
                for allocator in ALLOCATORS
            ),
        )
        for placer in ("gc", "gnc", "randp")
    )
    title = f"I/O-spread at {LOAD} = {level:g} ± 0.05, {_of(kind)}"
    return Figure(number, title, TENTH, (Panel("", "allocation", "I/O-spread", lines),))


def _spread_by_load(of: ForwardingSummary, kind: Kind, number: int) -> Figure:
    lines = tuple(
        _line(placer, of.series(kind, f"bba-{placer}", spread, band=confidence))
        for placer in ("gc", "gnc", "randp")
    )
    return Figure(
        number,
        f"I/O-spread of placements with BBA, {_of(kind)}",
        SURE,
        (Panel("", LOAD, "I/O-spread", lines),),
    )


def _panel(of: ForwardingSummary, kind: Kind, title: str, metric: Metric, policies: Sequence[str]) -> Panel:
    shown = [policy for policy in policies if of.has(kind, policy)]
    return Panel(
        title, LOAD, title, tuple(_line(policy, of.series(kind, policy, metric)) for policy in shown)
    )


def _slowdowns(of: ForwardingSummary, kind: Kind, number: int) -> Figure:
    panels = tuple(
        _panel(of, kind, title, metric, COMPARED)
        for title, metric in (("Mean-I/O-SlowDown", slowdown), ("ρ^io", rho_io), ("ρ^con", rho_con))
    )
    return Figure(number, f"Mean-I/O-SlowDown and its two parts, {_of(kind)}", TENTH, panels)


def _idletimes(of: ForwardingSummary, kind: Kind, number: int) -> Figure:
    return Figure(
        number,
        f"Machine-Idletime, {_of(kind)}",
        TENTH,
        (_panel(of, kind, "Machine-Idletime", idletime, COMPARED),),
        "Lower is better; the axis does not start at 0.",
    )


def _informed(of: ForwardingSummary, kind: Kind) -> Figure:
    shown = [policy for policy in INFORMED if of.has(kind, policy, "profile")]
    cost = tuple(
        _line(policy, _percent(of.ratios(kind, (policy, "profile"), (policy, "truth"), slowdown)))
        for policy in shown
    )
    idle = tuple(_line(policy, of.series(kind, policy, idletime, told="profile")) for policy in shown)
    return Figure(
        11,
        "What it costs to know an application's family alone",
        TENTH,
        (
            Panel("beside the same policy with curves", LOAD, "Mean-I/O-SlowDown, % more", cost),
            Panel("with families alone", LOAD, "Machine-Idletime", idle),
        ),
    )


def _both(of: ForwardingSummary, kind: Kind) -> Figure:
    return Figure(
        12,
        "OSTs: users and machine",
        TENTH,
        (
            _panel(of, kind, "Mean-I/O-SlowDown", slowdown, [p for p in COMPARED if p != "mckp"]),
            _panel(of, kind, "Machine-Idletime", idletime, [p for p in COMPARED if p != "mckp"]),
        ),
    )


def _difference(of: ForwardingSummary) -> Figure:
    def panel(title: str, metric: Metric) -> Panel:
        shown = [p for p in COMPARED if p != "mckp" and of.has("ost", p)]
        return Panel(
            title,
            LOAD,
            f"{title}, % more than for I/O nodes",
            tuple(_line(policy, difference(of, policy, metric)) for policy in shown),
        )

    return Figure(
        13,
        "OSTs beside I/O nodes",
        SURE,
        (panel("Mean-I/O-SlowDown", slowdown), panel("Machine-Idletime", idletime)),
        "Sets of one kind have no partner of the other: the interval is that of a ratio of means.",
    )


def difference(of: ForwardingSummary, policy: str, metric: Metric) -> Series:
    """By how many per cent more for OSTs than for I/O nodes: ratio of means with its 95 % interval (delta method)."""
    bands = {}
    for level in of.levels:
        a, b = (np.array(of.values(kind, policy, metric, level)) for kind in ("ost", "io-node"))
        ratio = float(a.mean() / b.mean())
        parts = [np.var(x, ddof=1) / len(x) / x.mean() ** 2 if len(x) > 1 else 0.0 for x in (a, b)]
        half = 1.96 * ratio * float(np.sqrt(sum(parts)))
        bands[level] = Band(100 * (ratio - 1), 100 * (ratio - half - 1), 100 * (ratio + half - 1), len(a))
    return bands


def table(panel: Panel, number: Callable[[Band], str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and lines: what is below on top, a line for each label."""
    columns = list(dict.fromkeys(x for line in panel.lines for x, _ in line.points))
    header = (panel.title or panel.beside, *(f"{x:g}" if isinstance(x, float) else x for x in columns))
    return header, [(line.label, *(number(dict(line.points)[x]) for x in columns)) for line in panel.lines]
