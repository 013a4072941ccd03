"""A picture of a tuning: what each layout costs, by size of the file; and the cheapest layout by its components."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tarazu.drawing import pyplot_for, saved
from tarazu.errors import BadInput
from tarazu.layout.setstripe import parse_layout
from tarazu.parts.pfl.cost import PARTS, Target, by_class_of, per_second
from tarazu.parts.pfl.sizes import Sizes
from tarazu.parts.pfl.tuner import Tuned
from tarazu.units import human_bytes

MOST_CURVES = 6
POINTS = 120
COLOURS = ("#444444", "#1f6fb4", "#c0504d", "#7f9f3f", "#8064a2")
"""Of the parts of a cost."""


def drawable(path: Path) -> None:
    """Raises BadInput, Unavailable where a picture could not be drawn: before what takes long."""
    pyplot_for(path)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise BadInput(str(path), "a file that can be written", "none")


def draw(of: Tuned, judged_on: Sizes, target: Target, path: Path) -> Path:
    """Left: the cost by size, of the layouts that matter. Right: the parts of each layout's cost.

    Raises BadInput for a file that cannot be drawn to, Unavailable without matplotlib.
    """
    plt = pyplot_for(path)
    figure, (curves, bars) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    classes = judged_on.classes()
    used, worth = classes.size_bytes > 0, per_second(classes, target)
    order = sorted(of.rows, key=lambda row: (row.kind != "tuned", row.kind != "site", row.cost.total))
    edges = np.geomspace(
        max(1.0, classes.size_bytes[used].min(initial=1e15)) / 2,
        max(2.0, classes.size_bytes.max(initial=1)) * 2,
        POINTS,
    )
    at = np.digitize(classes.size_bytes, edges)
    for row in order[:MOST_CURVES]:
        layout, _ = parse_layout(row.setstripe)
        each = target.weights.array @ by_class_of(classes, target, layout) * worth / classes.weight
        number = np.bincount(at, classes.files, POINTS + 1)
        with np.errstate(invalid="ignore"):
            mean = np.bincount(at, each * classes.files, POINTS + 1) / number
        there = number[1:] > 0
        curves.plot(
            edges[there[:POINTS]],
            mean[1:][there],
            marker=".",
            linewidth=2.2 if row.kind == "tuned" else 1,
            label=row.name,
        )
    curves.set_xscale("log", base=2)
    curves.set_yscale("log")
    curves.set_xlabel("size of the file, bytes")
    curves.set_ylabel("cost: times that of the best plain layout for it")
    curves.xaxis.set_major_formatter(lambda value, _: human_bytes(value))
    curves.tick_params(axis="x", labelrotation=30)
    curves.legend(fontsize=8)
    rows = sorted(of.rows, key=lambda row: row.cost.total)
    left = np.zeros(len(rows))
    for part, colour in zip(PARTS, COLOURS, strict=True):
        width = np.array([row.cost.parts[part] * getattr(target.weights, part) for row in rows])
        bars.barh([row.name for row in rows], width, left=left, label=part, color=colour)
        left += width
    bars.invert_yaxis()
    bars.set_xlabel("cost on the half that was not tuned on")
    bars.legend(fontsize=8)
    return saved(plt, figure, path)
