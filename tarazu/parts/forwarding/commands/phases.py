"""The I/O phases of a run: when it read or wrote what, how, and with how many processes.

tarazu history phases ~/darshan/*.darshan          of Darshan logs (with DXT by the calls' own times)
tarazu history phases ~/.local/state/tarazu/history/lustre/ior/*    of recorded runs
tarazu history phases LOG --csv > phases.csv       for pandas, DuckDB, a spreadsheet

A phase is what ranks did at the same time to one shared file, or each to its own. Requests are contiguous, sequential
(ascending with gaps) or random. Without --api each file counts under its uppermost interface, and bytes may be summed;
with `--api all` they count several times.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tarazu import ranges
from tarazu.cli.output import Progress, print_json, print_table
from tarazu.errors import BadInput, TarazuError
from tarazu.names import shown
from tarazu.parts.forwarding.loaded import Loaded, load
from tarazu.table import write_csv
from tarazu.trace.phases.combine import DISTANCE_S
from tarazu.trace.phases.phase import THRESHOLD, Phase

COLUMNS = (
    "job",
    "start",
    "end",
    "type",
    "rank(s)",
    "bytes",
    "time",
    "api",
    "#requests",
    "spatiality",
    "files",
    "#files",
    "mode of #processes",
)
"""Seconds after the start of the run; `time` is the parallel I/O time; `files`: shared or unique."""
UNKNOWN = "unknown"
APIS = ("top", "all", "POSIX", "STDIO", "MPI-IO", "HDF5", "PNETCDF")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", nargs="+", metavar="LOG", help="Darshan log, run of the history, or spool")
    parser.add_argument(
        "--api", choices=APIS, default="top", help="which interface counts (default: a file's uppermost)"
    )
    parser.add_argument("--under", metavar="DIR", default="", help="only files below this directory")
    parser.add_argument(
        "--threshold",
        type=float,
        default=THRESHOLD,
        metavar="SHARE",
        help=f"share of a phase's requests that may be other than the rest (default: {THRESHOLD:g})",
    )
    parser.add_argument(
        "--distance",
        type=float,
        default=DISTANCE_S,
        metavar="S",
        help=f"phases that are alike and no more seconds apart are one (default: {DISTANCE_S:g})",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="as CSV")
    form.add_argument("--json", action="store_true", help="as JSON, with the sizes of requests")


def execute(options: argparse.Namespace) -> int:
    if not 0 <= options.threshold < 1:
        raise BadInput("--threshold", "0 or more, and less than 1", options.threshold)
    if not 0 <= options.distance < float("inf"):
        raise BadInput("--distance", "0 seconds or more", options.distance)
    logs, bad = [], []
    with Progress() as progress:
        for number, path in enumerate(options.logs, 1):
            progress(f"{number} of {len(options.logs)}: {path}")
            try:
                logs.append(
                    load(
                        path,
                        threshold=options.threshold,
                        distance_s=options.distance,
                        api=options.api,
                        under=os.path.abspath(options.under) if options.under else "",
                    )
                )
            except TarazuError as error:
                bad.append(error)
    for problem in bad:
        print(shown(f"tarazu history phases: {problem}"), file=sys.stderr)
    if not logs:
        return BadInput.exit_status
    if options.json:
        print_json([msgspec.structs.asdict(one) for one in logs])
    elif options.csv:
        write_csv(sys.stdout, COLUMNS, [row for one in logs for row in _rows(one)])
    else:
        print_table(COLUMNS, [row for one in logs for row in _rows(one)], left=1)
    if not options.json:
        for one in logs:
            for note in one.notes:
                print(f"{Path(one.path).name}: {note}", file=sys.stderr)
    return BadInput.exit_status if bad else 0


def _rows(one: Loaded) -> Iterator[tuple[object, ...]]:
    """A row for each phase, as COLUMNS says."""
    for phase in one.phases:
        yield (
            one.job,
            f"{phase.start_s:.6f}",
            f"{phase.end_s:.6f}",
            phase.operation,
            _ranks(phase, one.ranks),
            phase.bytes,
            f"{phase.io_s:.6f}" if phase.io_s else UNKNOWN,
            phase.api,
            phase.requests or UNKNOWN,
            phase.spatiality,
            phase.sharing,
            phase.files,
            phase.processes_per_file,
        )


def _ranks(phase: Phase, run_ranks: int) -> str:
    """`all`, the rank if it was one, else how many they were."""
    if phase.rank_count >= run_ranks > 1:
        return "all"
    if phase.ranks is not None and len(phase.ranks) == 1:
        return ranges.fold(phase.ranks)
    return str(phase.rank_count)
