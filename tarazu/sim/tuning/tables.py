"""The offline evaluation for the docs: `python -m tarazu.sim.tuning.tables FOLDER --out docs`.

FOLDER keeps the simulated runs of the 144 situations (made when they are not there). Written are `tuning-offline.md`,
tables II, III and IV of the paper as printed and ours beside, and `tuning-offline.svg`, its figures 4 and 5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from tarazu import drawing, durable
from tarazu.cli.output import Progress
from tarazu.errors import TarazuError
from tarazu.sim.requests import dataset, situations
from tarazu.sim.requests.situation import TABLE_III, WINDOWS
from tarazu.sim.tuning import offline, pictures, sampled
from tarazu.sim.tuning.sampled import GENERATED, OURS, PAPER, SIX, Curves, Evaluated, Improved

PRINTED_II = {
    "READ": Improved(26.37, 184.06, 216.10, 582.35),
    "WRITE": Improved(64.13, 253.89, 272.39, 553.90),
    "Total": Improved(26.37, 226.82, 244.24, 582.35),
}
PRINTED_IV = {
    "precision": (0.88, 0.88, 0.49, 0.87, 0.59, 0.59),
    "performance": (0.99, 0.96, 0.96, 0.97, 0.98, 0.92),
}
OTHERS = 3
COMMAND = "python -m tarazu.sim.tuning.tables FOLDER --out docs"
NAME = "tuning-offline"


def page(found: Evaluated, path: str, others: int) -> str:
    """Markdown."""
    made = " ".join((COMMAND, f"--repetitions {found.repetitions}", f"--others {others}"))
    return (
        "\n\n".join(
            [
                "# Parameters that learn: the offline evaluation",
                f"Made by `{made}`; what it says is in [the study](tuning-study.md#offline). Repetitions of each of "
                f"the 1,008 scenarios for `{PAPER}` (C's algorithm 1, ε = {sampled.EPSILON:g}) and `{OURS}`: "
                + f"{found.repetitions}"
                + (f", for the other learners: {others}" if others else "")
                + f"; {offline.LENGTH} observations, bins of {offline.BIN}, patterns known.",
                "## All scenarios",
                _learners(found),
                "## Table II",
                "By how much precision grows from the first bin to the last, per cent. Here of each situation, "
                f"all {len(WINDOWS)} windows that it may start with together.",
                _table_2(found),
                "## Table III",
                _table_3(path),
                "## Table IV",
                "The last bin.",
                _table_4(found),
                "## Figures 4 and 5",
                f"![Precision of the six patterns, alone with several ε, and in random turns]({NAME}.svg)",
                "Above, as figure 4: each pattern alone, the paper's algorithm with several ε, and ours. Below, as "
                f"figure 5: a pattern by chance at each observation, {sampled.MIXED:,} in all; a bin is {offline.BIN} "
                "observations of that pattern. The mean of the last three bins:",
                _figure_5(found),
            ]
        )
        + "\n"
    )


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---", *("--:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))


def _learners(found: Evaluated) -> str:
    head = (
        "",
        "0.95 reached, mean of all",
        "never",
        "regret",
        "performance at the end",
        "precision at the end",
    )
    return _table(head, [(f"`{name}`", *_learner(curves)) for name, curves in found.all.items()])


def _learner(curves: Curves) -> tuple[str, ...]:
    never = np.mean([[np.isinf(offline.reached(one)) for one in starts] for starts in curves.performance])
    last = slice(-5, None)
    return (
        f"{offline.reached(curves.performance.mean((0, 1))):.0f}",
        f"{100 * never:.0f} %",
        f"{curves.regret.mean():.1f}",
        f"{curves.performance[..., last].mean():.3f}",
        f"{curves.precision[..., last].mean():.2f}",
    )


def _table_2(found: Evaluated) -> str:
    of = {"C, as printed": PRINTED_II}
    of |= {f"`{name}`": sampled.table_2(found.all[name].precision) for name in (PAPER, OURS)}
    return _table(
        ("", "operation", "min.", "median", "mean", "max."),
        [
            (name, operation, *(f"{value:.2f}" for value in values))
            for name, rows in of.items()
            for operation, values in rows.items()
        ],
    )


def _table_3(path: str) -> str:
    data = sampled.data(path)
    lines = []
    for (letter, s), number in zip(TABLE_III.items(), SIX, strict=True):
        one = data[number]
        best = int(np.argmax(one.shares))
        lines.append(
            (
                letter,
                f"{s.nodes}",
                f"{s.processes}",
                "shared" if s.shared else "individual",
                "1D-strided" if s.spatiality == "strided" else s.spatiality,
                f"{s.request_bytes >> 10} KB",
                s.operation,
                WINDOWS[best],
                f"{100 * one.lead:.1f} %",
            )
        )
    head = (
        "",
        "I/O nodes",
        "processes",
        "file",
        "spatiality",
        "request",
        "operation",
        "best window here",
        "ahead by",
    )
    return _table(head, lines)


def _table_4(found: Evaluated) -> str:
    lines = []
    for what, printed in PRINTED_IV.items():
        lines.append((f"C, as printed: {what}", *(f"{value:.2f}" for value in printed)))
        for name in (PAPER, OURS):
            values = getattr(found.all[name], what)[list(SIX), :, -1].mean(1)
            lines.append((f"`{name}`: {what}", *(f"{value:.2f}" for value in values)))
    return _table(("", *TABLE_III), lines)


def _figure_5(found: Evaluated) -> str:
    lines = [
        (f"`{name}`, {how}", *(f"{value:.2f}" for value in values[:, -3:].mean(1)))
        for name in (PAPER, OURS)
        for how, values in (
            ("in turns", found.mixed[name]),
            ("alone", found.all[name].precision[list(SIX)].mean(1)),
        )
    ]
    return _table(("", *TABLE_III), lines)


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    try:
        if options.out:
            drawing.pyplot()  # before all that is long
        path = GENERATED if options.folder == GENERATED else str(_data(Path(options.folder)))
        with Progress() as progress:
            evaluation = sampled.evaluate(
                path, options.repetitions, options.others, jobs=options.jobs, tell=progress
            )
        written = page(evaluation, path, options.others)
        print(written, end="")
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            durable.replace(options.out / f"{NAME}.md", written.encode())
            durable.replace(options.out / f"{NAME}.svg", pictures.offline_picture(evaluation).encode())
    except TarazuError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tarazu.sim.tuning.tables",
        description="Learners on sampled observations of the 144 situations (docs/tuning-study.md, Offline).",
        epilog="example: python -m tarazu.sim.tuning.tables /tmp/situations --out docs",
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        help=f"the simulated runs, made when they are not there; `{GENERATED}`: a made-up set",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"write {NAME}.md and {NAME}.svg there")
    parser.add_argument(
        "--repetitions",
        type=int,
        default=sampled.REPETITIONS,
        metavar="N",
        help="of each scenario, of the paper's algorithm and ours (default: %(default)s)",
    )
    parser.add_argument(
        "--others",
        type=int,
        default=OTHERS,
        metavar="N",
        help="of the other learners (default: %(default)s; 0: none)",
    )
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="processes (default: one on each core)"
    )
    options = parser.parse_args(argv)
    if options.repetitions < 1 or options.others < 0 or options.jobs < 0:
        parser.error("expected one repetition at least, found fewer")
    return options


def _data(folder: Path) -> Path:
    """Raises BadInput, Unavailable as `situations.run`."""
    path = folder / "situations.npz"
    answers = situations.run(folder)
    dataset.write(dataset.gathered(answers.rows), path)
    return path


if __name__ == "__main__":
    sys.exit(import_module("tarazu.sim.tuning.tables").main())
