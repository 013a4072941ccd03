"""Remove runs: of one application, from before a date, or a single one. Forecasts use what is left.

tarazu history forget ior
tarazu history forget ior --before 2026-01-01        also 90d: older than 90 days
tarazu history forget --run 20261120T120000.123456-0f2c9d1e

A running step keeps its plan and is remembered when it ends.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tarazu.cli.history.chosen import by_id, chosen, history_of
from tarazu.cli.output import print_json
from tarazu.errors import TarazuError
from tarazu.units import counted


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("application", nargs="?", help="as `tarazu history list` names it (default: all)")
    parser.add_argument("--fs", metavar="NAME", help="only on this file system")
    parser.add_argument(
        "--before", type=_date, metavar="DATE", help="runs that started before: 2026-01-31, 90d"
    )
    parser.add_argument("--run", metavar="ID", help="one run, by a part of its id")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    if not (options.application or options.before or options.run):
        raise TarazuError("expected an application, --before DATE or --run ID, found none")
    history = history_of(options)
    of = {p: pair for pair in chosen(history, options.application, options.fs) for p in history.paths(*pair)}
    paths = [by_id(iter(of), options.run)] if options.run else list(of)
    if options.before:
        stamp = options.before.strftime("%Y%m%dT%H%M%S.%f")
        paths = [path for path in paths if path.name < stamp]
    if paths and not options.dry_run and not options.yes:
        _ask(paths, of)
    removed = paths if options.dry_run else history.forget(paths)
    if options.json:
        print_json({
            "dry_run": options.dry_run,
            "removed": [{"fs": of[p][0], "application": of[p][1], "run_id": p.stem} for p in removed],
        })  # fmt: skip
        return 0
    verb = "would forget" if options.dry_run else "forgot"
    print("\n".join(f"{verb} {line}" for line in _lines(removed, of)) or "nothing to forget")
    return 0


def _lines(paths: list[Path], of: dict[Path, tuple[str, str]]) -> list[str]:
    if len(paths) == 1:
        fs_name, application = of[paths[0]]
        return [f"run {paths[0].stem} of {application} on {fs_name}"]
    counts = Counter(of[path] for path in paths)
    return [
        f"{counted(count, 'run')} of {application} on {fs_name}"
        for (fs_name, application), count in counts.items()
    ]


def _ask(paths: list[Path], of: dict[Path, tuple[str, str]]) -> None:
    """Raises TarazuError unless somebody at a terminal says yes."""
    what = "; ".join(_lines(paths, of))
    if not sys.stdin.isatty():
        raise TarazuError(f"expected --yes where nobody can be asked, to forget {what}")
    print(f"forget {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise TarazuError("nothing was removed")


def _date(text: str) -> datetime:
    """A date and time of the local clock, or how many days ago, in UTC."""
    try:
        if text[-1:] == "d" and text[:-1].isdecimal():
            return datetime.fromtimestamp(time.time(), UTC) - timedelta(days=int(text[:-1]))
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"expected a date such as 2026-01-31 or 90d, found {text!r}"
        ) from None
