"""The site's page of commands: what `--help` of each command, verb and daemon prints, without what all have alike."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from collections.abc import Iterator
from importlib.metadata import distribution

from tarazu.cli import GROUPS, command

OPENING = """# Commands

Reference, for everybody who types a command: what it does, examples, its arguments and options. Made by `make docs`
from `--help`, which says more, such as what columns mean; so do the man pages.

Who needs what: users "Your jobs", operators "The system", "What can be changed" and "Daemons", researchers "Studies".

Every command and daemon also takes

- `--help`
- `--config FILE`: the settings (default: `/etc/tarazu/tarazu.toml`)
- `--debug`: tracebacks instead of one line for an error
- `--json`, where the usage names it: the output as JSON

Exit status: 0 done, 1 failed, or found a problem, 2 wrong command line, file or settings. `tarazu run` exits as the
program does.

"""
COMMON = {"help", "config", "debug"}
OF_DAEMONS = {"root", "keys", "verbose"}
DAEMONS = """## Daemons

Each also takes `--root DIR` (read /proc and /sys below this directory), `--keys DIR` (the CURVE keys' directory) and
`--verbose` (log more). Settings have the rest: [settings](settings.md).
"""
GATHERED = [("--json", "as JSON")]
"""Options that many have with the same text: in the usage only."""


def page() -> str:
    """The whole page."""
    os.environ["COLUMNS"] = "120"
    parts = []
    for heading, names in GROUPS.items():
        parts.append(f"## {heading[:1].upper()}{heading[1:]}\n")
        for name in names:
            parts += _sections(command(name))
    parts.append(DAEMONS)
    for entry in sorted(distribution("tarazu").entry_points.select(group="console_scripts")):
        if entry.name != "tarazu":
            parts += _sections(_daemon(importlib.import_module(entry.module).command_line()))
    return OPENING + "\n".join(parts)


def _sections(parser: argparse.ArgumentParser) -> Iterator[str]:
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    yield f"### {parser.prog}\n\n```text\n{_short(parser, group=bool(verbs))}```\n"
    for action in verbs:
        for verb in action.choices.values():
            yield from _sections(verb)


def _short(parser: argparse.ArgumentParser, *, group: bool) -> str:
    """The help without common options; of a group of verbs without examples, which its verbs have."""
    shown = parser._get_formatter()
    shown.add_text(_prose(parser.description or "", group))
    for section in parser._action_groups:
        actions = [action for action in section._group_actions if not _common(action)]
        if actions:
            shown.start_section(None if section.title == "positional arguments" else section.title)
            shown.add_arguments(actions)
            shown.end_section()
    return f"{_usage(parser)}\n\n{shown.format_help().lstrip(chr(10))}"


def _usage(parser: argparse.ArgumentParser) -> str:
    """`tarazu job show [options] [--json] JOB`; as it is written out where somebody wrote it out."""
    if parser.usage:
        return parser.usage % {"prog": parser.prog}
    options = [action for action in parser._actions if action.option_strings]
    words = [parser.prog]
    if any(not _common(action) for action in options):
        words.append("[OPTIONS]")
    words += [f"[{name}]" for name, text in GATHERED for action in options if _is(action, name, text)]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words.append("VERB …")
        elif not action.option_strings:
            name = str(action.metavar or action.dest)
            words.append(
                {"?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …"}.get(str(action.nargs), name)
            )
    return " ".join(words)


def _common(action: argparse.Action) -> bool:
    return (
        action.dest in COMMON
        or isinstance(action, argparse._SubParsersAction)
        or any(_is(action, name, text) for name, text in GATHERED)
    )


def _is(action: argparse.Action, name: str, text: str) -> bool:
    return action.option_strings == [name] and action.help == text


def _prose(description: str, group: bool) -> str:
    """What it does, examples, exit status; of a group not the examples, which its verbs have."""
    first, *others = description.split("\n\n")
    kept = [of for of in others if of.lower().startswith("exit status")]
    if not group:
        kept = [of for of in others if of in kept or re.match(r" *(sudo |eval .*)?tarazu ", of)]
    return "\n\n".join([first, *kept])


def _daemon(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Without the options that all daemons have."""
    parser._action_groups[1]._group_actions = [
        action for action in parser._action_groups[1]._group_actions if action.dest not in OF_DAEMONS
    ]
    return parser
