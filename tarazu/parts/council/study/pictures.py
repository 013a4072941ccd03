"""Pictures of the evaluations: online what figures 6, 7, 8 and 10 of the paper show, offline figures 4 and 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import linear_regression
from typing import Any

import numpy as np

from tarazu import drawing
from tarazu.parts.council.study import learners
from tarazu.parts.council.study.evaluate import Compared, OnlineEvaluation
from tarazu.parts.council.study.offline import BIN, Floats
from tarazu.parts.council.study.online import OURS, PAPER, Ran
from tarazu.parts.council.study.requests.situation import TABLE_III, WINDOWS

OUR_COLOUR, PAPERS, BEST, WORST, OTHER = "#4c8bd6", "#d08a2e", "#3f9b57", "#e0524a", "#8a939e"
COLOURS = {PAPER.name: PAPERS, OURS.name: OUR_COLOUR}
SHOWN_S = 480
"""Of the windows: at the beginning, and at the end."""
DASHES = (0, (4, 3))


def online_picture(found: OnlineEvaluation) -> str:
    """SVG. Raises Unavailable without matplotlib."""
    title = "Online: times of runs, windows and estimates while the council learns"
    return drawing.svg(drawing.pyplot(), title, lambda plt: _applications(plt, found))


def _applications(plt: Any, found: OnlineEvaluation) -> Any:
    names = list(dict.fromkeys(phase.application for phase in found.phases))
    ours = [ran for ran in found.ran if ran.case.application == "F" and ran.case.manner == OURS][:1]
    lines = len(names) + 2 * len(ours)
    figure = plt.figure(figsize=(9, 2.1 * lines + 0.4), layout="constrained")
    rows = iter(figure.subfigures(lines, 1, squeeze=False).flat)
    for name in names:
        phases = [phase for phase in found.phases if phase.application == name]
        row = next(rows)
        axes = row.subplots(1, len(phases), squeeze=False)
        for axis, phase in zip(axes.flat, phases, strict=True):
            _times(axis, phase)
        if name == names[-1]:
            drawing.legend(row, axes)
    for ran in ours:
        _windows(next(rows).subplots(1, 2, sharey=True), ran)
        _values(next(rows).subplots(1, 2), ran)
    return figure


def _times(axis: Any, phase: Compared) -> None:
    """As figures 6 and 10: each run, and the straight line through them."""
    for name, colour in COLOURS.items():
        if name in phase.times_s:
            times = phase.times_s[name]
            runs = range(1, len(times) + 1)
            axis.plot(runs, times, ".", color=colour, alpha=0.75, markersize=4)
            axis.plot([1, len(times)], trend(times), color=colour, linewidth=2, label=name)
    for window, colour, label in ((phase.best, BEST, "best"), (phase.worst, WORST, "worst")):
        _level(axis, phase.alone_s[window], colour, WINDOWS[window], f"{label} window alone")
    axis.set_title(f"{phase.application}, {phase.phase}: seconds", fontsize=9)
    axis.set_xlabel("run")


def trend(values: Sequence[float]) -> tuple[float, float]:
    """First and last value of the straight line through them (least squares)."""
    if len(values) < 2:
        return values[0], values[0]
    slope, begin = linear_regression(range(len(values)), values)
    return begin, begin + slope * (len(values) - 1)


def _level(axis: Any, value: float, colour: str, words: str, label: str) -> None:
    """A dashed line from side to side."""
    axis.axhline(value, color=colour, linestyle=DASHES, linewidth=1.3, label=label)
    axis.annotate(
        words,
        (1, value),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        color=colour,
        fontsize=8,
    )


def _windows(axes: Any, ran: Ran) -> None:
    """As figure 7."""
    end = ran.steps[-1].second
    spans = (("first", 0.0, min(SHOWN_S, end)), ("last", max(0.0, end - SHOWN_S), end))
    for axis, (which, begin, until) in zip(axes, spans, strict=True):
        steps = [step for step in ran.steps if begin < step.second <= until]
        for begins in ran.begins_s:
            for at in begins:
                if begin < at < until:
                    axis.axvline(at, color=OTHER, linewidth=0.7, alpha=0.6)
        seconds = [max(begin, step.second - 1) for step in steps]
        axis.step(seconds, [step.window for step in steps], color=OUR_COLOUR, linewidth=1.2, where="post")
        axis.set_yticks(range(len(WINDOWS)), WINDOWS)
        axis.set_title(f"Windows, ours: {which} {until - begin:.0f} s", fontsize=9)
        axis.set_xlabel("s")


def _values(axes: Any, ran: Ran) -> None:
    """As figure 8: what is believed at the end, with its interval."""
    for axis, operation in zip(axes, ("write", "read"), strict=True):
        rows = [row for row in ran.learned if row["pattern"].startswith(operation)]
        axis.set_visible(bool(rows))
        for place, row in enumerate(rows):
            if row["seen"]:
                colour = BEST if row["best"] else OTHER
                rate = row["bytes_per_s"] / 1e6
                high = rate if row["high"] is None else row["high"] / 1e6
                axis.vlines(place, row["low"] / 1e6, high, color=colour, linewidth=3, alpha=0.6)
                axis.plot(place, rate, "o", color=colour)
        axis.set_xticks(range(len(rows)), [str(row["value"]) for row in rows])
        axis.set_ylim(bottom=0)
        axis.set_title(f"Believed at the end, ours, {operation}: MB/s of a node", fontsize=9)


SHADES = ("#e8c48f", "#dba653", "#c57a1c", "#8a5210")
"""The paper's, the darker the larger ε is."""
LETTERS = ("#4c8bd6", "#d08a2e", "#3f9b57", "#e0524a", "#8a6fd1", "#8a939e")
"""Of the six patterns."""


def offline_picture(alone: Mapping[str, Floats], mixed: Mapping[str, Floats]) -> str:
    """SVG: above figure 4, below figure 5; learner → (6, bins) precision. Raises Unavailable without matplotlib."""
    title = "Offline: precision in bins of ten observations, each pattern alone and six in random turns"
    return drawing.svg(drawing.pyplot(), title, lambda plt: _draw_offline(plt, alone, mixed))


def _draw_offline(plt: Any, alone: Mapping[str, Floats], mixed: Mapping[str, Floats]) -> Any:
    figure = plt.figure(figsize=(9, 6.6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(2, 1.1))
    axes = above.subplots(2, 3, sharey=True)
    for place, (axis, letter) in enumerate(zip(axes.flat, TABLE_III, strict=True)):
        lines = {
            name if name == learners.OURS else f"the paper's, {name}": (
                values[place],
                OUR_COLOUR if name == learners.OURS else SHADES[number % len(SHADES)],
            )
            for number, (name, values) in enumerate(alone.items())
        }
        _panel(axis, f"{letter}: precision", lines)
    drawing.legend(above, axes)
    axes = below.subplots(1, 2, sharey=True)
    for axis, name in zip(axes, (learners.PAPER, learners.OURS), strict=True):
        lines = {letter: (mixed[name][n], LETTERS[n]) for n, letter in enumerate(TABLE_III)}
        _panel(axis, f"Six patterns in random turns: {name}", lines)
    drawing.legend(below, axes)
    return figure


def _panel(axis: Any, title: str, lines: Mapping[str, tuple[Floats, str]]) -> None:
    for label, (values, colour) in lines.items():
        axis.plot(BIN * np.arange(1, len(values) + 1), values, color=colour, label=label)
    axis.set_title(title, fontsize=9)
    axis.set_ylim(0, 1.02)
    axis.set_xlabel("observations of it")
