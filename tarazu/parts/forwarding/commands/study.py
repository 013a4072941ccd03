"""Compare policies over many sets of applications at rising I/O load: the figures and claims of paper A.

Each of 100 sets of 40 applications at each of ten loads runs under every policy in the simulator, once with I/O nodes
and once with OSTs as resources: a few minutes on two cores. DIR gets rows.jsonl (a row for each set and policy),
claims.json, and with matplotlib each figure as PNG. Run the same command again and it goes on where it
stopped. Curves over I/O nodes are the 189 measured on MareNostrum 4, those over OSTs are generated;
`--curves generated` takes generated ones for both, a file a site's own:

tarazu sim forward study --out my-study
tarazu sim forward study --out second --curves generated
tarazu sim forward study --out third --curves mine.csv --kind ost

A CSV has the columns application,resources,bytes_per_s, a row for each repetition. docs/forwarding.md says what the
columns of the tables mean.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu.cli.output import print_table, whole
from tarazu.errors import BadInput, TarazuError
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.parts.forwarding.study.study import StudyFindings


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where rows and figures go")
    parser.add_argument(
        "--curves",
        type=lambda text: text if text == "generated" else Path(text),
        metavar="FILE.csv|generated",
        help="a site's own curves, or generated ones (default: measured ones over I/O nodes, generated ones over OSTs)",
    )
    parser.add_argument(
        "--kind",
        choices=("io-node", "ost"),
        help="these resources alone; must be given with a file of curves",
    )
    parser.add_argument(
        "--short", action="store_true", help="two loads, three sets each: to see that it works"
    )
    parser.add_argument(
        "--jobs",
        type=whole(1),
        default=0,
        metavar="N",
        help="processes (default: one on each core; 1: none but this)",
    )


def execute(options: argparse.Namespace) -> int:
    if isinstance(options.curves, Path) and options.kind is None:
        raise BadInput("--curves", "--kind io-node or --kind ost beside it", "none")
    from tarazu.parts.forwarding.study import cases, study
    from tarazu.parts.forwarding.study.workload import LEVELS, SETS

    folder: Path = options.out
    try:
        findings = study.run(
            folder,
            options.curves,
            (options.kind,) if options.kind else cases.KINDS,
            study.SHORT_LEVELS if options.short else LEVELS,
            study.SHORT_SETS if options.short else SETS,
            jobs=options.jobs,
        )
    except OSError as error:
        where = error.filename or folder
        raise TarazuError(f"{where}: expected a place to write to, found {error.strerror!r}") from error
    except KeyboardInterrupt:
        print(
            f"\ntarazu sim forward study: interrupted; the same command goes on from {folder / 'rows.jsonl'}",
            file=sys.stderr,
        )
        return 130
    _show(findings, folder)
    return 1 if findings.lost else 0


def _show(found: StudyFindings, folder: Path) -> None:
    from tarazu.parts.forwarding.study.study import SHORT_SETS

    few = ", from which nothing follows" if found.sets <= SHORT_SETS else ""
    print(f"{counted(found.sets, 'set')} at each load{few}; {found.curves}\n")
    print_table(
        ("resources", "figure", "the paper says", "seen here", "holds"),
        [(c.kind, c.figure, c.paper, c.seen, "yes" if c.holds else "NO") for c in found.claims],
        left=4,
    )
    print()
    print_table(
        ("resources", "known", "load", "metric", "joint", "best of the paper's", "", "ratio"),
        [
            (
                *(b.kind, "curves" if b.told == "truth" else "families", f"{b.level:g}", b.metric),
                *(f"{b.ours:.4g}", f"{b.best:.4g}", b.best_by, f"{b.ratio:.3f}"),
            )
            for b in found.beside
        ],
        left=2,
    )
    for text in found.lost:
        print(f"no result: {text}")
    print(f"\n{folder / 'claims.json'}")
