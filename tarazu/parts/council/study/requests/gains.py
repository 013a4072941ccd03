"""Where TWINS gains and where it loses: each situation beside FIFO and HBRR (paper, section II)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tarazu import drawing
from tarazu.parts.council.study.requests.situation import SITUATIONS, TABLE_III, WINDOWS, Situation
from tarazu.parts.council.study.requests.situations import SCHEDULERS, SituationRow
from tarazu.table import write_csv

FIFO, HBRR = SCHEDULERS.index("fifo"), SCHEDULERS.index("hbrr")
MATTERS = 0.10


class Gain(NamedTuple):
    """One situation, by the makespan as the user sees it."""

    situation: Situation
    bytes_per_s: tuple[float, ...]
    """By SCHEDULERS."""

    @property
    def windows(self) -> tuple[float, ...]:
        return self.bytes_per_s[: len(WINDOWS)]

    @property
    def best(self) -> str:
        """The best window."""
        return WINDOWS[int(np.argmax(self.windows))]

    @property
    def other(self) -> float:
        """The better of FIFO and HBRR, which the paper compares with, bytes/s."""
        return max(self.bytes_per_s[FIFO], self.bytes_per_s[HBRR])

    @property
    def gain(self) -> float:
        """Of the best window over that: 0.48 is 48 %; below 0 is a loss."""
        return max(self.windows) / self.other - 1

    @property
    def loss(self) -> float:
        """Of the worst window."""
        return min(self.windows) / self.other - 1

    @property
    def spread(self) -> float:
        """What a wrong window costs: the worst beside the best, 0-1."""
        return 1 - min(self.windows) / max(self.windows)


def gains(rows: Iterable[SituationRow]) -> tuple[Gain, ...]:
    """Of all situations that have all runs."""
    by: dict[int, dict[str, float]] = {}
    for row in rows:
        by.setdefault(row.situation, {})[row.scheduler] = row.bytes_per_s
    return tuple(
        Gain(SITUATIONS[number], tuple(rates[name] for name in SCHEDULERS))
        for number, rates in sorted(by.items())
        if len(rates) == len(SCHEDULERS)
    )


HEAD = (
    *("nodes", "processes", "file", "spatiality", "operation", "request_kib"),
    *(f"{name}_mb_per_s" for name in SCHEDULERS),
    *("best_window", "gain_percent", "loss_percent"),
)


def cells(gain: Gain) -> tuple[str, ...]:
    """One line of the table."""
    one = gain.situation
    return (
        *(str(one.nodes), str(one.processes), "shared" if one.shared else "own"),
        *(one.spatiality, one.operation, str(one.request_bytes >> 10)),
        *(f"{value / 1e6:.1f}" for value in gain.bytes_per_s),
        *(gain.best, f"{100 * gain.gain:+.0f}", f"{100 * gain.loss:+.0f}"),
    )


def write(found: Sequence[Gain], folder: Path) -> None:
    """The docs' table and pictures. Raises Unavailable without matplotlib, after the table is written."""
    with (folder / "tuning-situations.csv").open("w", newline="") as file:
        write_csv(file, HEAD, map(cells, found))
    for picture in pictures(found):
        (folder / f"{picture.name}.png").write_bytes(picture.light)


def pictures(found: Sequence[Gain]) -> list[drawing.Picture]:
    """Gains of all situations; and the windows of table III's, as figure 1 of the paper shows them."""
    plt = drawing.pyplot()
    return [
        drawing.picture(
            plt,
            "tuning-gains",
            "TWINS beside FIFO and HBRR, all situations",
            "Makespan of the best and of the worst window beside the better of FIFO and HBRR, sorted by the best.",
            lambda plt: _draw_gains(plt, found),
        ),
        drawing.picture(
            plt,
            "tuning-windows",
            "Windows in six situations (table III)",
            "Bytes a second as the user sees them; lines: FIFO and HBRR.",
            lambda plt: _draw_windows(plt, found),
        ),
    ]


def _draw_gains(plt: Any, found: Sequence[Gain]) -> Any:
    figure, axes = drawing.panels(plt, 1, 2, width=5.0)
    for axis, operation in zip(axes[0], ("write", "read")):
        ordered = sorted(
            (one for one in found if one.situation.operation == operation), key=lambda one: one.gain
        )
        axis.bar(
            range(len(ordered)), [100 * one.gain for one in ordered], color="#1f78b4", label="best window"
        )
        axis.plot(
            [100 * one.loss for one in ordered], "o", markersize=3, color="#c0504d", label="worst window"
        )
        axis.set_title(operation, fontsize=10)
        axis.set_xlabel("situations")
        axis.set_ylabel("% beside FIFO and HBRR")
    drawing.legend(figure, axes)
    return figure


def _draw_windows(plt: Any, found: Iterable[Gain]) -> Any:
    by_situation = {one.situation: one for one in found}
    figure, axes = drawing.panels(plt, 2, 3, sharey=False)
    for axis, (letter, situation) in zip(axes.flat, TABLE_III.items()):
        one = by_situation.get(situation)
        if one is None:
            continue
        axis.bar(WINDOWS, [value / 1e6 for value in one.windows], color="#1f78b4", label="TWINS")
        for name, at, colour in (("FIFO", FIFO, "#c0504d"), ("HBRR", HBRR, "#e0a030")):
            axis.axhline(one.bytes_per_s[at] / 1e6, color=colour, label=name)
        axis.set_title(f"{letter}: {situation}", fontsize=8)
        axis.set_ylabel("MB/s")
    drawing.legend(figure, axes)
    return figure
