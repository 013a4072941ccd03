"""The pictures of a study, each for a light and a dark page: bandwidth, OST cost, OSTs one by one, runs in a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from tarazu import drawing
from tarazu.drawing import Picture
from tarazu.sim.study.results import ScenarioRow
from tarazu.sim.study.scenario import Scenario
from tarazu.sim.study.statistics import MeanEstimate, estimate
from tarazu.sim.study.summary import Summary, axis_of, per_seed, summaries

COLOURS = ("#c0504d", "#8a8a8a", "#e0a030", "#1f78b4", "#33a02c", "#9467bd", "#17becf")
ORDER = ("lsa", "random", "tarazu-linear", "tarazu", "greedy", "round-robin")
"""Policies have the same colours in all studies."""
MARKERS = "osv^D<>"
MOST_COMBINATIONS = 6
"""Of swept values beside those of the axis: so many of each picture are drawn."""
LISTED_OSTS = 100
"""Up to so many OSTs stand in order of their index; more are drawn from the fullest to the emptiest."""


def pictures(rows: Sequence[ScenarioRow], scenario: Scenario) -> tuple[list[Picture], list[str]]:
    """All that these rows allow, and what was left out. Raises Unavailable without matplotlib."""
    pyplot = drawing.pyplot()
    whole = [row for row in rows if not row.error]
    if not whole:
        return [], ["no case has a result"]
    axis = axis_of(rows)
    left_out = []
    combinations = list(dict.fromkeys(_others(row, axis) for row in whole))
    if len(combinations) > MOST_COMBINATIONS:
        left_out.append(
            f"pictures of {len(combinations) - MOST_COMBINATIONS} more combinations of swept values"
        )
    plots = []
    for number, others in enumerate(combinations[:MOST_COMBINATIONS]):
        chosen = [row for row in whole if _others(row, axis) == others]
        suffix = f"-{number + 1}" if len(combinations) > 1 else ""
        of = f" ({', '.join(f'{key} = {value}' for key, value in others)})" if others else ""
        plots += _of_combination(pyplot, chosen, scenario, axis, suffix, of)
    return plots, left_out


def _of_combination(
    pyplot: Any, rows: Sequence[ScenarioRow], scenario: Scenario, axis: str, suffix: str, of: str
) -> list[Picture]:
    lines = summaries(rows)
    plots = [
        drawing.picture(
            pyplot,
            f"bandwidth{suffix}",
            f"Bandwidth{of}",
            "Mean over seeds with 95 % intervals, of all jobs that are waited for; dotted: what no placement can "
            "exceed (only drawn where it is near).",
            lambda plt: _bandwidth(plt, lines, axis),
        ),
        drawing.picture(
            pyplot,
            f"ost-cost{suffix}",
            f"OST cost{of}",
            "Max / mean of the new bytes over the OSTs (paper, equation 4): 1 is even. Mean over seeds with 95 % "
            "intervals; dashes: no placement can be lower.",
            lambda plt: _costs(plt, lines, axis),
        ),
    ]
    last = [
        row
        for row in rows
        if row.sweep == rows[-1].sweep and row.seed == rows[0].seed and row.run == row.runs
    ]
    if all(row.ost_fill for row in last):
        at = f", {axis} = {last[-1].sweep[axis]}" if axis else ""
        plots.append(
            drawing.picture(
                pyplot,
                f"osts{suffix}",
                f"OSTs one by one{of}",
                f"Seed {last[0].seed}{at}{', last run' if last[0].runs > 1 else ''}: how full each OST is at the end, "
                "and when it had moved its last byte.",
                lambda plt: _osts(plt, last),
            )
        )
    if rows[0].runs > 1:
        plots.append(
            drawing.picture(
                pyplot,
                f"runs{suffix}",
                f"Runs in a row{of}",
                "Seconds that each run took, mean over seeds with 95 % intervals; shaded: an OST is slow or lost.",
                lambda plt: _runs(plt, [row for row in rows if row.sweep == rows[-1].sweep], scenario),
            )
        )
    return plots


def _others(row: ScenarioRow, axis: str) -> tuple[tuple[str, object], ...]:
    return tuple((key, value) for key, value in row.sweep.items() if key != axis)


def _colour(policy: str) -> str:
    return COLOURS[ORDER.index(policy) if policy in ORDER else -1]


def _marker(policy: str) -> str:
    return MARKERS[ORDER.index(policy) if policy in ORDER else -1]


def _bandwidth(plt: Any, lines: Sequence[Summary], axis: str) -> Any:
    layouts = list(dict.fromkeys(line.layout for line in lines))
    kinds = [k for k in ("read", "write") if any(getattr(line, k).mean > 0 for line in lines)] or ["write"]
    figure, axes = drawing.panels(plt, len(kinds), len(layouts))
    for kind, panels in zip(kinds, axes):
        for layout, panel in zip(layouts, panels):
            chosen = [line for line in lines if line.layout == layout]
            _series(panel, chosen, axis, attrgetter(kind), 1e9)
            _limit(panel, chosen, axis, f"{kind}_limit")
            panel.set_title(f"{kind}, {layout}", fontsize=10)
            panel.set_ylim(bottom=0)
        panels[0].set_ylabel("GB/s")
    drawing.legend(figure, axes)
    return figure


def _limit(panel: Any, lines: Sequence[Summary], axis: str, name: str) -> None:
    highest = panel.get_ylim()[1]
    limits = {dict(line.sweep).get(axis, 0): getattr(line, name) / 1e9 for line in lines}
    near = {x: y for x, y in limits.items() if y <= 1.5 * highest}
    if near and axis:
        panel.plot(list(near), list(near.values()), ":", color="#888888", label="limit")
    elif near:
        panel.axhline(min(near.values()), linestyle=":", color="#888888", label="limit")


def _series(
    panel: Any, lines: Sequence[Summary], axis: str, value: Callable[[Summary], MeanEstimate], unit: float
) -> None:
    """A line for each policy over the axis, or a bar for each where nothing is swept."""
    policies = list(dict.fromkeys(line.policy for line in lines))
    for place, policy in enumerate(policies):
        chosen = [line for line in lines if line.policy == policy]
        means = [value(line).mean / unit for line in chosen]
        halves = [0.0 if math.isnan(value(line).half) else value(line).half / unit for line in chosen]
        if not axis:
            panel.bar(
                place,
                means[0],
                yerr=halves[0],
                color=_colour(policy),
                label=policy,
                capsize=3,
                ecolor="#888888",
            )
            continue
        x = [dict(line.sweep)[axis] for line in chosen]
        panel.errorbar(
            x,
            means,
            yerr=halves,
            color=_colour(policy),
            marker=_marker(policy),
            markersize=4,
            capsize=3,
            label=policy,
        )
    if axis:
        _x_axis(panel, sorted({float(dict(line.sweep)[axis]) for line in lines}), axis)
    else:
        panel.set_xticks(range(len(policies)), policies, rotation=20)


def _x_axis(panel: Any, values: Sequence[float], axis: str) -> None:
    if values[0] > 0 and values[-1] / values[0] >= 8:
        panel.set_xscale("log")
    panel.set_xticks(values, [f"{value:,.10g}" for value in values], rotation=35)
    panel.minorticks_off()
    panel.set_xlabel("OSTs" if axis == "cluster.osts" else axis)


def _costs(plt: Any, lines: Sequence[Summary], axis: str) -> Any:
    layouts = list(dict.fromkeys(line.layout for line in lines))
    policies = list(dict.fromkeys(line.policy for line in lines))
    figure, axes = drawing.panels(plt, 1, len(layouts))
    width = 0.8 / len(policies)
    for layout, panel in zip(layouts, axes[0]):
        chosen = [line for line in lines if line.layout == layout]
        points = list(dict.fromkeys(dict(line.sweep).get(axis, "") for line in chosen))
        for number, policy in enumerate(policies):
            of = [line for line in chosen if line.policy == policy]
            at = [points.index(dict(line.sweep).get(axis, "")) + (number + 0.5) * width - 0.4 for line in of]
            halves = [0.0 if math.isnan(line.ost_cost.half) else line.ost_cost.half for line in of]
            means = [line.ost_cost.mean for line in of]
            panel.bar(
                at,
                means,
                width,
                yerr=halves,
                color=_colour(policy),
                label=policy,
                capsize=2,
                ecolor="#888888",
            )
        for place, point in enumerate(points):
            bounds = [line.ost_cost_bound for line in chosen if dict(line.sweep).get(axis, "") == point]
            ends = [place - 0.42, place + 0.42]
            panel.plot(
                ends, [max(bounds)] * 2, "--", linewidth=1.4, color=plt.rcParams["text.color"], label="bound"
            )
        names = [f"{point:,.10g}" if isinstance(point, (int, float)) else str(point) for point in points]
        panel.set_xticks(range(len(points)), names, rotation=35)
        panel.set_xlabel("OSTs" if axis == "cluster.osts" else axis)
        panel.set_title(layout, fontsize=10)
    axes[0][0].set_ylabel("OST cost")
    drawing.legend(figure, axes)
    return figure


def _osts(plt: Any, rows: Sequence[ScenarioRow]) -> Any:
    layouts = list(dict.fromkeys(row.layout for row in rows))
    figure, axes = drawing.panels(plt, 2, len(layouts))
    ranked = rows[0].osts > LISTED_OSTS
    for column, layout in enumerate(layouts):
        for row in (row for row in rows if row.layout == layout):
            shown: tuple[tuple[float, ...], ...] = (tuple(100 * f for f in row.ost_fill), row.ost_done_s)
            for panel, values in zip((axes[0][column], axes[1][column]), shown):
                drawn = sorted(values, reverse=True) if ranked else values
                style = "default" if ranked else "steps-mid"
                panel.plot(drawn, color=_colour(row.policy), linewidth=1.2, drawstyle=style, label=row.policy)
        axes[0][column].set_title(layout, fontsize=10)
        axes[1][column].set_xlabel("OSTs, highest first" if ranked else "OST")
    for panel in axes.flat:
        panel.set_ylim(bottom=0)
    axes[0][0].set_ylabel("in use, %")
    axes[1][0].set_ylabel("done after, s")
    drawing.legend(figure, axes)
    return figure


def _runs(plt: Any, rows: Sequence[ScenarioRow], scenario: Scenario) -> Any:
    layouts = list(dict.fromkeys(row.layout for row in rows))
    policies = list(dict.fromkeys(row.policy for row in rows))
    figure, axes = drawing.panels(plt, 1, len(layouts), width=5.5)
    for layout, panel in zip(layouts, axes[0]):
        for policy in policies:
            chosen = [row for row in rows if row.layout == layout and row.policy == policy]
            runs = sorted({row.run for row in chosen})
            estimates = [
                estimate(
                    list(per_seed([r for r in chosen if r.run == run], lambda r: r.completion_s).values())
                )
                for run in runs
            ]
            halves = [0.0 if math.isnan(e.half) else e.half for e in estimates]
            means = [e.mean for e in estimates]
            colour = _colour(policy)
            panel.errorbar(
                runs, means, yerr=halves, color=colour, marker=_marker(policy), capsize=3, label=policy
            )
        first = [r for r in rows if r.layout == layout and r.policy == policies[0] and r.seed == rows[0].seed]
        for failure in scenario.failures:
            hit = [
                r.run
                for r in first
                if r.start_s < failure.until_s and r.start_s + r.completion_s > failure.at_s
            ]
            if hit:
                panel.axvspan(min(hit) - 0.5, max(hit) + 0.5, color="#c0504d", alpha=0.12, linewidth=0)
        panel.set_title(layout, fontsize=10)
        panel.set_xlabel("run")
        panel.set_ylim(bottom=0)
    axes[0][0].set_ylabel("completion, s")
    drawing.legend(figure, axes)
    return figure
