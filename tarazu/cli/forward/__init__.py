"""How many and which I/O resources (LNet routers, OSTs) applications get: what policies make of them.

tarazu forward allocate --example > jobs.toml     a file of resources and jobs to begin with
tarazu forward allocate jobs.toml                 what each policy would do with them
tarazu forward study --out my-study               policies over many sets of applications: figures, claims, a report

`tarazu forward VERB --help` says more.
"""

from __future__ import annotations

import argparse

from tarazu.cli.verbs import add_verbs, execute_verb

VERBS = {
    "allocate": ("allocate", "say what each policy would do with given jobs"),
    "study": ("study", "compare policies over many sets of applications, and write a report"),
}


execute = execute_verb


def configure(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser, __name__, VERBS)
