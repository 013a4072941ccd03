"""The offline evaluation for the docs: `python -m tarazu.parts.council.study.tables FOLDER --out docs`.

FOLDER keeps the simulated runs of the 144 situations (made when they are not there). `tuning-offline.csv` has tables II
to IV of the paper as printed, with ours beside them; `tuning-offline.svg` is its figures 4 and 5.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from tarazu import drawing, durable
from tarazu.cli.output import Progress
from tarazu.errors import TarazuError
from tarazu.parts.council.study import offline, pictures, sampled
from tarazu.parts.council.study.requests import dataset, situations
from tarazu.parts.council.study.requests.situation import TABLE_III, WINDOWS
from tarazu.parts.council.study.sampled import GENERATED, OURS, PAPER, SIX, Evaluated, Improved

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
TABLE = "tuning-offline.csv"
PICTURE = "tuning-offline.svg"
PRINTED = "C, as printed"
HEADER = ("table", "of", "learner", "what", "value")

Row = tuple[str, str, str, str, str]


def csv_text(found: Evaluated, path: str) -> str:
    """All tables, a number in each row."""
    text = io.StringIO()
    rows = (*_learners(found), *_table_2(found), *_table_3(path), *_table_4(found), *_figure_5(found))
    csv.writer(text, lineterminator="\n").writerows((HEADER, *rows))
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
    of = {PRINTED: PRINTED_II} | {name: sampled.table_2(found.all[name].precision) for name in (PAPER, OURS)}
    for name, rows in of.items():
        for operation, values in rows.items():
            for what, value in zip(("min.", "median", "mean", "max."), values, strict=True):
                yield "II", operation, name, f"growth of precision, per cent: {what}", f"{value:.2f}"


def _table_3(path: str) -> Iterator[Row]:
    data = sampled.data(path)
    for letter, number in zip(TABLE_III, SIX, strict=True):
        one = data[number]
        yield "III", letter, "", "best window here", WINDOWS[int(np.argmax(one.shares))]
        yield "III", letter, "", "ahead by, per cent", f"{100 * one.lead:.1f}"


def _table_4(found: Evaluated) -> Iterator[Row]:
    for what, printed in PRINTED_IV.items():
        of = {PRINTED: printed}
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
    options = _options(argv)
    try:
        if options.out:
            drawing.pyplot()  # before all that is long
        path = GENERATED if options.folder == GENERATED else str(_data(Path(options.folder)))
        with Progress() as progress:
            evaluation = sampled.evaluate(
                path, options.repetitions, options.others, jobs=options.jobs, tell=progress
            )
        written = csv_text(evaluation, path)
        print(written, end="")
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            durable.replace(options.out / TABLE, written.encode())
            durable.replace(options.out / PICTURE, pictures.offline_picture(evaluation).encode())
    except TarazuError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tarazu.parts.council.study.tables",
        description="Learners on sampled observations of the 144 situations (docs/tuning-study.md, Offline).",
        epilog="example: python -m tarazu.parts.council.study.tables /tmp/situations --out docs",
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        help=f"the simulated runs, made when they are not there; `{GENERATED}`: a made-up set",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"write {TABLE} and {PICTURE} there")
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
    sys.exit(import_module("tarazu.parts.council.study.tables").main())
