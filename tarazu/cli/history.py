"""List the remembered runs: one line per application, or per run of one application.

tarazu history list
tarazu history list ior
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tarazu import config
from tarazu.cli.output import common_options, print_json, print_table
from tarazu.errors import TraceError
from tarazu.trace.history import History
from tarazu.trace.records import RunRecord
from tarazu.units import human_bytes


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="action", required=True, metavar="list")
    listing = sub.add_parser("list", help="list applications, or the runs of one", parents=[common_options()])
    listing.add_argument("application", nargs="?", help="show each run of this application")
    listing.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    history = History(Path(config.load(options.config).run.history_dir).expanduser())
    problems: list[TraceError] = []
    found = [
        (fs, app, history.runs(fs, app, problem=problems.append))
        for fs, app in history.applications()
        if options.application in (None, app)
    ]
    if options.json:
        print_json([_summary(fs, app, run) for fs, app, runs in found for run in runs])
    elif options.application:
        print_table(
            ("started", "fs", "ranks", "files", "bytes", "hit", "miss", "late", "mode", "seconds", "exit"),
            [_line(fs, run) for fs, _, runs in found for run in runs],
            left=2,
        )
    else:
        print_table(
            ("application", "fs", "runs", "last run", "files", "bytes"),
            [
                (app, fs, len(runs), _when(runs[-1]), len(runs[-1].files), human_bytes(_bytes(runs[-1])))
                for fs, app, runs in found
                if runs
            ],
            left=2,
        )
    for problem in problems:
        print(f"skipped: {problem}", file=sys.stderr)
    return 0


def _line(fs: str, run: RunRecord) -> tuple[object, ...]:
    outcomes = run.outcomes
    return (
        _when(run),
        fs,
        run.step.ranks,
        len(run.files),
        human_bytes(_bytes(run)),
        outcomes.get("hit", 0) + outcomes.get("partly", 0),
        outcomes.get("miss", 0),
        outcomes.get("late", 0),
        run.mode,
        f"{run.duration_s:.1f}",
        run.exit_status,
    )


def _summary(fs: str, app: str, run: RunRecord) -> dict[str, object]:
    return {
        "application": app,
        "fs": fs,
        "start_s": run.start_s,
        "duration_s": run.duration_s,
        "ranks": run.step.ranks,
        "files": len(run.files),
        "bytes": _bytes(run),
        "mode": run.mode,
        "outcomes": run.outcomes,
        "exit_status": run.exit_status,
        "complete": run.complete,
    }


def _bytes(run: RunRecord) -> int:
    return sum(f.size_bytes for f in run.files)


def _when(run: RunRecord) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.start_s))
