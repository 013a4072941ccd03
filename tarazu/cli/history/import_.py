"""Learn from Darshan logs of earlier runs: `tarazu history predict` and the next run forecast from them at once.

tarazu history import ~/darshan/*.darshan            logs
tarazu history import /darshan/2026/11 --dry-run     all logs below a directory: say what would be learned
tarazu history import old.darshan --mount /scratch --fs scratch2
tarazu history import all.json                       what `tarazu history export` wrote (CSV, JSON, Parquet)

Each log becomes a run of its application on each Lustre file system that it wrote to, once. A log does not name file
systems: they come from this node's mounts, or from --fs. Where one was mounted elsewhere, or the log does not say that
it is Lustre, --mount DIR names its directory (repeat --mount and --fs in pairs). A file that is named through a link,
but has a Lustre layout in the log, is on the log's only Lustre; where there are several, it is left out and named.

Exit status 1: a source could not be used; the others were.
"""

from __future__ import annotations

import argparse
import glob
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.cli.output import Progress, print_json, print_table
from tarazu.config import own_path
from tarazu.errors import TarazuError
from tarazu.run.command_line import job_step
from tarazu.stats.client import mounts
from tarazu.trace.history import KEEP_RUNS, History
from tarazu.trace.places import Place
from tarazu.units import counted, human_bytes, human_time

if TYPE_CHECKING:
    from tarazu.trace.training import TakenRun

MOST_NAMED = 20
"""Logs that are named of each kind that nothing was learned from; --json names all."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="+", metavar="LOG", help="logs, directories, globs, exported histories"
    )
    parser.add_argument(
        "--fs",
        action="append",
        default=[],
        metavar="NAME",
        help="name of the file system (also for an exported history: a new one)",
    )
    parser.add_argument(
        "--mount",
        action="append",
        default=[],
        metavar="DIR",
        help="where the log has it mounted (default: its Lustre mounts)",
    )
    parser.add_argument(
        "--app", default="", metavar="NAME", help="application (default: as `tarazu run` would name it)"
    )
    parser.add_argument(
        "--any-user", action="store_true", help="other users' logs as well, as if they were yours"
    )
    parser.add_argument("--dry-run", action="store_true", help="change nothing; say what would be imported")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    from tarazu.trace.training import (  # numpy: not for the other verbs
        Importer,
        TakenRun,
        TrainingRules,
        tally,
    )

    settings = config.load(options.config)
    importer = Importer(
        History(own_path(settings.run.history_dir)),
        TrainingRules(
            uid=os.getuid(),
            keep_runs=KEEP_RUNS,
            here=tuple(Place(m.path, m.fs_name, m.subdirectory) for m in mounts()),
            named=_named(options.mount, options.fs),
            application=options.app,
            any_user=options.any_user,
            dry_run=options.dry_run,
        ),
        job_step.logged,
    )
    paths, refused = _sources(options.source)
    runs = [TakenRun(source, "refused", why) for source, why in refused]
    with Progress() as progress:
        for number, path in enumerate(paths, 1):
            progress(f"{number} of {counted(len(paths), 'log')}")
            runs += importer.take(path)
    runs = importer.settle(runs)
    if options.json:
        print_json({"dry_run": options.dry_run, "counts": dict(tally(runs)), "runs": runs})
    else:
        _print(runs, options.dry_run)
    return 1 if any(taken.outcome == "refused" for taken in runs) else 0


def _named(directories: list[str], names: list[str]) -> tuple[tuple[str, str], ...]:
    if (directories and len(names) not in (0, 1, len(directories))) or len(names) > max(len(directories), 1):
        raise TarazuError(
            "history import: expected one --fs NAME, or one for each --mount DIR,"
            f" found {len(names)} and {len(directories)}"
        )
    if not directories:
        return tuple(("", name) for name in names)
    names = names or [""]
    return tuple((path, names[i if len(names) > 1 else 0]) for i, path in enumerate(directories))


def _sources(given: list[str]) -> tuple[list[Path], list[tuple[str, str]]]:
    """Files and exported directories, each once; what is none of them, with the reason."""
    from tarazu.trace.training import sources

    paths: dict[Path, None] = {}
    refused = []
    for text in given:
        try:
            for path in _expanded(text):
                paths.update(dict.fromkeys(sources(path)))
        except TarazuError as error:
            refused.append((text, str(error)))
    return list(paths), refused


def _expanded(text: str) -> Iterator[Path]:
    """A glob that no shell has expanded, sorted; else the path itself."""
    if not os.path.lexists(text) and glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True))
        if not matches:
            raise TarazuError(f"{text}: expected files of this pattern, found none")
        yield from map(Path, matches)
    else:
        yield Path(text)


def _print(found: list[TakenRun], dry_run: bool) -> None:
    from tarazu.trace.training import OUTCOMES, tally

    of: dict[tuple[str, str], list[TakenRun]] = {}
    for taken in found:
        if taken.outcome in ("imported", "replaced"):
            of.setdefault((taken.application, taken.fs_name), []).append(taken)
    if of:
        print_table(
            ("application", "fs", "runs", "partial", "first run", "last run", "files", "bytes"),
            [
                (
                    *pair,
                    len(runs),
                    sum(taken.partial for taken in runs),
                    human_time(min(taken.start_s for taken in runs)),
                    human_time(max(taken.start_s for taken in runs)),
                    sum(taken.files for taken in runs),
                    human_bytes(sum(taken.size_bytes for taken in runs)),
                )
                for pair, runs in of.items()
            ],
            left=2,
        )
    counts = tally(found)
    parts = [f"{count} {OUTCOMES[outcome]}" for outcome, count in counts.items()]
    print(("would be: " if dry_run and parts else "") + ("; ".join(parts) or "nothing to import"))
    for outcome in ("foreign", "empty", "refused"):
        named = [taken for taken in found if taken.outcome == outcome]
        for taken in named[:MOST_NAMED]:
            text = taken.why if outcome == "refused" else f"{taken.source}{taken.why and ': '}{taken.why}"
            print(f"{outcome}: {text}", file=sys.stderr)
        if len(named) > MOST_NAMED:
            print(f"{outcome}: {len(named) - MOST_NAMED} more (--json names all)", file=sys.stderr)
    left_out = [taken for taken in found if taken.left_out]
    for taken in left_out[:MOST_NAMED]:
        print(f"left out: {taken.source}: {taken.left_out}", file=sys.stderr)
    if len(left_out) > MOST_NAMED:
        print(f"left out: of {len(left_out) - MOST_NAMED} more (--json names all)", file=sys.stderr)
    for taken in found:
        if taken.partial and taken.outcome in ("imported", "replaced") and taken.why:
            print(f"partial: {taken.source}: {taken.why}", file=sys.stderr)
