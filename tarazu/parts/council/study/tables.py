"""The offline evaluation for the docs: `python -m tarazu.parts.council.study.tables FOLDER --out docs`.

FOLDER keeps the simulated runs of the 144 situations (made when they are not there). `tuning-offline.csv` has tables II
to IV of the paper as printed, with ours beside them; `tuning-offline.svg` is its figures 4 and 5. One case is a learner
in one situation, with each window that it may start with.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tarazu import drawing, durable
from tarazu.cli.output import Progress
from tarazu.errors import TarazuError
from tarazu.parts.council.study import offline, pictures
from tarazu.parts.council.study.learners import LEARNERS, OURS, PAPER
from tarazu.parts.council.study.offline import Floats, Measured, Sample
from tarazu.parts.council.study.requests import situations
from tarazu.parts.council.study.requests.situation import SITUATIONS, TABLE_III, WINDOWS
from tarazu.parts.council.study.requests.situations import SituationRow
from tarazu.sim.study import runner
from tarazu.sim.study.case import Case

EPSILON = 0.15
"""Of figure 5, and of the learner as it is."""
EPSILONS = (0.05, 0.1, EPSILON, 0.3)
"""Of figure 4; the paper's own are told apart in its picture alone."""
SEED = 1
REPETITIONS, OTHERS = 100, 3
"""Of each scenario: the paper's and ours; the others."""
MIXED = 1800
"""Observations of figure 5: 300 of each pattern, as alone."""
SIX = tuple(SITUATIONS.index(situation) for situation in TABLE_III.values())
PRINTED = "C, as printed"
PRINTED_II = {
    "READ": (26.37, 184.06, 216.10, 582.35),
    "WRITE": (64.13, 253.89, 272.39, 553.90),
    "Total": (26.37, 226.82, 244.24, 582.35),
}
PRINTED_IV = {
    "precision": (0.88, 0.88, 0.49, 0.87, 0.59, 0.59),
    "performance": (0.99, 0.96, 0.96, 0.97, 0.98, 0.92),
}
TABLE = "tuning-offline.csv"
PICTURE = "tuning-offline.svg"
HEADER = ("table", "of", "learner", "what", "value")

Row = tuple[str, str, str, str, str]
Tell = Callable[[str], object]


class SampledCase(Case, frozen=True):
    """One learner in one situation."""

    folder: str
    learner: str
    epsilon: float | None
    """None: as the learner has it."""
    situation: int
    repetitions: int

    @property
    def weight(self) -> float:
        return self.repetitions * (5.0 if self.learner == OURS else 1.0)


class Curves(NamedTuple):
    """One learner; situations in the order that was asked for."""

    performance: Floats
    """(situations, 7 starts, bins) of the best window's."""
    precision: Floats
    """(situations, 7, bins)"""
    regret: Floats
    """(situations, 7), observations of the best window."""


class Evaluated(NamedTuple):
    """What the docs show."""

    all: Mapping[str, Curves]
    """By learner; all 144 situations."""
    alone: Mapping[str, Floats]
    """Figure 4: learner, or ε → (6, bins) precision."""
    mixed: Mapping[str, Floats]
    """Figure 5: learner → (6, bins) precision; a bin is ten observations of that pattern."""


@lru_cache(2)
def data(folder: str) -> Mapping[int, Measured]:
    """Number of a situation → what was simulated of it in that folder."""
    samples: dict[int, dict[str, Sample]] = {}
    for line in (Path(folder) / "rows.jsonl").read_bytes().splitlines():
        row = msgspec.json.decode(line, type=SituationRow)
        samples.setdefault(row.situation, {})[row.scheduler] = Sample(row.rewards, row.demands)
    return {
        number: Measured(SITUATIONS[number].pattern, tuple(of[window] for window in WINDOWS))
        for number, of in sorted(samples.items())
    }


def rows(case: SampledCase, progress: object = None) -> list[offline.Curves]:
    """By the window with which it starts."""
    options: dict[str, Any] = {} if case.epsilon is None else {"epsilon": case.epsilon}
    make = partial(LEARNERS[case.learner], len(WINDOWS), **options)
    seed = SEED * 10_000 + case.situation * len(WINDOWS)
    return [
        offline.scenario(data(case.folder)[case.situation], make, start, case.repetitions, seed + start)
        for start in range(len(WINDOWS))
    ]


def curves(
    folder: str,
    learner: str,
    repetitions: int,
    tell: Tell,
    *,
    of: Iterable[int] = range(len(SITUATIONS)),
    epsilon: float | None = None,
) -> Curves:
    """`of`: numbers of situations. Raises TarazuError."""
    cases = [SampledCase(folder, learner, epsilon, number, repetitions) for number in of]
    found: dict[Case, list[offline.Curves]] = {}
    for case, outcome in runner.processes(cases, runner.cores(), tell):
        if isinstance(outcome, Exception):
            raise outcome
        found[case] = outcome
        what = learner if epsilon is None else f"{learner}, ε = {epsilon:g}"
        tell(f"{what}: {len(found)} of {len(cases)} situations, {repetitions} repetitions")
    every = [found[case] for case in cases]
    return Curves(*(np.array([[one[n] for one in starts] for starts in every]) for n in range(3)))


def mixed(folder: str, learner: str, repetitions: int, length: int = MIXED) -> Floats:
    """(6, bins) precision, the six patterns of table III in random turns (figure 5); a bin is ten observations of that
    pattern. A and F are one pattern on other numbers of nodes; other sizes of requests keep them apart.
    """
    six = [data(folder)[number] for number in SIX]
    six = [one._replace(pattern=one.pattern._replace(request_bytes=at)) for at, one in enumerate(six)]
    best = [int(np.argmax(one.shares)) for one in six]
    # Each comes some length / 6 times; a tenth fewer come nearly always.
    bins = max(1, int(0.9 * length / len(six) / offline.BIN))
    right = np.full((repetitions, len(six), bins * offline.BIN), np.nan)
    for repetition in range(repetitions):
        own = LEARNERS[learner](len(WINDOWS), repetition)
        which, windows = offline.together(six, own, length, repetition, repetition % len(WINDOWS))
        for at in range(len(six)):
            of = (windows[which == at] == best[at])[: bins * offline.BIN]
            right[repetition, at, : len(of)] = of
    return offline.binned(np.nanmean(right, 0))


def evaluate(folder: str, repetitions: int, tell: Tell) -> Evaluated:
    """Of a folder with all situations. Raises TarazuError."""
    all_ = {
        name: curves(folder, name, repetitions if name in (PAPER, OURS) else OTHERS, tell)
        for name in LEARNERS
    }
    alone = {
        f"ε = {epsilon:g}": (
            all_[PAPER].precision[list(SIX)]
            if epsilon == EPSILON
            else curves(folder, PAPER, repetitions, tell, of=SIX, epsilon=epsilon).precision
        ).mean(1)
        for epsilon in EPSILONS
    }
    alone[OURS] = all_[OURS].precision[list(SIX)].mean(1)
    tell("six patterns mixed")
    return Evaluated(all_, alone, {name: mixed(folder, name, repetitions) for name in (PAPER, OURS)})


def improved(precision: Floats) -> dict[str, tuple[float, ...]]:
    """Precision, first to last bin, in per cent (table II): least, median, mean, most. precision: (144, 7, bins). The
    windows that a situation starts with are taken together: who starts with the best one has nothing to improve, who
    does not may have had none of it in the first bin.
    """
    first, last = precision[..., 0].mean(1), precision[..., -1].mean(1)
    gain = 100 * (last / np.maximum(first, 1e-9) - 1)
    reads = np.array([situation.operation == "read" for situation in SITUATIONS])
    return {
        name: tuple(float(of(gain[which])) for of in (np.min, np.median, np.mean, np.max))
        for name, which in (("READ", reads), ("WRITE", ~reads), ("Total", reads | ~reads))
    }


def csv_text(found: Evaluated, folder: str) -> str:
    """All tables, a number in each row."""
    text = io.StringIO()
    lines = (*_learners(found), *_table_2(found), *_table_3(folder), *_table_4(found), *_figure_5(found))
    csv.writer(text, lineterminator="\n").writerows((HEADER, *lines))
    return text.getvalue()


def _learners(found: Evaluated) -> Iterator[Row]:
    last = slice(-5, None)
    for name, curves in found.all.items():
        never = np.mean([[np.isinf(offline.reached(one)) for one in starts] for starts in curves.performance])
        for what, value in (
            ("0.95 reached, mean of all", f"{offline.reached(curves.performance.mean((0, 1))):.0f}"),
            ("0.95 never reached", f"{never:.2f}"),
            ("regret", f"{curves.regret.mean():.1f}"),
            ("performance at the end", f"{curves.performance[..., last].mean():.3f}"),
            ("precision at the end", f"{curves.precision[..., last].mean():.2f}"),
        ):
            yield "all scenarios", "all", name, what, value


def _table_2(found: Evaluated) -> Iterator[Row]:
    of = {PRINTED: PRINTED_II} | {name: improved(found.all[name].precision) for name in (PAPER, OURS)}
    for name, rows in of.items():
        for operation, values in rows.items():
            for what, value in zip(("min.", "median", "mean", "max."), values, strict=True):
                yield "II", operation, name, f"growth of precision, per cent: {what}", f"{value:.2f}"


def _table_3(folder: str) -> Iterator[Row]:
    for letter, number in zip(TABLE_III, SIX, strict=True):
        one = data(folder)[number]
        yield "III", letter, "", "best window here", WINDOWS[int(np.argmax(one.shares))]
        yield "III", letter, "", "ahead by, per cent", f"{100 * one.lead:.1f}"


def _table_4(found: Evaluated) -> Iterator[Row]:
    for what, printed in PRINTED_IV.items():
        of: dict[str, Iterable[float]] = {PRINTED: printed}
        of |= {name: getattr(found.all[name], what)[list(SIX), :, -1].mean(1) for name in (PAPER, OURS)}
        for name, values in of.items():
            for letter, value in zip(TABLE_III, values, strict=True):
                yield "IV", letter, name, f"{what} in the last bin", f"{value:.2f}"


def _figure_5(found: Evaluated) -> Iterator[Row]:
    for name in (PAPER, OURS):
        for how, values in (
            ("in turns", found.mixed[name]),
            ("alone", found.all[name].precision[list(SIX)].mean(1)),
        ):
            for letter, value in zip(TABLE_III, values[:, -3:].mean(1), strict=True):
                yield "figure 5", letter, name, f"precision {how}, last three bins", f"{value:.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tarazu.parts.council.study.tables",
        description="Learners on sampled observations of the 144 situations (docs/tuning-study.md, Offline).",
        epilog="example: python -m tarazu.parts.council.study.tables /tmp/situations --out docs",
    )
    parser.add_argument(
        "folder", metavar="FOLDER", help="the simulated runs, made when they are not there", type=Path
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"write {TABLE} and {PICTURE} there")
    parser.add_argument(
        "--repetitions",
        type=int,
        default=REPETITIONS,
        metavar="N",
        help="of each scenario, of the paper's algorithm and ours (default: %(default)s)",
    )
    options = parser.parse_args(argv)
    try:
        if options.out:
            drawing.pyplot()  # before all that is long
        situations.run(options.folder)
        with Progress() as progress:
            evaluation = evaluate(str(options.folder), options.repetitions, progress)
        written = csv_text(evaluation, str(options.folder))
        print(written, end="")
        if options.out:
            durable.replace(options.out / TABLE, written.encode())
            durable.replace(
                options.out / PICTURE, pictures.offline_picture(evaluation.alone, evaluation.mixed).encode()
            )
    except TarazuError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    # Other processes know its classes by that name.
    sys.exit(import_module("tarazu.parts.council.study.tables").main())
