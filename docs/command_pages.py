"""The site's page of commands: what `--help` of each command, verb and daemon prints, without what all have alike."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module

from tarazu.cli import command, groups
from tarazu.daemons.programs import programs

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
EXAMPLE = re.compile(r" *(sudo )?tarazu (?!.*--help)|eval ")
GATHERED = [("--json", "as JSON")]
"""Options that many have with the same text: in the usage only."""


def page() -> str:
    """The whole page."""
    os.environ["COLUMNS"] = "120"
    parts = []
    for heading, names in groups().items():
        parts.append(f"## {heading[:1].upper()}{heading[1:]}\n")
        for name in names:
            parts += _sections(command(name))
    parts.append(DAEMONS)
    for name in sorted(found := programs()):
        parts += _sections(_daemon(import_module(found[name]).command_line()))
    return OPENING + "\n".join(parts)


def _sections(parser: argparse.ArgumentParser, about: str = "") -> Iterator[str]:
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    yield f"### {parser.prog}\n\n```text\n{_short(parser, about, own=not _verbs_have_examples(verbs))}```\n"
    for action in verbs:
        helps = {each.dest: each.help or "" for each in action._choices_actions}
        for name, verb in action.choices.items():
            yield from _sections(verb, helps.get(name, ""))


def _verbs_have_examples(actions: Sequence[argparse._SubParsersAction]) -> bool:
    """Most of them; then those of the group would come twice."""
    verbs = [verb for action in actions for verb in action.choices.values()]
    have = [any(EXAMPLE.match(of) for of in (verb.description or "").split("\n\n")) for verb in verbs]
    return 2 * sum(have) > len(verbs)


def _short(parser: argparse.ArgumentParser, about: str, *, own: bool) -> str:
    """The help without common options; `own`: with its examples, which otherwise its verbs have."""
    shown = parser._get_formatter()
    shown.add_text(_prose(parser.description or f"{about[:1].upper()}{about[1:]}.", own))
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


def _prose(description: str, own: bool) -> str:
    """What it does, examples, exit status."""
    first, *others = description.split("\n\n")
    kept = [of for of in others if of.lower().startswith("exit status") or (own and EXAMPLE.match(of))]
    return "\n\n".join([first, *kept])


def _daemon(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Without the options that all daemons have."""
    parser._action_groups[1]._group_actions = [
        action for action in parser._action_groups[1]._group_actions if action.dest not in OF_DAEMONS
    ]
    return parser
