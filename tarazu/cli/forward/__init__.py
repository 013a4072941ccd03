"""How many and which I/O resources (LNet routers, OSTs) applications get: what policies make of them.

tarazu forward study --out my-study     policies over many sets of applications: figures, claims, a report

`tarazu forward VERB --help` says more.
"""

from __future__ import annotations

import argparse
import importlib

from tarazu.cli.output import common_options

VERBS = {
    "allocate": ("allocate", "say what each policy would do with given jobs"),
    "study": ("study", "compare policies over many sets of applications, and write a report"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="action", required=True, metavar="VERB")
    for verb, (module_name, text) in VERBS.items():
        module = importlib.import_module(f"tarazu.cli.forward.{module_name}")
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
