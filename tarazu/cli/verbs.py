"""A subcommand with verbs of its own, each a module with `configure` and `execute`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping

from tarazu.cli.output import common_options


def add_verbs(parser: argparse.ArgumentParser, package: str, verbs: Mapping[str, tuple[str, str]]) -> None:
    """verbs: verb → (module of `package`, one line of help)."""
    sub = parser.add_subparsers(dest="action", required=True, metavar="VERB")
    for verb, (module_name, text) in verbs.items():
        module = importlib.import_module(f"{package}.{module_name}")
        one = sub.add_parser(
            verb,
            help=text,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[common_options()],
        )
        module.configure(one)
        one.set_defaults(execute=module.execute)


def execute_verb(options: argparse.Namespace) -> int:
    return int(options.execute(options))
