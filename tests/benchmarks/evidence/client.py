"""Clients' pairs of `osc_rpcs` on measured half-seconds: twelve workloads, lists of values from half of them.

Each split of the twelve into halves is one case: the list of values comes from the one half; each workload of the other
is a client that the product's council decides for. A second of it is the mean of two half-second samples, drawn at
random from runs of the one parity; what is moved in it is what the runs of the other parity gave under that pair on
average. So nothing gains by luck that was seen. Samples that follow each other come from different runs: they vary more
than those of one run, and do not drift as a real application does.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import statistics
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from tarazu.cli.output import print_table
from tarazu.parts.council.council import Council
from tarazu.parts.council.learning.careful import Careful
from tarazu.parts.council.levers import USUAL
from tarazu.parts.council.levers.client import PAIR, RpcPair
from tarazu.parts.council.pattern import Direction, Observation
from tarazu.units import KIB
from tests.benchmarks.figure import Figure

DATA = Path(__file__).parents[2] / "data" / "evidence"
RUN_S, HOUR_S = 300, 3600
"""A run of the data; and one that nobody made, of the same samples."""
DEFAULT = RpcPair(1024, 8)
"""What a client has before anything is decided."""
VALUES = 7
"""Of a list."""
GAINS = math.log(1.02)
"""A workload whose best value, of all that may be listed, gains less is one where the default is best."""
MOST_LOSS = 0.01
CASES, SHORT = 240, 2
"""Splits."""
LONG = 24
"""Splits for the hour."""


class ClientPair(NamedTuple):
    """One workload under one pair."""

    even: float
    odd: float
    """Throughput, MB/s, of even and of odd runs."""
    call_kib: float


class Measured(NamedTuple):
    table: dict[str, dict[RpcPair, ClientPair]]
    """By workload and pair."""
    samples: dict[tuple[str, RpcPair, int], list[float]]
    """Workload, pair, parity of the run → MB/s of half-seconds."""

    def mb_s(self, workload: str, pair: RpcPair, parity: int) -> float:
        """What runs of the other parity than `parity` gave."""
        of = self.table[workload][pair]
        return of.even if parity else of.odd

    def gain(self, workload: str, pair: RpcPair, parity: int) -> float:
        """Natural logarithm, beside what a client has by default."""
        return math.log(self.mb_s(workload, pair, parity) / self.mb_s(workload, DEFAULT, parity))

    def draw(self, workload: str, pair: RpcPair, parity: int, random: Random) -> Observation:
        """A second."""
        of = self.samples[workload, pair, parity]
        size = int((random.choice(of) + random.choice(of)) / 2 * 1e6)
        calls = round(size / KIB / self.table[workload][DEFAULT].call_kib)
        moved = Direction(size, max(calls, 1) if size else 0)
        return Observation(1.0, read=moved) if "_r_" in workload else Observation(1.0, write=moved)


@cache
def measured() -> Measured:
    table: dict[str, dict[RpcPair, ClientPair]] = {}
    with (DATA / "client-pairs.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            pair = RpcPair(int(line["pages"]), int(line["rpcs"]))
            numbers = (float(line[name]) for name in ("mb_s_even", "mb_s_odd", "call_kib"))
            table.setdefault(line["workload"], {})[pair] = ClientPair(*numbers)
    samples: dict[tuple[str, RpcPair, int], list[float]] = {}
    with gzip.open(DATA / "client-samples.csv.gz", "rt", newline="") as file:
        for workload, pages, rpcs, run, mb_s, *_ in list(csv.reader(file))[1:]:
            pair = RpcPair(int(pages), int(rpcs))
            samples.setdefault((workload, pair, int(run) % 2), []).append(float(mb_s))
    return Measured(table, samples)


class Case(NamedTuple):
    """One held-out workload of one split."""

    workload: str
    known: tuple[str, ...]
    number: int

    @property
    def parity(self) -> int:
        return self.number % 2


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


def pairs() -> list[RpcPair]:
    """That may be listed."""
    return sorted({pair for _, pair, _ in measured().samples})


def listed(known: Collection[str]) -> list[RpcPair]:
    """Values for these workloads: the default, and one after another what adds most to their gains."""
    values, best = [DEFAULT], dict.fromkeys(known, 0.0)
    gain = {(name, pair): _gain(name, pair) for name in known for pair in pairs()}
    while len(values) < VALUES:
        rest = [pair for pair in pairs() if pair not in values]
        value = max(rest, key=lambda pair: sum(max(best[name], gain[name, pair]) for name in known))
        values.append(value)
        best = {name: max(best[name], gain[name, value]) for name in known}
    return values


@cache
def _gain(workload: str, pair: RpcPair) -> float:
    return statistics.fmean(measured().gain(workload, pair, parity) for parity in (0, 1))


def bound(workload: str, among: Collection[RpcPair]) -> float:
    """What the best of these pairs gains, chosen on half of the runs and judged on the others; natural logarithm."""
    data = measured()

    def found(parity: int) -> float:
        best = max(among, key=lambda pair: data.mb_s(workload, pair, 1 - parity))
        return data.gain(workload, best, parity)

    return statistics.fmean(map(found, (0, 1)))


def noise(workload: str) -> float:
    """Standard error of a pair's gain: by so much the data themselves leave open what it is."""
    data = measured()
    apart = [
        data.gain(workload, pair, 0) - data.gain(workload, pair, 1) for pair in pairs() if pair != DEFAULT
    ]
    return math.sqrt(statistics.fmean(each**2 for each in apart)) / 2


def replayed(case: Case, values: Sequence[RpcPair], seconds: int) -> float:
    """Bytes that a client moves, from the default on, beside those that it moves with it."""
    data, pair = measured(), DEFAULT
    random = Random(f"{case.workload} {case.parity} {case.number}")
    council = Council({PAIR: [str(value) for value in values]}, Careful, seed=case.number, alone=True)
    moved = 0.0
    for second in range(seconds):
        moved += math.exp(data.gain(case.workload, pair, case.parity))
        seen = data.draw(case.workload, pair, case.parity, random)
        council.receive("client", seen, {PAIR: str(pair)}, second + 1.0)
        pair = RpcPair.parse(council.decide(second + 1.0).values.get(PAIR, str(DEFAULT)))
    return moved / seconds


class Judged(NamedTuple):
    case: Case
    held_out: float
    """Gain, as a ratio of bytes, with a list from the other half of the workloads."""
    shipped: float
    """The same with the values that are listed by default, chosen on all twelve."""


def judge(case: Case, seconds: int = RUN_S) -> Judged:
    usual = [RpcPair.parse(value) for value in USUAL[PAIR]]
    return Judged(case, *(replayed(case, values, seconds) for values in (listed(case.known), usual)))


def judge_hour(case: Case) -> Judged:
    return judge(case, HOUR_S)


class Line(NamedTuple):
    """Of one workload: gains, as ratios of bytes moved in the same time."""

    workload: str
    best: float
    random: float
    held_out: float
    shipped: float


def lines(found: Sequence[Judged]) -> list[Line]:
    data, made = measured(), []
    for name in sorted({one.case.workload for one in found}):
        of = [one for one in found if one.case.workload == name]
        random = [math.exp(data.gain(name, pair, parity)) for pair in data.table[name] for parity in (0, 1)]
        made.append(
            Line(
                name,
                math.exp(bound(name, data.table[name])),
                statistics.fmean(random),
                statistics.fmean(one.held_out for one in of),
                statistics.fmean(one.shipped for one in of),
            )
        )
    return made


def measure(short: bool) -> list[Figure]:
    """The short form judges a few splits, and nothing of what it finds."""
    with ProcessPoolExecutor(1 if short else None) as pool:
        run = lines(list(pool.map(judge, cases(SHORT if short else CASES), chunksize=8)))
        hour = [] if short else lines(list(pool.map(judge_hour, cases(LONG), chunksize=4)))
    tell(f"runs of {RUN_S} s", run)
    if hour:
        tell(f"{LONG} splits, {HOUR_S} s", hour)
    return [*figures_of("run", run, not short), *(figures_of("hour", hour, True) if hour else [])]


def figures_of(name: str, of: Sequence[Line], limits: bool) -> list[Figure]:
    flat = [each for each in of if bound(each.workload, pairs()) < GAINS]
    most = sum(max(0.0, math.log(each.best)) for each in of)

    def share(what: str) -> float:
        """Of the best pairs' gains, as logarithms, of all workloads."""
        return sum(math.log(getattr(each, what)) for each in of) / most

    figures = [
        Figure(
            f"{name}: share of the best pairs' gains", share("held_out"), "", least=0.5 if limits else None
        ),
        Figure(f"{name}: share, with the default list of values", share("shipped"), ""),
        Figure(f"{name}: share, a random pair", share("random"), ""),
        Figure(f"{name}: most gain of a workload", max(each.held_out for each in of), "x"),
    ]
    for what, losses in (
        ("", {each.workload: 1.0 - each.held_out for each in flat}),
        (", default list", {each.workload: 1.0 - each.shipped for each in flat}),
    ):
        worst = max(losses, key=lambda name: losses[name])
        figures += [
            Figure(
                f"{name}{what}: loss where the default is best, mean of {len(losses)} workloads",
                statistics.fmean(losses.values()),
                "",
                most=2 * MOST_LOSS if limits else None,
                goal=MOST_LOSS,
            ),
            Figure(f"{name}{what}: the same, most of a workload ({worst})", losses[worst], ""),
            Figure(f"{name}{what}: standard error of a pair's gain there", noise(worst), ""),
        ]
    return figures


def tell(title: str, of: Sequence[Line]) -> None:
    """The table of docs/tuning-study.md; not on standard output, which may be JSON."""
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        print(f"\n  {title}")
        print_table(Line._fields, [(each[0], *(f"{value:.3f}" for value in each[1:])) for each in of])
    finally:
        sys.stdout = out
