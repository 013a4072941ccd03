"""Pictures of OST utilization, as the paper's figures 15 to 18 draw it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tarazu.drawing import pyplot
from tarazu.sim.demo import DemoResult

LUSTRE, OURS, QUIET = "#c0504d", "#1f6fb4", "#888888"


def utilization(results: Sequence[DemoResult], path: Path) -> Path:
    """One panel per scenario, a pair of bars for each OST: its share in use after the last run.

    Raises Unavailable without matplotlib.
    """
    plt = pyplot()
    columns = 2
    rows = -(-len(results) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(12, 3.2 * rows), squeeze=False, layout="constrained")
    for axis in axes.flat[len(results) :]:
        axis.set_visible(False)
    for axis, result in zip(axes.flat, results):
        _panel(axis, result)
    axes.flat[0].legend(loc="lower left", fontsize=8)
    figure.suptitle("OST utilization after the job: Lustre's allocator and tarazu")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _panel(axis: Any, result: DemoResult) -> None:
    indices = list(range(len(result.tarazu_shares)))
    before = [100 * share for share in result.fill_before]
    ours = [b + 100 * share for b, share in zip(before, result.tarazu_shares)]
    drawn = [[b + 100 * share for b, share in zip(before, seed)] for seed in result.lustre_shares]
    # The seed whose worst OST is the median one stands for Lustre; the thin lines span all of them.
    typical = sorted(drawn, key=max)[len(drawn) // 2]
    low = [min(values) for values in zip(*drawn)]
    high = [max(values) for values in zip(*drawn)]
    spread = [[t - n for t, n in zip(typical, low)], [n - t for t, n in zip(typical, high)]]
    left, right = [i - 0.21 for i in indices], [i + 0.21 for i in indices]
    label = f"Lustre, median seed; range of all {len(drawn)}"
    errors = {"ecolor": LUSTRE, "elinewidth": 0.6, "alpha": 0.4}
    axis.bar(left, typical, 0.4, color=LUSTRE, yerr=spread, error_kw=errors, label=label)
    axis.bar(right, ours, 0.4, color=OURS, label="tarazu")
    if any(before):
        ticks = [i - 0.45 for i in indices], [i + 0.45 for i in indices]
        axis.hlines(before, *ticks, color="black", linewidth=0.8, label="before the job")
    else:
        axis.axhline(median(ours), color=QUIET, linewidth=0.6)
    j = result.judged
    axis.set_title(
        f"{result.name}: {result.metric} {j.lustre_median:.3g} → {j.tarazu:.3g} (bound {j.bound:.3g})",
        fontsize=10,
    )
    axis.set_xlabel("OST")
    axis.set_ylabel("in use, %")
    axis.set_ylim(bottom=0)
