"""A picture of one job's OSTs: bytes and time, as logged and as placed again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tarazu.errors import BadInput
from tarazu.report.picture import LUSTRE, OURS, SEEN, pyplot_for, saved
from tarazu.report.placed import NAMES
from tarazu.sim.whatif.study import AS_LOGGED, WhatIf
from tarazu.units import GIB

COLOURS = {AS_LOGGED: SEEN, "lsa": LUSTRE, "tarazu": OURS}
MOST_JOBS = 20
MOST_MARKERS = 200


def draw(results: Sequence[WhatIf], path: Path) -> Path:
    """Two panels a job: bytes of each OST, and how long it writes where speeds are known.

    Raises BadInput for a file that cannot be drawn to, Unavailable without matplotlib.
    """
    if len(results) > MOST_JOBS:
        raise BadInput(str(path), f"at most {MOST_JOBS} jobs in one picture", len(results))
    plt = pyplot_for(path)
    figure, axes = plt.subplots(
        len(results), 2, figsize=(13, 3.4 * len(results)), squeeze=False, layout="constrained"
    )
    for (left, right), of in zip(axes, results, strict=True):
        _bytes(left, of)
        _seconds(right, of)
    axes[0][0].legend(fontsize=8)
    return saved(plt, figure, path)


def _bytes(axis: Any, of: WhatIf) -> None:
    for name, colour in COLOURS.items():
        if of.rows and name in of.rows[0].bytes:
            _line(axis, of, [row.bytes[name] / GIB for row in of.rows], name, colour)
    axis.set_title(f"{of.application} on {of.mount or 'Lustre'}: {of.new_files} new files", fontsize=10)
    axis.set_ylabel("GiB of new files")
    axis.set_ylim(bottom=0)


def _seconds(axis: Any, of: WhatIf) -> None:
    compared = of.compared
    if not of.rows or not of.rows[0].seconds or compared is None:
        axis.text(0.5, 0.5, "speeds are not known", ha="center", transform=axis.transAxes)
        axis.set_axis_off()
        return
    for name, colour in COLOURS.items():
        if name in of.rows[0].seconds:
            _line(axis, of, [row.seconds[name] for row in of.rows], name, colour)
    if compared.time_bound_s is not None:
        axis.axhline(compared.time_bound_s, color="#888888", linestyle=":", linewidth=1)
        axis.text(of.rows[0].ost, compared.time_bound_s, " bound", fontsize=8, va="bottom")
    times = [row.seconds[name] for row in of.rows for name in row.seconds]
    if max(times) > 20 * (compared.time_bound_s or max(times)):
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    axis.set_title("time that each OST writes, at the speed that it showed", fontsize=10)
    axis.set_ylabel("seconds")


def _line(axis: Any, of: WhatIf, values: Sequence[float], name: str, colour: str) -> None:
    marker = "." if len(of.rows) <= MOST_MARKERS else ""
    label = NAMES.get(name, name)
    axis.plot([row.ost for row in of.rows], values, color=colour, marker=marker, linewidth=1, label=label)
    axis.set_xlabel("OST")
