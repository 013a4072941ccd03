"""Keep new files off hot and sick OSTs, for all clients, with Lustre's own parameters.

tarazu change drain --advise                  which OSTs, why, and the lctl commands; changes nothing
tarazu change drain --apply                   on an OSS or the MDS, as root: set them there, and note what was there
tarazu change drain --apply --ost 5,7         there: drain these, whatever they are like; --undo --ost 5 restores one
tarazu change drain --undo                    restore what --apply changed on this node, and nothing else

--apply sets obdfilter.*.degraded on an OSS and osp.*.max_create_count on the MDS; --set chooses. Where no new
objects are allowed (no_create, max_create_count=0), a progressive file that was created with an explicit OST
list and has not reached a later component yet cannot be written there. While the site is stopped
(`tarazu disable --site`) --apply does nothing; --undo works. What was there is noted in a directory that only root may
be able to change; a boot forgets it, as Lustre forgets what was set. After a week tarazu-announcer, or the next command
that changes something there, restores it.
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.changes.held import Held
from tarazu.cli.output import action_options, number, print_json, print_table, say
from tarazu.cli.stopped import refuse_while_stopped
from tarazu.daemons.asking import view_of
from tarazu.daemons.changes.agent import Plan
from tarazu.daemons.changes.agents import drains
from tarazu.daemons.changes.done import Done, Failure
from tarazu.errors import BadInput, LayoutError
from tarazu.layout.setstripe import unfold
from tarazu.stats import drain


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--advise": "print what could be done; change nothing",
            "--apply": "do it, for the OSTs that this server has",
            "--undo": "restore what --apply changed on this server",
        },
        required=True,
    )
    parser.add_argument("--fs", default="", help="which file system, where there are several")
    parser.add_argument("--ost", type=_osts, default=(), metavar="LIST", help="these OSTs: 0-3,7")
    parser.add_argument(
        "--share",
        type=number(0, 1),
        default=0.1,
        metavar="S",
        help="OSTs that may be out at a time (default 0.1)",
    )
    parser.add_argument(
        "--set",
        action="append",
        choices=list(drain.PARAMETERS),
        help="parameter to set; may be repeated (default: degraded, on an MDS max_create_count)",
    )
    parser.add_argument("--root", default=config.root(), help="root under which /proc and /sys are")


def _osts(text: str) -> tuple[int, ...]:
    try:
        return unfold(text)
    except LayoutError as error:
        raise argparse.ArgumentTypeError(f"expected {error.expected}, found {text!r}") from None


def execute(options: argparse.Namespace) -> int:
    names = tuple(options.set or drain.DEFAULT)
    settings = config.load(options.config)
    if options.undo:
        return _undo(options, settings)
    if options.apply:
        refuse_while_stopped(settings)
        drains.here(options.root, names)  # before anything is asked
    view, _ = view_of(settings, options.fs)
    if not view.osts:
        raise BadInput("mdsd", "OSTs in its view", "none")
    osts, share = options.ost, options.share
    candidates = drain.named(view, share, osts) if osts else drain.candidates(view, share)
    if options.apply:
        plan = drains.plan_of(view.fs_name, candidates, drains.here(options.root, names), share, view.osts)
        return _apply(options, settings, candidates, plan)
    shown = tuple(options.set or drain.PARAMETERS)
    orders = {c.ost: drain.commands(view.fs_name, c.ost) for c in candidates if not c.held_back}
    if options.json:
        chosen = {ost: {name: order[name] for name in shown} for ost, order in orders.items()}
        print_json({"fs": view.fs_name, "osts": candidates, "commands": chosen})
        return 0
    _print_candidates(candidates, options.share, len(view.osts))
    where = {
        "degraded": "on OSS {oss} (2.12 and later; taken only when others do not suffice):",
        "no_create": "on OSS {oss} (2.16.1 and later; no new objects):",
        "max_create_count": "on the MDS (no new objects):",
    }
    for name in shown:
        for candidate in (c for c in candidates if not c.held_back):
            print(f"# {where[name].format(oss=candidate.oss)}\n{orders[candidate.ost][name]}")
    return 0


def _print_candidates(found: list[drain.Candidate], share: float, osts: int) -> None:
    if not found:
        print("no OST is sick or hot")
        return
    limit = f"left in: {share:.0%} of {osts} OSTs may be out"
    print_table(
        ("OST", "OSS", "why", ""),
        [(c.ost, c.oss, c.why, limit if c.held_back else "drain") for c in found],
        left=4,
    )


def _apply(
    options: argparse.Namespace, settings: config.Settings, found: list[drain.Candidate], plan: Plan
) -> int:
    agent = drains.drains_of(settings, options.root)
    done = drains.apply(agent, plan)
    held = agent.store.held_changes
    made = [_line(held[change.key], back=False) for change in done.set if change.key in held]
    if options.json:
        print_json({"osts": found, **_as_json("changed", made, done)})
        return _failed(done, quiet=True)
    for each in made:
        print("{parameter}: {before} -> {after}".format(**each))
    if not made and not done.failed:
        print("nothing to change on this server")
    for candidate in (c for c in found if c.held_back):
        print(f"OST {candidate.ost} stays: {candidate.why}, but --share {options.share:g} OSTs are out")
    return _failed(done)


def _undo(options: argparse.Namespace, settings: config.Settings) -> int:
    agent = drains.drains_of(settings, options.root)
    done = drains.undo(agent, options.fs, options.ost) if agent.store.exists else Done()
    restored = [_line(held, back=True) for held in done.restored]
    if options.json:
        print_json(_as_json("restored", restored, done))
        return _failed(done, quiet=True)
    for each in restored:
        print("{parameter}: {before} -> {after}".format(**each))
    for held in done.left:
        say(f"{held.left_to}: set by somebody else, and left so")
    if not any(done):
        print("nothing to undo: nothing was drained here")
    return _failed(done)


def _line(held: Held, *, back: bool) -> dict[str, str]:
    before, after = held.before[0].value, next(iter(held.change.wanted.values()))
    if back:
        before, after = after, before
    return {"parameter": held.change.target, "before": before, "after": after}


def _as_json(name: str, made: list[dict[str, str]], done: Done) -> dict[str, object]:
    return {
        name: made,
        "left": [{"parameter": held.change.target, "now": held.left_to} for held in done.left],
        "failed": [{"parameter": each.key[1], "why": each.why} for each in _wrong(done)],
    }


def _wrong(done: Done) -> list[Failure]:
    return [*done.failed, *done.refused, *done.waits]


def _failed(done: Done, *, quiet: bool = False) -> int:
    for failure in [] if quiet else _wrong(done):
        say(f"{failure.key[1]}: failed: {failure.why}")
    return int(bool(_wrong(done)))
