"""Clients' pairs of `osc_rpcs` on measured half-seconds: twelve workloads, half of them known, judged on the others.

Each split of the twelve into halves is one case: what is known of clients, and the list of values, come from the one
half; each workload of the other is a client that the product's council decides for (`study.replayed`).
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from tarazu.cli.output import print_table
from tarazu.parts.council.detect.clients import LEAST_PAGES, KnownWorkloads
from tarazu.parts.council.learning.careful import SURE
from tarazu.parts.council.study.replayed import Measured, Replay, nothing, replayed, samples
from tarazu.parts.council.study.train_clients import STARTS, table, trained
from tarazu.parts.council.values import USUAL
from tarazu.parts.council.values.client import PAIR, RpcPair
from tests.benchmarks.figure import Figure

DATA = Path(__file__).parents[2] / "data" / "evidence"
RUN_S, HOUR_S = 300, 3600
"""A run of the data; and one that nobody made, of the same samples."""
VALUES = 7
"""Of a list."""
GAINS = math.log(1.02)
"""A workload whose best value, of all that may be listed, gains less is one where the default is best."""
MOST_LOSS = 0.01
DEFAULT = STARTS[0]
SECONDS = 200
"""Of a workload, by which it is told what it does."""
CASES, SHORT = 240, 2
"""Splits."""
LONG = 24
"""Splits for the hour."""
UNLIKE: dict[str, Callable[[str], str]] = {
    "its kind (such as random reads)": lambda name: name[:5],
    "its side (reads or writes)": lambda name: name[4],
}
"""What a workload is held out with, by its name (`rnd_r_1_io_8k`)."""
TURNS = 20
"""Draws of samples."""


class Case(NamedTuple):
    """One held-out workload of one split."""

    workload: str
    known: tuple[str, ...]
    number: int

    @property
    def parity(self) -> int:
        return self.number % 2


@cache
def measured() -> Measured:
    return Measured(table(DATA / "client-pairs.csv"), samples(DATA / "client-samples.csv.gz"))


def cases(count: int) -> list[Case]:
    """So many of the 924 splits, in an order drawn at random."""
    names = sorted(measured().table)
    chosen = Random(1).sample(list(itertools.combinations(names, len(names) // 2)), count)
    return [
        Case(name, known, number)
        for number, known in enumerate(chosen)
        for name in names
        if name not in known
    ]


def unlike(group: Callable[[str], str]) -> list[Case]:
    """Each workload held out with all that are of its group: nothing that is known is like it."""
    names = sorted(measured().table)
    return [
        Case(name, tuple(other for other in names if group(other) != group(name)), number)
        for number in range(TURNS)
        for name in names
    ]


def listed(known: Collection[str]) -> list[RpcPair]:
    """Values for these workloads: the default, and one after another what adds most to their gains."""
    data = measured()
    pairs = sorted({pair for _, pair, _ in data.samples})
    values, best = [DEFAULT], dict.fromkeys(known, 0.0)
    gain = {(name, pair): _gain(name, pair) for name in known for pair in pairs}
    while len(values) < VALUES:
        rest = [pair for pair in pairs if pair not in values]
        value = max(rest, key=lambda pair: sum(max(best[name], gain[name, pair]) for name in known))
        values.append(value)
        best = {name: max(best[name], gain[name, value]) for name in known}
    return values


@cache
def _gain(workload: str, pair: RpcPair) -> float:
    return statistics.fmean(measured().gain(workload, pair, parity) for parity in (0, 1))


def bound(workload: str) -> float:
    """What the best pair of all gains, chosen on half of the runs and judged on the others; natural logarithm."""
    data = measured()
    return statistics.fmean(data.gain(workload, data.best(workload, parity), parity) for parity in (0, 1))


def first(case: Case, values: Sequence[RpcPair], known: KnownWorkloads) -> RpcPair:
    """The pair that is guessed from ten seconds of the default, or the default."""
    data, random = measured(), Random(f"{case}")
    seen = [data.draw(case.workload, DEFAULT, case.parity, random) for _ in range(10)]
    guessed = [known.gains(one, str(DEFAULT), [str(value) for value in values]) for one in seen]
    found = [each for each in guessed if each is not None]
    if not found:
        return DEFAULT
    best, chosen = 0.0, DEFAULT
    for column, value in enumerate(values):
        mean = statistics.fmean(each[column].mean for each in found)
        error = statistics.fmean(each[column].deviation for each in found)
        may_lose = 1.0 - math.exp(mean - SURE * error)
        if value.pages >= LEAST_PAGES and mean > max(best, math.log1p(0.02)) and may_lose <= 0.15:
            best, chosen = mean, value
    return chosen


def nearest(case: Case, values: Sequence[RpcPair], known: KnownWorkloads) -> RpcPair:
    """The best pair of the nearest known workload."""
    data, random = measured(), Random(f"{case}")
    seen = data.draw(case.workload, DEFAULT, case.parity, random)
    near = known.near(seen, str(DEFAULT))
    like = known.workloads[near.index(max(near))].name
    return max(values, key=lambda value: _gain(like, value))


def flat(workload: str) -> bool:
    """The default is best, as far as one half of the runs tells it of the other."""
    data = measured()
    pairs = {pair for _, pair, _ in data.samples}

    def found(parity: int) -> float:
        best = max(pairs, key=lambda pair: data.mb_s(workload, pair, 1 - parity))
        return data.gain(workload, best, parity)

    return statistics.fmean(map(found, (0, 1))) < GAINS


def noise(workload: str) -> float:
    """Standard error of a pair's gain: by so much the data themselves leave open what it is."""
    data = measured()
    pairs = {pair for _, pair, _ in data.samples} - {DEFAULT}
    apart = [data.gain(workload, pair, 0) - data.gain(workload, pair, 1) for pair in pairs]
    return math.sqrt(statistics.fmean(each**2 for each in apart)) / 2


def order_told(side: str) -> float:
    """Share of a held-out workload's seconds whose most alike known workload has its order, random or sequential.
    `side`: `_r_` of reads, `_w_` of writes.
    """
    data, told = measured(), []
    for name in (name for name in data.table if side in name):
        known, random = trained(data.table, set(data.table) - {name}), Random(name)
        for number in range(SECONDS):
            near = known.near(data.draw(name, DEFAULT, number % 2, random), str(DEFAULT))
            if any(near):
                told.append(known.workloads[near.index(max(near))].name[:5] == name[:5])
    return statistics.fmean(told)


class Judged(NamedTuple):
    case: Case
    guess: RpcPair
    neighbour: RpcPair
    both: Replay
    alone: Replay
    shipped: Replay
    """Both, with the values that are listed by default."""


def judge(case: Case, seconds: int = RUN_S) -> Judged:
    data, values = measured(), listed(case.known)
    known = trained(data.table, case.known)

    def replay(values: Sequence[RpcPair], *, guess: bool) -> Replay:
        return replayed(
            data,
            case.workload,
            values,
            known.gains if guess else nothing,
            seconds=seconds,
            parity=case.parity,
            seed=case.number,
        )

    usual = [RpcPair.parse(value) for value in USUAL[PAIR]]
    return Judged(
        case,
        first(case, values, known),
        nearest(case, values, known),
        replay(values, guess=True),
        replay(values, guess=False),
        replay(usual, guess=True),
    )


def judge_hour(case: Case) -> Judged:
    return judge(case, HOUR_S)


class Line(NamedTuple):
    """Of one workload: gains, as ratios of bytes moved in the same time."""

    workload: str
    best: float
    random: float
    neighbour: float
    guess: float
    alone: float
    both: float
    shipped: float
    end: float
    """Both, in the last minute."""
    worst: float
    """Both, of any split."""
    samples: float
    """Half-seconds until the pair in force gains nine tenths of the best's, with both: median; inf: most never do."""
    alone_samples: float
    tries: float
    """Changes until then, median."""


def line(workload: str, found: Sequence[Judged]) -> Line:
    data = measured()
    best = bound(workload)

    def mean(pairs: Iterator[tuple[RpcPair, int]]) -> float:
        return statistics.fmean(math.exp(data.gain(workload, pair, parity)) for pair, parity in pairs)

    def reached(replay: Replay) -> float:
        enough = 1.0 + 0.9 * math.expm1(best)
        return next((2.0 * s for s, gain in enumerate(replay.gains) if gain >= enough), math.inf)

    def tries(replay: Replay) -> float:
        until = reached(replay)
        if until == math.inf:
            return math.inf
        before = replay.pairs[: int(until / 2) + 1]
        return float(sum(one != other for one, other in itertools.pairwise(before)))

    return Line(
        workload,
        math.exp(best),
        mean((pair, parity) for pair in data.table[workload] for parity in (0, 1)),
        mean((one.neighbour, one.case.parity) for one in found),
        mean((one.guess, one.case.parity) for one in found),
        statistics.fmean(one.alone.gain() for one in found),
        statistics.fmean(one.both.gain() for one in found),
        statistics.fmean(one.shipped.gain() for one in found),
        statistics.fmean(one.both.gain(-60) for one in found),
        min(one.both.gain() for one in found),
        statistics.median(reached(one.both) for one in found),
        statistics.median(reached(one.alone) for one in found),
        statistics.median(tries(one.both) for one in found),
    )


def lines(found: Sequence[Judged]) -> list[Line]:
    names = sorted({one.case.workload for one in found})
    return [line(name, [one for one in found if one.case.workload == name]) for name in names]


def share(of: Sequence[Line], column: str) -> float:
    """Of the best pairs' gains, as logarithms, of all workloads."""
    most = sum(max(0.0, math.log(each.best)) for each in of)
    return sum(math.log(getattr(each, column)) for each in of) / most


def measure(short: bool) -> list[Figure]:
    """The short form judges a few splits, and nothing of what it finds."""
    chosen = cases(SHORT if short else CASES)
    with ProcessPoolExecutor(1 if short else None) as pool:
        run = lines(list(pool.map(judge, chosen, chunksize=8)))
        hour = [] if short else lines(list(pool.map(judge_hour, cases(LONG), chunksize=4)))
        apart = {
            what: lines(list(pool.map(judge, unlike(group), chunksize=8)))
            for what, group in ({} if short else UNLIKE).items()
        }
    tell(f"{len(chosen) // 6} splits, runs of {RUN_S} s", run)
    if hour:
        tell(f"{LONG} splits, {HOUR_S} s", hour)
    figures = [*figures_of("run", run, not short), *(figures_of("hour", hour, True) if hour else [])]
    gains = [each for each in run if each.best >= 1.05]
    return [
        *figures,
        *(
            Figure(f"run, nothing known of {what}: share, {way}", share(of, column), "")
            for what, of in apart.items()
            for way, column in (("first guess alone", "guess"), ("learner alone", "alone"), ("both", "both"))
        ),
        Figure("seconds of a held-out workload whose order is told: reads", order_told("_r_"), ""),
        Figure("the same: writes", order_told("_w_"), ""),
        Figure("half-seconds to nine tenths of the best, median", _median(gains, "samples"), ""),
        Figure("the same without first guess", _median(gains, "alone_samples"), ""),
    ]


def _median(of: Sequence[Line], column: str) -> float:
    return float(statistics.median(getattr(each, column) for each in of)) if of else math.inf


def figures_of(name: str, of: Sequence[Line], limits: bool) -> list[Figure]:
    losses = {each.workload: 1.0 - each.both for each in of if flat(each.workload)}
    worst = max(losses, key=lambda name: losses[name])
    return [
        Figure(f"{name}: share of the best pairs' gains, first guess alone", share(of, "guess"), ""),
        Figure(f"{name}: share, learner alone", share(of, "alone"), ""),
        Figure(f"{name}: share, both", share(of, "both"), "", least=0.5 if limits else None),
        Figure(f"{name}: share, both, in the last minute", share(of, "end"), ""),
        Figure(f"{name}: share, both, with the default list of values", share(of, "shipped"), ""),
        Figure(f"{name}: share, nearest known workload", share(of, "neighbour"), ""),
        Figure(f"{name}: share, a random pair", share(of, "random"), ""),
        Figure(f"{name}: gain of both, most of a workload (DIAL 1.75)", max(each.both for each in of), "x"),
        Figure(f"{name}: gain of the best pair there", max(each.best for each in of), "x"),
        Figure(
            f"{name}: loss where the default is best, mean of {len(losses)} workloads",
            statistics.fmean(losses.values()),
            "",
            most=2 * MOST_LOSS if limits else None,
            goal=MOST_LOSS,
        ),
        Figure(f"{name}: the same, most of a workload ({worst})", losses[worst], ""),
        Figure(f"{name}: standard error of a pair's gain there", noise(worst), ""),
    ]


def tell(title: str, of: Sequence[Line]) -> None:
    """The table of docs/tuning-study.md; not on standard output, which may be JSON."""
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        print(f"\n  {title}")
        head = "workload best random nearest guess alone both listed end worst samples alone tries"
        rows = [(each.workload, *(_text(n, x) for n, x in enumerate(each[1:], 1))) for each in of]
        print_table(tuple(head.split()), rows)
    finally:
        sys.stdout = out


def _text(column: int, value: float) -> str:
    return f"{value:.3f}" if column < 10 else "never" if value == math.inf else f"{value:.0f}"
