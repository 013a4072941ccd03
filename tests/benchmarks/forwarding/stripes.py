"""Mean-I/O-SlowDown of eight jobs with stripe counts by curves over that with those of `auto`, simulated."""

from __future__ import annotations

from statistics import median

from tarazu.parts.forwarding.study.stripes import LOADS, mixtures
from tests.benchmarks.figure import Figure

EACH = 50
MOST = 1.1
"""Of one mixture: `auto` gives most files one stripe, which at high load is near to what is best."""


def measure(short: bool) -> list[Figure]:
    """The mean slowdown under `curve` over that under `auto`, at each load: of so many mixtures worst and median."""
    found = list(mixtures(each=2 if short else EACH))
    figures = []
    for load in LOADS:
        of = [mixture for mixture in found if mixture.load == load]
        for when, ratios, most, goal in (
            ("as they come", [mixture.first_ratio for mixture in of], None, None),
            ("asked again", [mixture.ratio for mixture in of], MOST, 1.0),
        ):
            what = f"I/O-load(π₁) {load:g}, {when}: curve / auto"
            figures.append(Figure(f"{what}, median", median(ratios), "", most=1.0))
            figures.append(Figure(f"{what}, worst of {len(ratios)}", max(ratios), "", most=most, goal=goal))
            figures.append(Figure(f"{what}, above 1", sum(ratio > 1 for ratio in ratios), ""))
    return figures
