"""The figures of the study drawn: a panel each, a line and the area around it for each policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tarazu import drawing
from tarazu.parts.forwarding.study.figures import Figure, Line, Panel

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


def pictures(figures: Iterable[Figure]) -> list[drawing.Picture]:
    """Each figure for a light and a dark page. Raises Unavailable without matplotlib."""
    plt = drawing.pyplot()
    return [
        drawing.picture(
            plt,
            name_of(figure),
            title_of(figure),
            f"Mean; around it: {figure.band}. {figure.note}".strip(),
            lambda plt, figure=figure: _draw(plt, figure),  # type: ignore[misc]
        )
        for figure in figures
    ]


def name_of(figure: Figure) -> str:
    """Of its file."""
    return f"figure-{figure.number:02d}"


def title_of(figure: Figure) -> str:
    """With its number in the paper."""
    return f"Figure {figure.number}: {figure.title}"


def _draw(plt: Any, figure: Figure) -> Any:
    made, axes = drawing.panels(plt, 1, len(figure.panels), sharey=False)
    for axis, panel in zip(axes[0], figure.panels):
        for place, line in enumerate(panel.lines):
            _line(axis, line, place - (len(panel.lines) - 1) / 2)
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel(panel.below)
        axis.set_ylabel(panel.beside)
        _cut(axis, panel)
    drawing.legend(made, axes)
    return made


def _line(axis: Any, line: Line, place: float) -> None:
    first = line.label.partition("-")[0]
    colour, marker = COLOURS.get(first, "#888888"), MARKERS.get(first, "o")
    style = "--" if line.label.endswith("-gc") else "-"
    bands = [band for _, band in line.points]
    means = [band.mean for band in bands]
    if any(isinstance(x, str) for x, _ in line.points):
        at = [number + 0.2 * place for number in range(len(bands))]
        around = [[b.mean - b.low for b in bands], [b.high - b.mean for b in bands]]
        axis.errorbar(at, means, yerr=around, fmt=marker, color=colour, capsize=3, label=line.label)
        axis.set_xticks(range(len(bands)), [str(x) for x, _ in line.points])
        return
    levels = [x for x, _ in line.points]
    axis.plot(levels, means, style, color=colour, marker=marker, markersize=4, label=line.label)
    axis.fill_between(
        levels, [b.low for b in bands], [b.high for b in bands], color=colour, alpha=0.15, linewidth=0
    )


def _cut(axis: Any, panel: Panel) -> None:
    lines = sorted(panel.lines, key=lambda line: max(band.mean for _, band in line.points))
    if len(lines) < 2:
        return
    *others, last = lines
    means = [band.mean for _, band in last.points]
    top = max(band.high for line in others for _, band in line.points)
    low = min(band.low for line in others for _, band in line.points)
    if max(means) > ABOVE * top > 0:
        axis.set_ylim(low - 0.05 * (top - low), top + 0.15 * (top - low))
        said = f"{last.label}: {min(means):.3g} to {max(means):.3g}"
        axis.text(0.98, 0.98, said, ha="right", va="top", fontsize=8, transform=axis.transAxes)
