"""Runs with planted causes in the simulator, one and two at once: does `tarazu why` name them, with what they cost?

Every application and pair of causes, severities and places drawn by seed; the truth is the same run simulated without
each of them. Nothing of `tarazu.parts.why` is fitted to these.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from typing import NamedTuple

from tarazu.cli.output import print_table
from tarazu.parts.why.causes import causes
from tarazu.parts.why.facts import Kind
from tests.benchmarks.evidence.simulated import APPLICATIONS, KIND, PLANTABLE, case
from tests.benchmarks.figure import Figure

SEEDS_ALONE, SEEDS_TWO, SEEDS_NONE = 8, 4, 12
FIRST_SEED = 200
LEAST_NAMED = 0.90


class Task(NamedTuple):
    application: str
    planted: tuple[str, ...]
    seed: int


class Answer(NamedTuple):
    task: Task
    cost_s: dict[Kind, float]
    found_s: dict[Kind, float]
    """As `tarazu why` says, the largest first."""
    slow: bool

    @property
    def named(self) -> list[Kind]:
        return list(self.found_s)

    @property
    def first(self) -> bool:
        return self.named[:1] != [] and self.named[0] in self.cost_s

    @property
    def all_first(self) -> bool:
        """All planted before any other."""
        return set(self.named[: len(self.cost_s)]) == set(self.cost_s)

    @property
    def right_s(self) -> float:
        """Of the lost time: given to a cause that was planted, and no more than it cost."""
        return sum(min(self.found_s.get(kind, 0.0), cost) for kind, cost in self.cost_s.items())

    @property
    def wrong_s(self) -> float:
        """Given to causes that were not planted."""
        return sum(seconds for kind, seconds in self.found_s.items() if kind not in self.cost_s)


def measure(short: bool) -> list[Figure]:
    """The short form takes a case of each cause, and judges nothing but that it works."""
    answers = [a for a in _all(tasks(short), short) if a is not None]
    none = [a for a in answers if not a.task.planted]
    alone = [a for a in answers if len(a.cost_s) == 1]
    two = [a for a in answers if len(a.cost_s) == 2]
    tell(answers)
    figures = [
        Figure("slow runs judged", len(alone) + len(two), "", least=None if short else 300),
        Figure(
            "one cause: named first", _share(a.first for a in alone), "", least=None if short else LEAST_NAMED
        ),
    ]
    if two:
        figures += [
            Figure(
                "two causes: one of them first",
                _share(a.first for a in two),
                "",
                least=None if short else LEAST_NAMED,
            ),
            Figure("two causes: both before any other", _share(a.all_first for a in two), ""),
        ]
    slow = [*alone, *two]
    lost = sum(sum(a.cost_s.values()) for a in slow)
    figures += [
        Figure("of the time truly lost, given to its cause", sum(a.right_s for a in slow) / lost, ""),
        Figure("of the time truly lost, given to others", sum(a.wrong_s for a in slow) / lost, ""),
        Figure("error of a cause's share, median", statistics.median(_errors(slow)), ""),
        Figure("slow runs with a cause of a tenth that was not planted", _share(map(_false, slow)), ""),
        Figure("slow runs not called slow", _share(not a.slow for a in slow), ""),
        Figure("usual runs called slow", _share(a.slow for a in none), f"of {len(none)}"),
        Figure("usual runs given a cause", _share(bool(a.found_s) for a in none), ""),
    ]
    return figures


def tasks(short: bool) -> list[Task]:
    found = []
    for application in APPLICATIONS[2:] if short else APPLICATIONS:
        causes_of = PLANTABLE[application]
        planted: list[tuple[tuple[str, ...], int]] = [((), 2 if short else SEEDS_NONE)]
        planted += [((cause,), 1 if short else SEEDS_ALONE) for cause in causes_of]
        if not short:
            planted += [(pair, SEEDS_TWO) for pair in combinations(causes_of, 2)]
        found += [Task(application, of, FIRST_SEED + n) for of, seeds in planted for n in range(seeds)]
    return sorted(found, key=lambda task: (task.application, task.seed))


def answer(task: Task) -> Answer | None:
    made = case(*task)
    if made is None:
        return None
    said = causes(made.run, made.earlier)
    return Answer(task, made.cost_s, {c.kind: c.seconds for c in said.causes}, said.slow)


def _all(of: Sequence[Task], short: bool) -> list[Answer | None]:
    if short:
        return list(map(answer, of))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        return list(pool.map(answer, of, chunksize=16))


def _share(of: object) -> float:
    values = [bool(value) for value in of]  # type: ignore[attr-defined]
    return sum(values) / len(values) if values else 1.0


def _errors(slow: Sequence[Answer]) -> list[float]:
    """Of each planted cause: its share of the lost time as found, less the true one."""
    return [
        abs(a.found_s.get(kind, 0.0) - cost) / sum(a.cost_s.values())
        for a in slow
        for kind, cost in a.cost_s.items()
    ]


def _false(a: Answer) -> bool:
    return any(s >= 0.1 * sum(a.cost_s.values()) for kind, s in a.found_s.items() if kind not in a.cost_s)


def tell(answers: Sequence[Answer]) -> None:
    """By application and cause; not on standard output, which may be JSON."""
    rows: list[tuple[object, ...]] = []
    for name in ("", *KIND):
        for application in APPLICATIONS:
            one = [a for a in answers if a.task.planted == (name,) and a.task.application == application]
            two = [
                a
                for a in answers
                if len(a.cost_s) == 2 and name in a.task.planted and a.task.application == application
            ]
            if one or two:
                cells = [
                    f"{_share(a.first for a in part):.0%} of {len(part)}" if part else "-"
                    for part in (one, two)
                ]
                both = f"{_share(a.all_first for a in two):.0%}" if two else "-"
                rows.append((name, application, *cells, both))
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        print_table(("planted", "application", "alone: first", "with another: one first", "both"), rows)
    finally:
        sys.stdout = out
