"""Make a change now; or, without an ID, let the daemons go on after `undo` or `stop`.

    sudo tarazu change apply 3f9a           approve it, forget that it was taken back or left to others, make it
    sudo tarazu change apply                nothing is held, stopped or left to others on this node any more

A change is made within the limits and goals of [part.changes], whoever asks. Nothing is made while the site is stopped.
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.cli.output import print_json, say
from tarazu.cli.stopped import refuse_while_stopped
from tarazu.parts.changes import by_hand, here, words
from tarazu.parts.changes.commands import rows
from tarazu.parts.changes.commands.person import by_option, login, name_of
from tarazu.parts.changes.done import Done


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="as `tarazu change list` shows it")
    parser.add_argument(
        "--reason", default="tarazu change apply", metavar="TEXT", help="is kept in the trail"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    by_option(parser)


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if not options.id:
        return go_on(settings, options.by or login(), as_json=options.json)
    refuse_while_stopped(settings)
    one = here.found(here.listed(settings), options.id)
    done = by_hand.apply(settings, one, name_of(options), options.reason)
    if options.json:
        print_json({"id": one.id, "set": [c.id for c in done.set], "why_not": [f.why for f in done.wrong]})
    elif not say_done(done):
        say(f"{one.id}: nothing to set: it has these values already")
    return int(bool(done.wrong))


def go_on(settings: config.Settings, by: str, agent: str = "", *, as_json: bool = False) -> int:
    """All of this node's agents, or one."""
    outcomes = by_hand.go_on(settings, by, agent)
    return rows.say_each(settings, outcomes, "goes on", "was not stopped", as_json=as_json)


def say_done(done: Done) -> bool:
    """What was set, and what was not and why; False: there was nothing to say."""
    for failure in done.wrong:
        say(f"{' '.join(failure.key).rstrip()}: {failure.why}")
    for change in done.set:
        named = f"{change.id}: {change.lever} {change.target}".rstrip()
        say(f"{named} is {words.short(words.values(change.wanted), 80)}")
    return bool(done.wrong or done.set)
