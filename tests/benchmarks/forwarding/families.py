"""What it costs TA to know families alone, by how much the curves of a family differ from one another.

The generated curves, each drawn nearer to the function of its family: at 1 they are as generated, at 0 all of a family
are alike but for their level.
"""

from __future__ import annotations

from statistics import fmean

from tarazu.parts.forwarding.application import Application, Kind
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.study.cases import KINDS, evaluate
from tarazu.parts.forwarding.study.curve_sets import generated
from tarazu.parts.forwarding.study.families import classify, profile_level, regressions
from tarazu.parts.forwarding.study.levels import sets_at
from tarazu.parts.forwarding.study.policies import named
from tarazu.parts.forwarding.study.workload import Set
from tests.benchmarks.figure import Figure

SPREADS = (1.0, 0.5, 0.25, 0.0)
LEVELS = (0.2, 0.4, 0.6, 0.8)
SETS = 20


def measure(short: bool) -> list[Figure]:
    kinds = KINDS[-1:] if short else KINDS
    spreads = SPREADS[1:2] if short else SPREADS
    return [
        Figure(
            f"{kind}: % more Mean-I/O-SlowDown of TA-GNC, differences times {spread:g}",
            100 * cost(kind, nearer(kind, spread), LEVELS[-1:] if short else LEVELS, 2 if short else SETS),
            "%",
        )
        for kind in kinds
        for spread in spreads
    ]


def nearer(kind: Kind, spread: float) -> list[Curve]:
    """The generated curves, what they differ from their family's function times `spread`, as powers."""
    curves = [each.curve for each in generated(kind).curves]
    functions = regressions(curves)
    found = []
    for one in curves:
        function = functions[classify(one)].curve
        best = max(p.median for p in one.points)
        found.append(
            curve(
                (
                    p.resources,
                    best
                    * function.bandwidth(p.resources)
                    * (p.median / best / function.bandwidth(p.resources)) ** spread,
                )
                for p in one.points
            )
        )
    return found


def cost(kind: Kind, curves: list[Curve], levels: tuple[float, ...], count: int) -> float:
    """Of knowing families alone: mean over sets of the slowdown over that with the curves, less 1."""
    families = regressions(curves)

    def profile(one: Set) -> list[Application]:
        return [profile_level(application, families) for application in one.applications]

    ratios = []
    for level in levels:
        sets = sets_at(level, curves, kind, count)
        policy = [named("ta-gnc")]
        truth, known = (evaluate(policy, sets, kind, told)["ta-gnc"] for told in (None, profile))
        ratios += [b.mean_slowdown / a.mean_slowdown for a, b in zip(truth, known, strict=True)]
    return fmean(ratios) - 1
