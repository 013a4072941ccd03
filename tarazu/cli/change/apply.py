"""Make a change now; or, without an ID, let the daemons go on after `undo` or `stop`.

    sudo tarazu change apply 3f9a           approve it, forget that it was taken back or left to others, make it
    sudo tarazu change apply                nothing is held, stopped or left to others on this node any more

A change is made within the limits and goals of [changes], whoever asks. Nothing is made while the site is stopped.
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.cli.change import rows
from tarazu.cli.change.person import by_option, login, name_of
from tarazu.cli.output import say
from tarazu.cli.stopped import refuse_while_stopped
from tarazu.daemons.changes import by_hand, here, words


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="as `tarazu change list` shows it")
    parser.add_argument("--reason", default="tarazu change apply", metavar="TEXT", help="stands in the trail")
    by_option(parser)


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if not options.id:
        return rows.say_each(
            settings, by_hand.go_on(settings, options.by or login()), "goes on", "was not stopped"
        )
    refuse_while_stopped(settings)
    one = here.found(here.listed(settings), options.id)
    done = by_hand.apply(settings, one, name_of(options), options.reason)
    for failure in (*done.failed, *done.refused, *done.waits):
        say(f"{' '.join(failure.key).rstrip()}: {failure.why}")
    if any(change.id == one.id for change in done.set):
        say(
            f"{one.id}: {one.lever} {one.target}".rstrip()
            + f" is {words.short(words.values(one.wanted), 80)}"
        )
    elif not (done.failed or done.refused or done.waits):
        say(f"{one.id}: nothing is to be set: it is so already")
    return int(bool(done.failed or done.refused or done.waits))
