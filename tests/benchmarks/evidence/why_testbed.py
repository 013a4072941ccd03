"""`tarazu why` on a testbed with the real daemons: which planted cause it names first, what it leaves unknown."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tarazu.parts.why.facts import Kind
from tests.benchmarks.evidence import slow_runs
from tests.benchmarks.evidence.slow_runs import ALONE, CHANGES, OPTIONS, TWO, Cause, SlowRuns
from tests.benchmarks.figure import Figure
from tests.loop.conftest import make_loop

TIMES = 2
"""Each cause is planted."""
USUAL = Cause("none", ())
LEAST = 0.9
"""Named first, as the goal was set; guessing among the kinds names one in eight."""


def measure(short: bool) -> list[Figure]:
    planted = [ALONE[3]] if short else [*ALONE, *TWO] * TIMES
    with tempfile.TemporaryDirectory() as directory:
        for loop in make_loop(Path(directory, "tb"), CHANGES, **OPTIONS):
            runs = SlowRuns(loop, 2 if short else slow_runs.USUAL_RUNS)
            said = [(cause, runs.why(cause)["why"]) for cause in planted]
            usual = [runs.why(USUAL)["why"] for _ in range(1 if short else 2 * TIMES)]
    alone = [(cause, why) for cause, why in said if len(cause.kinds) == 1]
    two = [(cause, why) for cause, why in said if len(cause.kinds) == 2]
    figures = [
        Figure("guessing: named first", 1 / len(Kind), "share"),
        Figure(f"alone, {len(alone)} runs: named first", _first(alone), "share", least=LEAST),
        Figure("alone: of the lost time given to the planted cause", _given(alone), "share"),
        Figure("alone: not known", _unknown(alone), "share"),
    ]
    if two:
        figures += [
            Figure(
                f"two at once, {len(two)} runs: one of them named first", _first(two), "share", least=LEAST
            ),
            Figure("two at once: both named", _both(two), "share", least=LEAST),
            Figure("two at once: of the lost time given to the two", _given(two), "share"),
            Figure("two at once: not known", _unknown(two), "share"),
        ]
    slow = sum(why["slow"] for why in usual) / len(usual)
    return [*figures, Figure(f"{len(usual)} usual runs: called slow", slow, "share")]


Said = Sequence[tuple[Cause, dict[str, Any]]]


def _first(said: Said) -> float:
    first = [why["causes"][0]["kind"] if why["causes"] else "" for _, why in said]
    return sum(kind in cause.kinds for (cause, _), kind in zip(said, first, strict=True)) / len(said)


def _both(said: Said) -> float:
    named = [{each["kind"] for each in why["causes"]} for _, why in said]
    return sum(set(cause.kinds) <= kinds for (cause, _), kinds in zip(said, named, strict=True)) / len(said)


def _given(said: Said) -> float:
    given = [sum(c["share"] for c in why["causes"] if c["kind"] in cause.kinds) for cause, why in said]
    return sum(given) / len(said)


def _unknown(said: Said) -> float:
    return float(sum(why["unknown"] for _, why in said)) / len(said)
