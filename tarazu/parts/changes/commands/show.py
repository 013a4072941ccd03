"""All of one change: parts, commands, why, scores, approvals, what came of it, and its lines of the trail.

tarazu change show 3f9a                 by its ID, or how that begins
"""

from __future__ import annotations

import argparse

import msgspec

from tarazu import config
from tarazu.cli.output import print_json, print_table, say
from tarazu.errors import TarazuError
from tarazu.parts.changes import here, words
from tarazu.parts.changes.commands import rows
from tarazu.parts.changes.model.change import Part, value_of
from tarazu.parts.changes.model.trail import line_of

MOST = 20
"""Parts and commands that are printed; --json has all."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="as `tarazu change list` shows it")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    one = here.found(here.listed(settings), options.id)
    now, unknown = here.Now((), one.commands), ""
    try:
        now = here.now_of(settings, one)
    except TarazuError as error:
        unknown = str(error)
    try:
        trail = [event for event in here.events(settings) if event.id == one.id]
    except TarazuError:
        trail = []
    if options.json:
        parts = {part.name: part.value for part in now.parts}
        more = {"now": parts, "now_unknown": unknown, "commands": now.commands, "trail": trail}
        print_json({**msgspec.to_builtins(one), **more})
        return 0
    say(f"{one.id}: {one.lever} {one.target}".rstrip() + f": {words.state(one)} ({one.agent})")
    for name, text in (
        ("why", one.why),
        ("asked by", one.by),
        ("since", rows.moment(one.since_s)),
        ("ends", rows.moment(one.ends_s)),
        ("not made", one.why_not),
        ("gave", words.gave(one)),
        ("now", unknown and f"not known: {unknown}"),
    ):
        if text and text != "-":
            say(f"  {name}: {text}")
    for score in one.scores:
        unit = f" {score.unit}" if score.unit else ""
        say(f"  score: {score.measure} {score.before:g} -> {score.after:g}{unit}")
    for approval in one.approvals:
        say(f"  approved: {rows.moment(approval.at_s)} by {approval.by}: {approval.reason}")
    _say_parts(one, now.parts)
    _say_commands(one, now.commands)
    if trail:
        say("  trail:")
    for event in trail[-MOST:]:
        say(f"    {line_of(event)}")
    return 0


def _say_parts(one: here.Listed, parts: tuple[Part, ...]) -> None:
    shown = {part.name: part.value for part in parts}
    names = list(dict.fromkeys([*one.before, *shown, *filter(None, one.wanted)]))
    if not names:
        return
    print_table(
        ("  part", "before", "now", "wanted", "by others"),
        [
            (
                f"  {name}",
                one.before.get(name, shown.get(name, "-")),
                shown.get(name, "-"),
                value_of(one.wanted, name) or "-",
                one.theirs.get(name, ""),
            )
            for name in names[:MOST]
        ],
        left=5,
    )
    if len(names) > MOST:
        print(f"  and {len(names) - MOST} more: --json has them")


def _say_commands(one: here.Listed, commands: tuple[str, ...]) -> None:
    if commands:
        say("  would take it back:" if one.before else "  would make it:")
    for command in commands[:MOST]:
        say(f"    {command}")
    if len(commands) > MOST:
        print(f"    and {len(commands) - MOST} more: --json has them")
