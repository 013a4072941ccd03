"""Forecast the files of an application's next run from your history. Nothing is sent or placed.

tarazu history predict ior                       the files, sizes and names that are expected
tarazu history predict ior --explain             why: the series, the model chosen, the alternatives
tarazu history predict ior -- mpirun -np 64 ./ior -b 4g     for this command line
"""

from __future__ import annotations

import argparse
import os

import msgspec

from tarazu import config
from tarazu.cli.history.chosen import chosen
from tarazu.cli.output import print_json, print_table
from tarazu.config import own_path
from tarazu.errors import TarazuError
from tarazu.model import ANY_RANK, JobStep
from tarazu.predict import RUNS, aipa
from tarazu.predict.accuracy import mean_size_error, walk_forward
from tarazu.predict.aipa import explain_prediction
from tarazu.store.rows import flat
from tarazu.trace.history import History
from tarazu.trace.records import RunRecord
from tarazu.units import counted, human_bytes, human_time

MOST_LINES = 60


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("application", help="as `tarazu history list` names it")
    parser.add_argument(
        "command", nargs="*", help="the command line that will be run (default: the last one)"
    )
    parser.add_argument("--fs", help="file system (default: the only one with a history)")
    parser.add_argument("--model", choices=["arima", "last", "mean", "drift"], help="default: arima")
    parser.add_argument("--explain", action="store_true", help="say how each forecast was made")
    parser.add_argument("--accuracy", action="store_true", help="score the forecasts of past runs")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    history = History(own_path(settings.run.history_dir))
    runs = _runs(history, options)
    if options.accuracy:
        return _accuracy(runs[-RUNS:], options)
    step = _next_step(runs[-1], options.command)
    prediction = aipa.forecast(runs, step, model=options.model or "arima")
    if options.explain and not options.json:
        print("\n".join(explain_prediction(prediction, runs, step)))
    elif options.json:
        print_json(msgspec.structs.replace(prediction, files=tuple(map(flat, prediction.files))))
    else:
        shown = prediction.files[:MOST_LINES]
        print_table(
            ("file", "rank", "size", "bytes", "after s", "method"),
            [
                (
                    f.name.key,
                    "any" if f.name.rank == ANY_RANK else f.name.rank,
                    human_bytes(f.size_bytes),
                    f.size_bytes,
                    f"{f.at_s:.1f}",
                    f.method,
                )
                for f in shown
            ],
        )
        more = len(prediction.files) - len(shown)
        total = human_bytes(sum(f.size_bytes for f in prediction.files))
        tail = f" ({more} more not shown; --json has all)" if more else ""
        print(f"{counted(len(prediction.files), 'file')}, {total}, from {counted(len(runs), 'run')}{tail}")
    return 0


def _accuracy(runs: list[RunRecord], options: argparse.Namespace) -> int:
    """Each run forecast from those before it, by the model in use and by the last value."""
    models = {name: walk_forward(runs, name) for name in (options.model or "arima", "last")}
    if options.json:
        print_json(models)
        return 0
    chosen, last = models.values()
    print_table(
        ("run", "files", "forecast", "found", "size error", "last value's"),
        [
            (
                human_time(a.start_s),
                a.files,
                a.forecast_files,
                f"{a.hit_rate:.0%}",
                f"{a.size_error:.1%}",
                f"{b.size_error:.1%}",
            )
            for a, b in zip(chosen, last, strict=True)
        ],
    )
    print(f"mean size error {mean_size_error(chosen):.1%}, the last value's {mean_size_error(last):.1%}")
    return 0


def _runs(history: History, options: argparse.Namespace) -> list[RunRecord]:
    named = [fs for fs, _ in chosen(history, options.application, options.fs)]
    if len(named) != 1:
        found = f"runs on {', '.join(named)}: choose with --fs"
        raise TarazuError(f"{options.application}: expected runs on one file system, found {found}")
    runs = history.runs(named[0], options.application)
    if not runs:
        raise TarazuError(f"{options.application}: no run in {history.directory} can be read")
    return runs


def _next_step(last: RunRecord, command: list[str]) -> JobStep:
    if not command:
        return msgspec.structs.replace(last.step, job_id="")
    from tarazu.run.command_line import job_step

    step: JobStep = job_step.identify(
        command, os.environ, fs_name=last.step.fs_name, app=last.step.application
    )
    return step
