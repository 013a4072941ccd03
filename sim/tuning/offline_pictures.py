"""Figures 4 and 5 of the paper (section V-B), with ours beside: how often the best window is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tarazu import drawing
from tarazu.sim.requests.situation import TABLE_III
from tarazu.sim.tuning.measured import Floats
from tarazu.sim.tuning.offline import BIN
from tarazu.sim.tuning.pictures import OUR_COLOUR
from tarazu.sim.tuning.sampled import OURS, PAPER, Evaluated

SHADES = ("#e8c48f", "#dba653", "#c57a1c", "#8a5210")
"""The paper's, the darker the larger ε is."""
LETTERS = ("#4c8bd6", "#d08a2e", "#3f9b57", "#e0524a", "#8a6fd1", "#8a939e")
"""Of the six patterns."""


def picture(found: Evaluated) -> str:
    """SVG: above figure 4, below figure 5. Raises Unavailable without matplotlib."""
    title = "Offline: precision in bins of ten observations, each pattern alone and six in random turns"
    return drawing.svg(drawing.pyplot(), title, lambda plt: _draw(plt, found))


def _draw(plt: Any, found: Evaluated) -> Any:
    figure = plt.figure(figsize=(9, 6.6), layout="constrained")
    alone, mixed = figure.subfigures(2, 1, height_ratios=(2, 1.1))
    axes = alone.subplots(2, 3, sharey=True)
    for place, (axis, letter) in enumerate(zip(axes.flat, TABLE_III, strict=True)):
        lines = {
            name if name == OURS else f"the paper's, {name}": (
                values[place],
                OUR_COLOUR if name == OURS else SHADES[number % len(SHADES)],
            )
            for number, (name, values) in enumerate(found.alone.items())
        }
        _panel(axis, f"{letter}: precision", lines)
    drawing.legend(alone, axes)
    axes = mixed.subplots(1, 2, sharey=True)
    for axis, name in zip(axes, (PAPER, OURS), strict=True):
        lines = {letter: (found.mixed[name][n], LETTERS[n]) for n, letter in enumerate(TABLE_III)}
        _panel(axis, f"Six patterns in random turns: {name}", lines)
    drawing.legend(mixed, axes)
    return figure


def _panel(axis: Any, title: str, lines: Mapping[str, tuple[Floats, str]]) -> None:
    for label, (values, colour) in lines.items():
        axis.plot(BIN * np.arange(1, len(values) + 1), values, color=colour, label=label)
    axis.set_title(title, fontsize=9)
    axis.set_ylim(0, 1.02)
    axis.set_xlabel("observations of it")
