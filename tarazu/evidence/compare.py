"""How much faster placed runs are than those that were left to Lustre, and how sure that is.

Rates of runs differ by factors, so their logarithms are compared. Both kinds are taken to scatter alike; few runs say
little about how much, so the scatter is drawn towards a usual one (a scaled inverse chi-square prior), which gives
Student's t with the degrees of freedom of both together (Gelman et al., Bayesian Data Analysis, 3rd ed., sections 2.6
and 3.3). A gain that the estimate expects is believed to be wrong by as much as it promises: from there on the runs
decide, the more of them the more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

import msgspec

from tarazu.evidence.outcomes import Outcome
from tarazu.units import counted, human_bytes

CONFIDENCE = 0.95
USUAL_SCATTER = 0.1
"""Of the logarithm of a rate from run to run on a file system that others use, too: 10 %."""
SCATTER_RUNS = 2
"""Runs that the usual scatter counts for."""
LEAST_DOUBT = 0.05
"""Of what the estimate expects, however little it is."""


class Comparison(msgspec.Struct, frozen=True):
    """Placed over left, as shares: 0.12 is 12 % more bytes a second."""

    placed: int
    """Runs."""
    left: int
    placed_bytes_per_s: float
    """Geometric means; 0 of no runs."""
    left_bytes_per_s: float
    gain: float
    lowest: float
    """With `CONFIDENCE` the gain is between this and `highest`."""
    highest: float

    def __str__(self) -> str:
        parts = [
            f"{name} {counted(runs, 'run')}, {human_bytes(round(rate))}/s"
            for name, runs, rate in (
                ("placed", self.placed, self.placed_bytes_per_s),
                ("left", self.left, self.left_bytes_per_s),
            )
            if runs
        ]
        text = "; ".join(parts)
        if not (self.placed and self.left):
            return text
        low, high = f"{100 * self.lowest:+.0f}", f"{100 * self.highest:+.0f}"
        return f"{text}: {100 * self.gain:+.0f} % ({100 * CONFIDENCE:.0f} %: {low} … {high})"


def compare(runs: Sequence[Outcome], expected: float | None = None) -> Comparison:
    """expected: the gain that the estimate promises; None: by the runs alone, which must be of both kinds then."""
    placed = [math.log(run.bytes_per_s) for run in runs if run.arm == "placed"]
    left = [math.log(run.bytes_per_s) for run in runs if run.arm == "left"]
    squares = sum((rate - fmean(of)) ** 2 for of in (placed, left) if of for rate in of)
    freedom = SCATTER_RUNS + max(0, len(placed) - 1) + max(0, len(left) - 1)
    variance = (SCATTER_RUNS * USUAL_SCATTER**2 + squares) / freedom
    weight = weighted = 0.0
    if expected is not None:
        promised = math.log1p(expected)
        weight = 1 / max(abs(promised), LEAST_DOUBT) ** 2
        weighted = weight * promised
    if placed and left:
        of_runs = 1 / (variance * (1 / len(placed) + 1 / len(left)))
        weight += of_runs
        weighted += of_runs * (fmean(placed) - fmean(left))
    mean, width = (weighted / weight, student(freedom) / math.sqrt(weight)) if weight else (0.0, math.inf)
    return Comparison(
        len(placed),
        len(left),
        math.exp(fmean(placed)) if placed else 0.0,
        math.exp(fmean(left)) if left else 0.0,
        math.expm1(mean),
        math.expm1(mean - width),
        math.expm1(min(mean + width, 700.0)),
    )


def student(freedom: float) -> float:
    """What Student's t stays below with (1 + CONFIDENCE) / 2, to 1 % from two degrees of freedom on: Abramowitz and
    Stegun, 26.7.5.
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + g1 / freedom + g2 / freedom**2 + g3 / freedom**3 + g4 / freedom**4
