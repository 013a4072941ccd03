"""List the remembered runs: one line per application, or per run of one application.

tarazu history list
tarazu history list ior
"""

from __future__ import annotations

import argparse
import sys

from tarazu.cli.history.chosen import chosen, history_of
from tarazu.cli.output import print_json, print_table
from tarazu.errors import TraceError
from tarazu.trace.records import RunRecord
from tarazu.units import human_bytes, human_time


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("application", nargs="?", help="show each run of this application")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    history = history_of(options)
    problems: list[TraceError] = []
    applications = [
        (fs, app, [(path.stem, run) for path, run in history.each(fs, app, problems.append)])
        for fs, app in chosen(history, options.application, None)
    ]
    if options.json:
        print_json([_summary(fs, app, *run) for fs, app, runs in applications for run in runs])
    elif options.application:
        print_table(
            (
                "started",
                "fs",
                "ranks",
                "files",
                "bytes",
                "hit",
                "miss",
                "late",
                "recorded",
                "seconds",
                "exit",
                "run",
            ),
            [_line(fs, *run) for fs, _, runs in applications for run in runs],
            left=2,
        )
    elif not applications:
        print(
            "no run is remembered: `tarazu run` records them, `tarazu history import` learns from Darshan logs"
        )
    else:
        print_table(
            ("application", "fs", "runs", "last run", "files", "bytes"),
            [
                (app, fs, len(runs), human_time(last.start_s), len(last.files), human_bytes(_bytes(last)))
                for fs, app, runs in applications
                for _, last in runs[-1:]
            ],
            left=2,
        )
    for problem in problems:
        print(f"skipped: {problem}", file=sys.stderr)
    return 0


def _line(fs: str, run_id: str, run: RunRecord) -> tuple[object, ...]:
    outcomes = run.outcomes
    return (
        human_time(run.start_s),
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
        run_id,
    )


def _summary(fs: str, app: str, run_id: str, run: RunRecord) -> dict[str, object]:
    return {
        "application": app,
        "fs": fs,
        "run_id": run_id,
        "start_s": run.start_s,
        "duration_s": run.duration_s,
        "ranks": run.step.ranks,
        "files": len(run.files),
        "bytes": _bytes(run),
        "mode": run.mode,
        "outcomes": run.outcomes,
        "exit_status": run.exit_status,
        "complete": run.complete,
        "source": run.source,
    }


def _bytes(run: RunRecord) -> int:
    return sum(f.size_bytes for f in run.files)
