"""A picture of a report: what each application's runs cost, and would have cost."""

from __future__ import annotations

from pathlib import Path

from tarazu.drawing import pyplot_for, saved
from tarazu.errors import TarazuError
from tarazu.report.placed import NAMES
from tarazu.report.report import Report

SEEN, LUSTRE, OURS = "#444444", "#c0504d", "#1f6fb4"
MOST_APPLICATIONS = 40


def draw(found: Report, path: Path) -> Path:
    """OST cost of each application: as seen, under Lustre's allocator, under tarazu, and the bound.

    Raises BadInput for a file that cannot be drawn to, Unavailable without matplotlib.
    """
    plt = pyplot_for(path)
    shown = [of for of in found.applications if of.compared][:MOST_APPLICATIONS]
    if not shown:
        raise TarazuError(f"{path}: expected a run that could be compared, found none: nothing to draw")
    figure, axis = plt.subplots(figsize=(9, 1.5 + 0.7 * len(shown)), layout="constrained")
    series = {
        "as seen": (SEEN, [of.seen_cost for of in shown]),
        NAMES["lsa"]: (LUSTRE, [of.lustre_cost for of in shown]),
        "tarazu": (OURS, [of.tarazu_cost for of in shown]),
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
    return saved(plt, figure, path)
