"""The site's page of commands: what `--help` of each command, verb and daemon prints."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Iterator
from importlib.metadata import distribution

from tarazu.cli import GROUPS, command

OPENING = """# Commands

Made by `make docs` from what `--help` prints; the same is in the man pages. `tarazu COMMAND --help` says what the
version that is installed can do.

Exit status of all but `tarazu run`, whose is the program's own: 0 it did what it was asked, 1 it could not, or found
what should not be, 2 the command line, a file or the configuration is not what it must be. Each takes
`--debug` (tracebacks instead of one line) and `--config FILE`.

"""


def page() -> str:
    """The whole page."""
    os.environ["COLUMNS"] = "120"
    parts = []
    for heading, names in GROUPS.items():
        parts.append(f"## {heading[:1].upper()}{heading[1:]}\n")
        for name in names:
            parts += _sections(command(name), 3)
    parts.append("## Daemons\n")
    for entry in sorted(distribution("tarazu").entry_points.select(group="console_scripts")):
        if entry.name != "tarazu":
            parts += _sections(importlib.import_module(entry.module).command_line(), 3)
    return OPENING + "\n".join(parts)


def _sections(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {parser.prog}\n\n```text\n{parser.format_help()}```\n"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _sections(verb, min(6, level + 1))
