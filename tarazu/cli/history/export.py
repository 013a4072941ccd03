"""Write runs for other tools: one row for each file of a run, with the run's columns.

tarazu history export ior > ior.csv                   CSV on standard output
tarazu history export ior --out ior.parquet           the ending says which format
tarazu history export --out history/ --format csv     a directory: tables runs and files, joined by run_id
tarazu history export --out all.json                  to take your history to another site or home

`tarazu history import` takes all of these back. Columns and units: docs/formats.md, "Exported history".
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tarazu.cli.history.chosen import chosen, history_of
from tarazu.cli.output import Progress
from tarazu.errors import TarazuError, TraceError
from tarazu.trace import exchange
from tarazu.trace.flat import NamedRun
from tarazu.trace.history import History
from tarazu.units import counted


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("application", nargs="?", help="as `tarazu history list` names it (default: all)")
    parser.add_argument("--fs", metavar="NAME", help="only of this file system")
    parser.add_argument(
        "--format", choices=exchange.FORMATS, help="default: by the ending of --out, else csv"
    )
    parser.add_argument("--out", metavar="FILE|DIR", help="default: standard output (not for Parquet)")


def execute(options: argparse.Namespace) -> int:
    history = history_of(options)
    pairs = chosen(history, options.application, options.fs)
    problems: list[TraceError] = []
    count = 0

    def runs() -> Iterator[NamedRun]:
        nonlocal count
        total = sum(len(history.paths(*pair)) for pair in pairs)
        with Progress() as progress:
            for kept in _each(history, pairs, problems):
                count += 1
                progress(f"{count} of {counted(total, 'run')}")
                yield kept

    if options.out is None:
        if options.format == "parquet":
            raise TarazuError("expected --out FILE for Parquet, found standard output")
        out = io.TextIOWrapper(os.fdopen(os.dup(sys.stdout.fileno()), "wb"), encoding="utf-8", newline="")
        sys.stdout.flush()
        with out:
            exchange.write_text(runs(), options.format or "csv", out)
    else:
        path = Path(options.out)
        ending = path.suffix[1:]
        if options.out.endswith("/") or path.is_dir():
            exchange.write_tables(runs(), options.format or "csv", path)
        elif options.format or ending in exchange.FORMATS:
            exchange.write_file(runs(), options.format or ending, path)
        else:
            raise TarazuError(
                f"--out {path}: expected --format, or a name that ends in {', .'.join(('', *exchange.FORMATS))[2:]}"
                f", or a directory"
            )
        print(f"{counted(count, 'run')} to {path}", file=sys.stderr)
    for problem in problems:
        print(f"skipped: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _each(history: History, pairs: list[tuple[str, str]], problems: list[TraceError]) -> Iterator[NamedRun]:
    for pair in pairs:
        for path, run in history.each(*pair, problems.append):
            yield NamedRun(path.stem, run)
