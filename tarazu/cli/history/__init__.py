"""What tarazu remembers of your runs, and learns from: look at it, add to it, take it elsewhere, forget it.

tarazu history list                          your applications
tarazu history list ior                      the runs of one
tarazu history show ior                      what its newest run created
tarazu history import ~/darshan/*.darshan    learn from Darshan logs of earlier runs
tarazu history export ior > ior.csv          for pandas, DuckDB, a spreadsheet
tarazu history forget ior --before 2026-01-01

`tarazu history VERB --help` says more.
"""

from __future__ import annotations

import argparse
import importlib

from tarazu.cli.output import common_options

VERBS = {
    "list": ("list_", "list applications, or the runs of one"),
    "show": ("show", "what one run created"),
    "import": ("import_", "learn from Darshan logs, or take in an exported history"),
    "export": ("export", "write runs as CSV, JSON or Parquet"),
    "forget": ("forget", "remove runs"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="action", required=True, metavar="VERB")
    for verb, (module_name, text) in VERBS.items():
        module = importlib.import_module(f"tarazu.cli.history.{module_name}")
        one = sub.add_parser(
            verb,
            help=text,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[common_options()],
        )
        module.configure(one)
        one.set_defaults(execute=module.execute)


def execute(options: argparse.Namespace) -> int:
    return int(options.execute(options))
