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

from tarazu.cli.verbs import add_verbs, execute_verb

VERBS = {
    "list": ("list_", "list applications, or the runs of one"),
    "show": ("show", "what one run created"),
    "import": ("import_", "learn from Darshan logs, or take in an exported history"),
    "export": ("export", "write runs as CSV, JSON or Parquet"),
    "gather": ("gather", "remember steps that the site recorded without `tarazu run`"),
    "forget": ("forget", "remove runs"),
}


execute = execute_verb


def configure(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser, __name__, VERBS)
