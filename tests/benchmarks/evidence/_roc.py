"""Draws `docs/slow-roc.svg`: recall beside false alarms as the proof that is asked for goes up and down.

    .venv/bin/python -m tests.benchmarks.evidence._roc

60 generated incidents on 35 OSTs (seeds of their own). Four proofs are asked for, so that scores go on beyond the one
that calls an OST slow; the threshold is laid through the highest score of each OST in each incident.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tarazu import drawing
from tests.benchmarks.evidence._disks import Floats
from tests.benchmarks.evidence._incidents import SICK
from tests.benchmarks.evidence._judging import BROKER, OWN, PEERS, RAISED, Outcome, judge, tasks
from tests.benchmarks.evidence.slow import ways_of

PICTURE = Path(__file__).parents[3] / "docs" / "slow-roc.svg"
FIRST_SEED, EACH, SITES = 3000, 6, 2
COLOURS = {BROKER: "#8a8a8a", PEERS: "#c0504d", OWN: "#1f78b4"}
THRESHOLDS = np.arange(0.1, RAISED + 1, 0.1)
PANELS = (
    ("3 times slower or more, all the time", ("one", "two", "server", "rack", "rebuild"), 3.0),
    ("all sicknesses, 1.5 to 50 times slower", SICK, 1.5),
)


def curve(outcomes: Sequence[Outcome], kinds: Sequence[str], least: float) -> tuple[Floats, Floats]:
    """(false alarms in 1,000 OST-days, recall) by threshold."""
    sick = np.array([s for o in outcomes if o.kind in kinds and o.factor >= least for s in o.scores_sick])
    # A well OST with the same I/Os for half of the time; an overload's OSTs are well.
    calm = [o for o in outcomes if o.kind != "all at once"]
    well = np.array([s for o in calm for s in o.scores_well])
    days = sum(len(o.scores_well) * o.half_s for o in calm) / 86_400
    alarms = (well[:, None] >= THRESHOLDS).sum(axis=0)
    return 1000 * alarms / days, (sick[:, None] >= THRESHOLDS).mean(axis=0)


def draw(outcomes: Sequence[Outcome], plt: Any) -> Any:
    figure, axes = drawing.panels(plt, 1, len(PANELS))
    for axis, (title, kinds, least) in zip(axes.flat, PANELS):
        for way in ways_of(35):
            alarms, recall = curve([o for o in outcomes if o.way == way], kinds, least)
            axis.plot(np.maximum(alarms, 0.5), recall, color=COLOURS[way], label=way)
            now = int(np.argmin(np.abs(THRESHOLDS - 1)))
            axis.plot(max(alarms[now], 0.5), recall[now], "o", color=COLOURS[way])
        axis.set_xscale("log")
        axis.set_ylim(0, 1.02)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("false alarms in 1,000 OST-days (0.5: none)")
    axes.flat[0].set_ylabel("recall of OSTs")
    drawing.legend(figure, axes)
    return figure


def main(path: Path = PICTURE) -> None:
    outcomes = judge(tasks(35, FIRST_SEED, EACH, SITES, ways_of(35), raised=True))
    path.write_text(drawing.svg(drawing.pyplot(), "What is called slow", lambda plt: draw(outcomes, plt)))
    print(f"{path}: drawn")


if __name__ == "__main__":
    main()
