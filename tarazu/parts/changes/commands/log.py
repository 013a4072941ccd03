"""What happened to changes on this node, by the trails of its agents, oldest first; times are UTC.

tarazu change log                       the last 50 lines
tarazu change log --lever nrs --last 5
tarazu change log --json                a line of JSON each, as the trail has it
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.cli.output import say, whole
from tarazu.parts.changes import here
from tarazu.parts.changes.model.trail import line_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--last", type=whole(1), default=50, metavar="N", help="so many lines (default 50)")
    parser.add_argument("--lever", default="", metavar="NAME", help="only this lever's")
    parser.add_argument("--json", action="store_true", help="as lines of JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    events = here.events(settings, None if options.lever else options.last)
    events = [event for event in events if not options.lever or event.lever == options.lever][-options.last :]
    for event in events:
        say(event.encoded().decode().rstrip("\n") if options.json else line_of(event))
    if not events and not options.json:
        print("the trail is empty: nothing was changed or proposed on this node")
    return 0
