"""Numbers of I/O nodes chosen by estimated curves, on the 189 curves measured on MareNostrum 4.

An application is one of the patterns, known by its phase; the benchmarks are the others (leave one out), or as many of
them as `tarazu sim benchmarks plan` names. All that the estimate learns it learns from these benchmarks. Repetitions
of one cell differ by factors, so two measurements of the same thing are laid beside it: half of the repetitions choose
or are told, the other half judges.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from statistics import fmean, median

import msgspec

from tarazu.parts.forwarding.application import Application
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Measurement, estimate
from tarazu.parts.forwarding.estimate.match import category, place
from tarazu.parts.forwarding.study.accuracy import AS_GOOD, Accuracy, accuracy
from tarazu.parts.forwarding.study.benchmarks import spread_out
from tarazu.parts.forwarding.study.cases import evaluate
from tarazu.parts.forwarding.study.curve_sets import NUMBERS, PublishedCurve, published
from tarazu.parts.forwarding.study.families import classify, profile_level, regressions
from tarazu.parts.forwarding.study.leave_one_out import ApplicationStep, Made, nearest, phase_of
from tarazu.parts.forwarding.study.metrics import Measures
from tarazu.parts.forwarding.study.plan import Need, plan
from tarazu.parts.forwarding.study.schedulers import named
from tarazu.parts.forwarding.study.workload import Set, sets_at
from tarazu.units import GIB
from tests.benchmarks.figure import Figure

TOTAL_BYTES = 128 * GIB
"""Of a run, at most: it was stopped after 60 s."""
MISSED_GOAL = 0.10
"""Patterns whose number may give less than 97 % of the best one's bandwidth."""
TOLD_GOAL = 1.05
"""Of a policy's figure with whole curves."""
MOST_TOLD = 1.12
MOST_MISSED, MOST_ERROR, LEAST_INSIDE = 0.17, 0.30, 0.85
FEW = (10, 20, 40)
DESIGNS = 5
"""Plans of so many benchmarks, of other histories."""
POLICIES = ("joint", "ta-gnc")
LEVELS = (0.2, 0.4, 0.6, 0.8, 1.0)
SETS, SPLITS, DRAWS = 20, 20, 200
EVERY_IN_SHORT = 27


def pattern(of: PublishedCurve) -> BenchmarkPattern:
    return BenchmarkPattern(
        kind="io-node",
        operation="write",
        api="POSIX",
        sharing="shared" if of.shared else "unique",
        spatiality="sequential" if of.strided else "contiguous",
        request_bytes=of.request_bytes,
        process_bytes=TOTAL_BYTES // of.processes,
        processes=of.processes,
        nodes=of.nodes,
    )


@cache
def benchmarks_of(names: frozenset[str]) -> Benchmarks:
    """Those of the patterns of these names."""
    return Benchmarks(
        Measurement(pattern(of), point.resources, value, "forge", "", f"{of.name} {point.resources} {number}")
        for of in published()
        if of.name in names
        for point in of.curve.points
        for number, value in enumerate(point.bytes_per_s)
    )


def others(of: PublishedCurve, known: Sequence[PublishedCurve]) -> Benchmarks:
    return benchmarks_of(frozenset(k.name for k in known) - {of.name})


def estimated(of: PublishedCurve, known: Sequence[PublishedCurve]) -> Curve | None:
    """What the product says of it, from the others among `known`; None where nothing is like it."""
    step = ApplicationStep(pattern(of))
    found = estimate([phase_of(step)], others(of, known), of.nodes, "io-node")
    return found.curve if found else None


def estimated_or_level(of: PublishedCurve, known: Sequence[PublishedCurve]) -> Curve:
    """Where nothing is known, all are alike."""
    return estimated(of, known) or curve([(n, of.curve.bandwidth(1)) for n in NUMBERS["io-node"]])


def by_nearest(of: PublishedCurve, known: Sequence[PublishedCurve]) -> Curve:
    """Paper E's way, where no benchmark is the phase."""
    made = Made(of.name, "ior", True, of.nodes, (ApplicationStep(pattern(of)),))
    return nearest(made, others(of, known))


def planned(most: int, seed: int = 0) -> list[PublishedCurve]:
    """The measured patterns that are the nearest to the runs that `plan` names for all of them, one to ten of each,
    drawn by seed."""
    random = Random(seed)
    needs = [
        need
        for of in published()
        for need in [Need([phase_of(ApplicationStep(pattern(of)))], of.nodes)] * random.randint(1, 10)
    ]
    chosen: list[PublishedCurve] = []
    for run in plan(needs, Benchmarks(), "io-node", NUMBERS["io-node"], 5, most).runs:
        at = place(run.pattern)
        like = [of for of in published() if category(pattern(of)) == category(run.pattern)]
        left = [of for of in like if of not in chosen]
        if left:
            chosen.append(min(left, key=lambda of: float(((place(pattern(of)) - at) ** 2).sum())))
    return chosen


def halves(of: Curve, random: Random) -> tuple[Curve, Curve]:
    """Its repetitions, shared out by chance: the smaller half, the larger one."""
    smaller, larger = [], []
    for point in of.points:
        values = random.sample(point.bytes_per_s, len(point.bytes_per_s))
        middle = len(values) // 2
        smaller += [(point.resources, value) for value in values[:middle]]
        larger += [(point.resources, value) for value in values[middle:]]
    return curve(smaller), curve(larger)


def again(of: Curve, random: Random) -> Curve:
    """Measured again: as many repetitions, drawn from those that there are."""
    return curve(
        (point.resources, value)
        for point in of.points
        for value in random.choices(point.bytes_per_s, k=len(point.bytes_per_s))
    )


def level(of: Curve) -> Curve:
    """Of whoever always takes all."""
    return curve([(point.resources, float(point.resources)) for point in of.points])


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works."""
    curves = published()
    judged = curves[::EVERY_IN_SHORT] if short else curves
    jobs = 1 if short else None
    ours = list(spread_out(_others, judged, jobs))
    figures = _chosen(judged, ours, not short)
    figures += _halves(judged, ours, 2 if short else SPLITS, not short)
    figures += _without_size(judged)
    for most in FEW[-1:] if short else FEW:
        figures += _few(most, judged, 1 if short else DESIGNS)
    known = planned(FEW[1])
    few = [estimated_or_level(of, known) for of in curves]
    whole = few if short else ours
    tasks = [(load, 1 if short else SETS, whole, few) for load in (LEVELS[:1] if short else LEVELS)]
    return figures + _study(list(spread_out(_told, tasks, jobs)), [task[0] for task in tasks], not short)


def _others(of: PublishedCurve) -> Curve:
    found = estimated(of, published())
    assert found, "there are others of its kind"
    return found


def _missed(found: Sequence[Accuracy]) -> float:
    return fmean(not one.as_good for one in found)


def _chosen(judged: Sequence[PublishedCurve], ours: Sequence[Curve], limits: bool) -> list[Figure]:
    families = regressions(of.curve for of in published())
    ways: dict[str, list[Curve]] = {
        "nearest benchmark (E)": [by_nearest(of, published()) for of in judged],
        "family alone": [families[classify(of.curve)] for of in judged],
        "always all": [level(of.curve) for of in judged],
    }
    found = [accuracy(one, of.curve) for one, of in zip(ours, judged, strict=True)]
    random = Random(1)
    measured_again = [accuracy(of.curve, again(of.curve, random)) for _ in range(DRAWS) for of in judged]
    what = f"patterns whose n gives less than {1 - AS_GOOD:.0%} of the best's bandwidth"
    figures = [
        Figure("patterns, each estimated from all others", len(judged), ""),
        Figure(what, _missed(found), "", most=MOST_MISSED if limits else None, goal=MISSED_GOAL),
        Figure("... bound: the best measured n, once measured again", _missed(measured_again), ""),
        *(
            _of(f"... {name}", [accuracy(c, of.curve) for c, of in zip(each, judged)])
            for name, each in ways.items()
        ),
        Figure("bandwidth lost by the n chosen, mean", fmean(a.regret for a in found), ""),
    ]
    for name, each in ways.items():
        lost = fmean(accuracy(c, of.curve).regret for c, of in zip(each, judged, strict=True))
        figures.append(Figure(f"... {name}", lost, ""))
    theirs = [accuracy(c, of.curve) for c, of in zip(ways["nearest benchmark (E)"], judged, strict=True)]
    return [
        *figures,
        Figure("exactly the best n", fmean(a.exact for a in found), ""),
        Figure(
            "error, mean (E: 0.2 for benchmarks that are the phase)",
            fmean(a.error for a in found),
            "",
            most=MOST_ERROR if limits else None,
        ),
        Figure("... of an application, median", median(a.error for a in found), ""),
        Figure("... nearest benchmark (E)", fmean(a.error for a in theirs), ""),
        Figure("... bound: repetitions beside their own median", fmean(a.error for a in measured_again), ""),
        Figure(
            "repetitions inside 5 to 95 %",
            fmean(a.inside for a in found),
            "",
            least=LEAST_INSIDE if limits else None,
        ),
    ]


def _of(name: str, found: Sequence[Accuracy]) -> Figure:
    return Figure(name, _missed(found), "")


def _halves(
    judged: Sequence[PublishedCurve], ours: Sequence[Curve], splits: int, limits: bool
) -> list[Figure]:
    """The larger half judges both: what others' benchmarks chose, and what the smaller half did."""
    random = Random(2)
    chosen: list[Accuracy] = []
    own: list[Accuracy] = []
    for _ in range(splits):
        for of, one in zip(judged, ours, strict=True):
            smaller, larger = halves(of.curve, random)
            chosen.append(accuracy(one, larger))
            own.append(accuracy(smaller, larger))
    most = _missed(own) if limits else None
    return [
        Figure("judged by 3 of 5 repetitions: less than 97 %", _missed(chosen), "", most=most),
        Figure("... chosen by the application's own other 2", _missed(own), ""),
        Figure("... bandwidth lost, mean", fmean(a.regret for a in chosen), ""),
        Figure("... lost by its own other 2", fmean(a.regret for a in own), ""),
    ]


def _without_size(judged: Sequence[PublishedCurve]) -> list[Figure]:
    """Who calls in sizes that no benchmark has. With neighbours of the same size, one of the 189 is an easy one."""
    found, theirs = [], []
    for of in judged:
        known = [one for one in published() if one.request_bytes != of.request_bytes]
        found.append(accuracy(estimated_or_level(of, known), of.curve))
        theirs.append(accuracy(by_nearest(of, known), of.curve))
    return [
        Figure("no benchmark of the same request size: less than 97 %", _missed(found), ""),
        Figure("... nearest benchmark (E)", _missed(theirs), ""),
        Figure("... bandwidth lost, mean", fmean(a.regret for a in found), ""),
        Figure("... by the nearest (E)", fmean(a.regret for a in theirs), ""),
        Figure("... error, mean", fmean(a.error for a in found), ""),
        Figure("... of the nearest (E)", fmean(a.error for a in theirs), ""),
        Figure("... repetitions inside 5 to 95 %", fmean(a.inside for a in found), ""),
    ]


def _few(most: int, judged: Sequence[PublishedCurve], designs: int) -> list[Figure]:
    found: list[Accuracy] = []
    theirs: list[Accuracy] = []
    missing = 0
    for seed in range(designs):
        known = planned(most, seed)
        for of in judged:
            if of in known:
                continue
            if not (one := estimated(of, known)):
                missing += 1
                continue
            found.append(accuracy(one, of.curve))
            theirs.append(accuracy(by_nearest(of, known), of.curve))
    return [
        Figure(
            f"{most} planned benchmarks: less than 97 %, of the others", _missed(found), "", goal=MISSED_GOAL
        ),
        Figure("... that are like none of them", missing / (missing + len(found)), ""),
        Figure("... nearest benchmark (E)", _missed(theirs), ""),
        Figure("... bandwidth lost, mean", fmean(a.regret for a in found), ""),
        Figure("... by the nearest (E)", fmean(a.regret for a in theirs), ""),
        Figure("... error, mean", fmean(a.error for a in found), ""),
        Figure("... of the nearest (E)", fmean(a.error for a in theirs), ""),
    ]


Ratios = dict[tuple[str, str], tuple[float, float]]
"""By policy and what it was told: Mean-I/O-SlowDown and Machine-Idletime over those with the curves that judge."""


def _told(task: tuple[float, int, Sequence[Curve], Sequence[Curve]]) -> Ratios:
    """Sets at one load."""
    load, count, ours, few = task
    true = [of.curve for of in published()]
    families = regressions(true)
    random = Random(3)
    smaller, larger = zip(*(halves(one, random) for one in true), strict=True)

    def with_(curves: Sequence[Curve]) -> Callable[[Set], list[Application]]:
        return lambda one: [
            msgspec.structs.replace(application, curve=curves[number])
            for application, number in zip(one.applications, one.curves, strict=True)
        ]

    def family(one: Set) -> list[Application]:
        return [profile_level(application, families) for application in one.applications]

    ratios: Ratios = {}
    schedulers = [named(name) for name in POLICIES]
    for judge, told in (
        (true, {"estimated": with_(ours), "20 benchmarks": with_(few), "family alone": family}),
        (larger, {"estimated, 3 of 5 judge": with_(ours), "its own other 2": with_(smaller)}),
    ):
        sets = sets_at(load, judge, "io-node", count)
        whole = evaluate(schedulers, sets, "io-node")
        for name, known in told.items():
            for policy, measures in evaluate(schedulers, sets, "io-node", known).items():
                ratios[policy, name] = _beside(measures, whole[policy])
    return ratios


def _beside(ours: Sequence[Measures], whole: Sequence[Measures]) -> tuple[float, float]:
    return (
        fmean(m.mean_slowdown for m in ours) / fmean(m.mean_slowdown for m in whole),
        fmean(m.idletime for m in ours) / fmean(m.idletime for m in whole),
    )


def _study(by_load: Sequence[Ratios], loads: Sequence[float], limits: bool) -> list[Figure]:
    for load, ratios in zip(loads, by_load, strict=True):
        for (policy, name), (users, machine) in ratios.items():
            print(f"  load {load:g} {policy} {name}: {users:.3f} {machine:.3f}", file=sys.stderr)
    figures = []
    for policy, name in by_load[0]:
        for at, metric in enumerate(("Mean-I/O-SlowDown", "Machine-Idletime")):
            values = [ratios[policy, name][at] for ratios in by_load]
            held = name == "estimated"
            figures += [
                Figure(
                    f"{policy}, {name} / whole curves, {metric}",
                    fmean(values),
                    "",
                    goal=TOLD_GOAL if held else None,
                ),
                Figure("... worst load", max(values), "", most=MOST_TOLD if limits and held else None),
            ]
    return figures
