"""Take back what tarazu has set on this node, now: no daemon, mdsd or free disk is needed.

    sudo tarazu change undo --all           all as before tarazu; daemons set nothing here until `tarazu change apply`
    sudo tarazu change undo 3f9a 51c0       these changes, which are not made again until `tarazu change apply ID`
    sudo tarazu change undo --lever nrs     all of one lever, likewise

What somebody else has set since stays his, and is named. Exit status 1: something is still set, or may be set again;
it says what, why, and what to do. You can repeat it. For all nodes: `tarazu disable --site --reason TEXT`.
"""

from __future__ import annotations

import argparse
import contextlib
import threading
from collections.abc import Iterator

from tarazu import config
from tarazu.cli.output import Progress, print_json, say
from tarazu.errors import BadInput, ConfigError, Unavailable
from tarazu.parts.changes import by_hand, here, words
from tarazu.parts.changes.commands import rows
from tarazu.parts.changes.commands.person import by_option, login
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.store import CHANGES
from tarazu.units import counted

LOOK_S = 0.5
MOST = 5
"""Restored changes of a lever that are named."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="as `tarazu change list` shows it")
    parser.add_argument("--lever", default="", metavar="NAME", help="all of this lever")
    parser.add_argument("--all", action="store_true", help="all of this node, and hold it so")
    parser.add_argument("--json", action="store_true", help="as JSON")
    by_option(parser)


def execute(options: argparse.Namespace) -> int:
    if sum(map(bool, (options.ids, options.lever, options.all))) != 1:
        raise BadInput("tarazu change undo", "IDs, or --lever NAME, or --all")
    wrong = ""
    try:
        settings = config.load(options.config)
    except ConfigError as error:
        if not options.all:
            raise
        settings, wrong = config.Settings(), str(error)
        if not options.json:
            say(f"{wrong}; looking in the usual directories")
    by = options.by or login()
    with _watching() as watch:
        if options.all:
            done = list(by_hand.undo_all(settings, by, watch))
        else:
            agents = here.listed(settings) if options.ids else []
            chosen = [here.found(agents, id) for id in options.ids]
            done = list(by_hand.undo(settings, chosen, options.lever, by, watch))
    others = [each.name for each in here.agents_of(settings) if each.is_others]
    if not done and others:
        raise Unavailable(rows.NOT_YOURS)
    if not done and options.lever:
        raise BadInput(options.lever, "a lever of this node, as `tarazu change list` shows it", "none")
    failed = bool(wrong) or any(each.failed for each in done)
    if options.json:
        print_json({"agents": [each._asdict() for each in done], "others": others, "problem": wrong})
        return int(failed)
    for each in done:
        _say_done(each)
    for each in done:  # last, so that nobody has to look for it above
        _say_failed(each)
    if not done:
        where = "these directories list no changes" if wrong else "tarazu has never set anything on this node"
        print(f"nothing to restore: {where}")
    if others and options.all:
        say(f"skipped, because another user owns them: {', '.join(others)}; use sudo")
    if not options.all and done and not failed:
        print("not made again until `tarazu change apply`")
    if options.all and done:
        print(
            "still set, or not stopped: see above"
            if failed
            else "nothing is set again until `tarazu change apply`"
        )
    return int(failed)


def one_agent(
    each: here.NodeAgent,
    verb: str,
    *,
    as_json: bool,
    of: by_hand.Of | None = None,
    hold: bool = True,
    goes_on: str = "",
) -> int:
    """`--undo` of a verb that is about one lever: all of this agent's, or what `of` says; held until `goes_on`, by
    default its `--apply`.
    """
    goes_on = goes_on or f"{verb} --apply" if hold else ""
    return tell(take_back(each, verb, of, hold=hold), goes_on, as_json=as_json)


def take_back(
    each: here.NodeAgent, verb: str, of: by_hand.Of | None = None, *, hold: bool = True
) -> by_hand.Undone:
    with _watching() as watch:
        return by_hand.undo_agent(
            each, f"{verb} --undo, {login()}", of or (lambda held: True), watch, hold=hold
        )


def tell(done: by_hand.Undone, goes_on: str = "", *, as_json: bool = False) -> int:
    """`goes_on`: the command that lets it go on."""
    if as_json:
        print_json(done._asdict())
        return int(done.failed)
    _say_done(done)
    _say_failed(done)
    if goes_on and not done.not_held:
        print(f"nothing is set again until `{goes_on}`")
    return int(done.failed)


@contextlib.contextmanager
def _watching() -> Iterator[by_hand.Watch]:
    """Tells how much is still to be taken back, of what takes longer than a moment."""
    ended = threading.Event()
    agents: list[here.NodeAgent] = []

    with Progress() as progress:

        def tell() -> None:
            while not ended.wait(LOOK_S):
                for each in agents[-1:]:
                    progress(
                        f"{each.name}: {counted(len(each.store.held_changes), 'change')} still to be taken back"
                    )

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield agents.append
        finally:
            ended.set()
            teller.join()


def _say_done(each: by_hand.Undone) -> None:
    by_lever: dict[str, list[Held]] = {}
    for held in each.restored:
        if held.theirs:
            say(f"restored: {_named(held)}, but for what somebody else has set: {_theirs(held)}")
        else:
            by_lever.setdefault(held.change.lever, []).append(held)
    for lever, of in by_lever.items():
        for held in of[:MOST]:
            say(f"restored: {_named(held)}")
        if len(of) > MOST:
            say(f"restored: {lever}: {len(of) - MOST} more (tarazu change log)")
    for held in each.left:
        say(f"left alone: {_named(held)}: somebody else has set {_theirs(held)}")
    if not (each.restored or each.left or each.still_set):
        say(f"{each.agent}: nothing to restore")


def _say_failed(each: by_hand.Undone) -> None:
    alike: dict[tuple[str, str], list[Held]] = {}
    for still, why in each.still_set:
        if still:
            alike.setdefault((still.change.lever, why), []).append(still)
        else:
            say(f"{each.agent}: cannot tell what is set: {why}")
            if f"/{CHANGES}: " in why:
                say("  see tarazu change log for the earlier values; once they are back, remove that file")
    for (lever, why), of in alike.items():
        for still in of[:MOST]:
            say(f"STILL SET: {_named(still)}: {why}")
            for part in still.before[:3]:
                say(f"  was: {part.name} {words.short(part.value, 80) or 'nothing'}")
        if len(of) > MOST:
            say(f"STILL SET: {lever}: {len(of) - MOST} more (tarazu change list): {why}")
    if each.not_held:
        stop = f"; stop it: systemctl stop {each.unit}" if each.unit else ""
        say(f"{each.agent} may set it again: {each.not_held}{stop}")


def _named(held: Held) -> str:
    change = held.change
    return f"{change.lever} {change.target}".rstrip() + f" [{change.id}]"


def _theirs(held: Held) -> str:
    return ", ".join(
        f"{part} {words.short(value, 80)}".rstrip() for part, value in list(held.theirs.items())[:3]
    )
