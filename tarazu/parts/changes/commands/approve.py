"""Approve a change that waits for it (mode advise): the daemon makes it in its next round, within limits and goals.

    sudo tarazu change approve 3f9a --reason "as agreed on Monday"

Who approves is the person who called sudo, or --by. With `part.changes.second_person` two different people have to;
what both say is kept in the trail.
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.cli.output import print_json, say
from tarazu.errors import BadInput
from tarazu.parts.changes import by_hand, here
from tarazu.parts.changes.commands.person import by_option, name_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="as `tarazu change list` shows it")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="is kept in the trail")
    parser.add_argument("--json", action="store_true", help="as JSON")
    by_option(parser)


def execute(options: argparse.Namespace) -> int:
    settings, by = config.load(options.config), name_of(options)
    if not options.reason.strip():
        raise BadInput("--reason", "why, in a few words", options.reason)
    one = here.found(here.listed(settings), options.id)
    why = by_hand.approve(settings, one, by, options.reason)
    if options.json:
        print_json({"id": one.id, "approved_by": by, "why_not": why})
        return 0
    say(f"{one.id} is approved by {by}" + (f"; it is not made yet: {why}" if why else ""))
    return 0
