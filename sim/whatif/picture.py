"""Pictures: one job's OSTs, bytes and time, as logged and as placed again; the applications of a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.sim.whatif.comparison import NAMES
from tarazu.sim.whatif.report import Report
from tarazu.sim.whatif.study import AS_LOGGED, WhatIf
from tarazu.units import GIB

COLOURS = {AS_LOGGED: "#444444", "lsa": "#c0504d", "tarazu": "#1f6fb4"}
FORMATS = (".png", ".svg", ".pdf")
MOST_JOBS = 20
MOST_APPLICATIONS = 40
MOST_MARKERS = 200


def draw(results: Sequence[WhatIf], path: Path) -> Path:
    """Two panels a job: bytes of each OST, and how long it writes where speeds are known.

    Raises BadInput for a file that cannot be drawn to, Unavailable without matplotlib.
    """
    if len(results) > MOST_JOBS:
        raise BadInput(str(path), f"at most {MOST_JOBS} jobs in one picture", len(results))
    plt = _pyplot(path)
    figure, axes = plt.subplots(
        len(results), 2, figsize=(13, 3.4 * len(results)), squeeze=False, layout="constrained"
    )
    for (left, right), of in zip(axes, results, strict=True):
        _bytes(left, of)
        _seconds(right, of)
    axes[0][0].legend(fontsize=8)
    return _saved(plt, figure, path)


def draw_report(found: Report, path: Path) -> Path:
    """OST cost of each application: as seen, under Lustre's allocator, under tarazu, and the bound. As `draw`."""
    plt = _pyplot(path)
    shown = [of for of in found.applications if of.compared][:MOST_APPLICATIONS]
    if not shown:
        raise TarazuError(f"{path}: expected a run that could be compared, found none: nothing to draw")
    figure, axis = plt.subplots(figsize=(9, 1.5 + 0.7 * len(shown)), layout="constrained")
    series = {
        "as seen": ("#444444", [of.seen_cost for of in shown]),
        NAMES["lsa"]: (COLOURS["lsa"], [of.lustre_cost for of in shown]),
        "tarazu": (COLOURS["tarazu"], [of.tarazu_cost for of in shown]),
        "bound": ("#aaaaaa", [of.bound_cost for of in shown]),
    }
    for number, (name, (colour, values)) in enumerate(series.items()):
        places = [row + 0.2 * number for row, value in enumerate(values) if value is not None]
        axis.barh(places, [v for v in values if v is not None], 0.18, color=colour, label=name)
    axis.set_yticks(
        [row + 0.3 for row in range(len(shown))], [f"{of.application} ({of.fs_name})" for of in shown]
    )
    axis.invert_yaxis()
    axis.set_xlabel("OST cost: max / mean of the bytes per OST, median over the runs")
    axis.legend(fontsize=8)
    return _saved(plt, figure, path)


def _pyplot(path: Path) -> Any:
    if path.suffix.lower() not in FORMATS:
        raise BadInput(str(path), f"a picture's name that ends in one of {', '.join(FORMATS)}", path.suffix)
    try:
        import matplotlib as mpl
    except ImportError:
        raise Unavailable("picture: expected matplotlib (pip install 'tarazu[viz]'), found none") from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def _saved(plt: Any, figure: Any, path: Path) -> Path:
    try:
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise BadInput(str(path), "a file that can be written", error.strerror) from None
    finally:
        plt.close(figure)
    return path


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
