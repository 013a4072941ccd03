"""How bursty in space the site's I/O has been: which nodes, cabinets and I/O nodes carried it, and whose jobs it was.

    tarazu change bursts report                        the last seven days of what tarazu-burstd keeps
    tarazu change bursts report --days 1 --json        one day, as JSON
    tarazu change bursts report --out DIR              also a page with pictures (by matplotlib), JSON, CSV
    tarazu change bursts report --from 2026-11-15 --to 2026-11-18 --traffic DIR --jobs sacct.txt --machine machine.txt
                                                of files, wherever they come from

Beside the site's figures stand published ones of Tianhe-1A and CS19. `round-robin` is the same traffic with neighbours
on different I/O nodes (node i on I/O node i % n). Times are UTC.
"""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime
from pathlib import Path

from tarazu import config
from tarazu.cli.output import print_json, whole
from tarazu.errors import Unavailable
from tarazu.parts.bursts.settings import options_of

DAYS = 7


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days", type=whole(1, 100_000), metavar="N", help=f"the last N days of traffic (default {DAYS})"
    )
    parser.add_argument("--from", dest="first", type=_day, metavar="DAY", help="from this day on, 2026-11-15")
    parser.add_argument("--to", dest="last", type=_day, metavar="DAY", help="up to the end of this day")
    parser.add_argument(
        "--traffic", type=Path, metavar="DIR", help="days of traffic (default: tarazu-burstd's)"
    )
    parser.add_argument(
        "--jobs",
        type=Path,
        metavar="FILE",
        help="jobs, as sacct --parsable2 or scontrol show job -o print them",
    )
    parser.add_argument(
        "--machine", type=Path, metavar="FILE", help="where nodes stand (default: part.bursts.machine)"
    )
    parser.add_argument(
        "--applications", type=whole(1, 100_000), default=15, metavar="N", help="so many lines of them (15)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write report.html, pictures, report.json, intervals.csv, jobs.csv",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    try:
        import numpy  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise Unavailable(
            f"expected pyarrow (package tarazu-analysis, or pip install pyarrow): {error}"
        ) from None
    from tarazu.parts.bursts.commands import report_files, report_text
    from tarazu.parts.bursts.measures.report import report

    settings = config.load(options.config)
    period = report_files.measured(
        settings,
        report_files.ReportOptions(
            options.traffic, options.jobs, options.machine, options.days, DAYS, options.first, options.last
        ),
    )
    figures = report(period, communicates=False if options_of(settings).quiet else None)
    if options.out:
        report_files.write(figures, period, options.out, report_files.limits(settings))
    if options.json:
        print_json(figures)
    else:
        for line in report_text.lines(figures, options.applications):
            print(line)
        if options.out:
            print(f"\n{options.out / 'report.html'}")
    return 0


def _day(text: str) -> float:
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a day such as 2026-11-15, found {text!r}") from None
