"""Compare policies over many sets of applications at rising I/O load: the figures and claims of paper A.

Each of 100 sets of 40 applications at each of ten loads runs under every policy in the simulator, once with I/O nodes
and once with OSTs as resources: a few minutes on two cores. DIR gets rows.jsonl (a row for each set and policy),
report.html (complete in itself), each picture as PNG, figures.json. Run the same command again and it goes on where it
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

from tarazu.cli.output import print_json, print_table
from tarazu.errors import BadInput, TarazuError
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.parts.forwarding.study.study import StudyFindings


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where rows and report go")
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
        "--sets", type=_count, metavar="N", help="sets of applications at each load (default: 100)"
    )
    parser.add_argument(
        "--short", action="store_true", help="two loads, three sets each: to see that it works"
    )
    parser.add_argument(
        "--jobs",
        type=_count,
        default=0,
        metavar="N",
        help="processes (default: one on each core; 1: none but this)",
    )
    parser.add_argument("--fresh", action="store_true", help="forget the rows that are there")
    parser.add_argument("--json", action="store_true", help="claims, comparison and figures as JSON")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return int(text)


def execute(options: argparse.Namespace) -> int:
    if isinstance(options.curves, Path) and options.kind is None:
        raise BadInput("--curves", "--kind io-node or --kind ost beside it", "none")
    from tarazu.parts.forwarding.study import cases, study
    from tarazu.parts.forwarding.study.levels import LEVELS, SETS

    folder: Path = options.out
    try:
        findings = study.run(
            folder,
            options.curves,
            (options.kind,) if options.kind else cases.KINDS,
            study.SHORT_LEVELS if options.short else LEVELS,
            options.sets or (study.SHORT_SETS if options.short else SETS),
            jobs=options.jobs,
            fresh=options.fresh,
        )
    except OSError as error:
        where = error.filename or folder
        raise TarazuError(f"{where}: expected a place to write to, found {error.strerror!r}") from error
    except KeyboardInterrupt:
        print(
            f"\ntarazu forward: interrupted; the same command goes on from {folder / 'rows.jsonl'}",
            file=sys.stderr,
        )
        return 130
    if options.json:
        print_json(findings)
    else:
        _show(findings, folder)
    return 1 if findings.lost else 0


def _show(found: StudyFindings, folder: Path) -> None:
    from tarazu.parts.forwarding.study import study

    few = ", from which nothing follows" if found.sets <= study.SHORT_SETS else ""
    print(f"{counted(found.sets, 'set')} at each load{few}; {found.curves}\n")
    print_table(study.CLAIMS, map(study.claim_cells, found.claims), left=4)
    if found.beside:
        print()
        print_table(study.BESIDE, map(study.beside_cells, found.beside), left=2)
    for text in found.lost:
        print(f"no result: {text}")
    print(f"\n{folder / 'report.html'}")
