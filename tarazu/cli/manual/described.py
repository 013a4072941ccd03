"""What a command's parser says of it: the one source of man pages, of completion and of the docs' list of commands."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from tarazu.cli import COMMANDS, command, top_parser

FILE, DIRECTORY, PROGRAM, APPLICATION, STEP = "file", "directory", "program", "application", "step"
_TAKES = {
    "FILE": FILE,
    "PATH": FILE,
    "DIR": DIRECTORY,
    "DIRECTORY": DIRECTORY,
    "directory": DIRECTORY,
    "PROGRAM [ARGS…]": PROGRAM,
    "program": PROGRAM,
    "application": APPLICATION,
    "APP": APPLICATION,
    "RUN": STEP,
    "JOB": STEP,
}
"""A word in the place of an argument → what it stands for."""


@dataclass(frozen=True)
class Option:
    """An option, or an argument that has none."""

    flags: tuple[str, ...]
    """`--json`; empty for an argument by its place."""
    argument: str
    """`FILE`, as `--help` writes it; empty for an option without one."""
    help: str
    choices: tuple[str, ...]
    takes: str
    """`file`, `directory`, …; empty where nothing is known of it."""


@dataclass(frozen=True)
class Command:
    """A command, or a verb of one."""

    name: str
    """All of its words: `tarazu bursts report`."""
    summary: str
    """One line."""
    usage: str
    description: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]
    verbs: tuple[Command, ...]


def of_parser(parser: argparse.ArgumentParser, summary: str) -> Command:
    """All that `--help` shows, and that of the verbs."""
    formatter = parser._get_formatter()
    options: list[Option] = []
    arguments: list[Option] = []
    verbs: list[Command] = []
    for action in _shown(parser):
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            verbs += [of_parser(sub, texts.get(name, "")) for name, sub in action.choices.items()]
            continue
        option = _option(action, formatter)
        (options if option.flags else arguments).append(option)
    return Command(
        parser.prog,
        summary,
        " ".join(parser.format_usage().removeprefix("usage: ").split()),
        (parser.description or "").strip(),
        tuple(options),
        tuple(arguments),
        tuple(verbs),
    )


def _shown(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for group in parser._action_groups:
        yield from (action for action in group._group_actions if action.help is not argparse.SUPPRESS)


def _option(action: argparse.Action, formatter: argparse.HelpFormatter) -> Option:
    by_default = action.dest.upper() if action.option_strings else action.dest
    # `--help` prints a positional's metavar and choices alike; an option without an argument has nargs 0.
    argument = "" if action.nargs == 0 else formatter._format_args(action, by_default)
    if action.nargs == argparse.REMAINDER and isinstance(action.metavar, str):
        argument = action.metavar
    word = action.metavar if isinstance(action.metavar, str) else by_default
    takes = _TAKES.get(word, FILE if action.type is Path else "")
    if action.dest in ("app", "application"):
        takes = APPLICATION
    return Option(
        tuple(action.option_strings),
        argument,
        formatter._expand_help(action) if action.help else "",
        tuple(str(choice) for choice in action.choices if choice != []) if action.choices else (),
        takes,
    )


def commands() -> list[Command]:
    """Every command of `tarazu`. Imports all their modules."""
    return [of_parser(command(name)[0], COMMANDS[name][1]) for name in COMMANDS]


def top() -> Command:
    return of_parser(top_parser(), "balance I/O on Lustre, from the application's open() to the disk")


def daemons() -> list[tuple[Command, str]]:
    """Every daemon that the package installs, and how its module opens: what it publishes, follows and does when
    a peer is silent. A daemon's module has `command_line() -> ArgumentParser`.
    """
    found = []
    for entry in sorted(distribution("tarazu").entry_points.select(group="console_scripts")):
        if entry.name != "tarazu":
            module = importlib.import_module(entry.module)
            parser: argparse.ArgumentParser = module.command_line()
            found.append((of_parser(parser, parser.description or ""), (module.__doc__ or "").strip()))
    return found
