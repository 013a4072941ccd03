"""Keep new files off hot and sick OSTs, for all clients, with Lustre's own parameters.

tarazu drain --advise                  which OSTs, why, and the lctl commands; changes nothing
tarazu drain --apply                   on an OSS or the MDS: set them there, and remember what was set
tarazu drain --undo                    restore what --apply changed on this node, and nothing else

--apply sets obdfilter.*.degraded on an OSS and osp.*.max_create_count on the MDS; --set chooses. Where no new
objects are allowed (no_create, max_create_count=0), a progressive file that was created with an explicit OST
list and has not reached a later component yet cannot be written there. While the site is stopped
(`tarazu disable --site`) --apply does nothing; --undo works.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tarazu import config
from tarazu.cli.output import action_options, print_json, print_table
from tarazu.cli.stopped import refuse_while_stopped
from tarazu.daemons.asking import view_of
from tarazu.errors import BadInput
from tarazu.stats import drain

STATE = "/var/lib/tarazu/drain.json"


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
    parser.add_argument(
        "--share", type=_share, default=0.1, metavar="S", help="OSTs that may be out at a time (default 0.1)"
    )
    parser.add_argument(
        "--set",
        action="append",
        choices=list(drain.PARAMETERS),
        help="parameter to set; may be repeated (default: degraded, on an MDS max_create_count)",
    )
    parser.add_argument(
        "--root", default=os.environ.get("TARAZU_ROOT", "/"), help="root under which /proc and /sys are"
    )
    parser.add_argument("--state", type=Path, default=Path(STATE), metavar="FILE", help=f"default: {STATE}")


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"expected a share between 0 and 1, found {text!r}")
    return share


def execute(options: argparse.Namespace) -> int:
    if options.undo:
        return _undo(options)
    names = tuple(options.set or drain.DEFAULT)
    settings = config.load(options.config)
    if options.apply:
        refuse_while_stopped(settings)
        drain.here(options.root, names)  # refuse before anything is asked
    view, _ = view_of(settings, options.fs)
    if not view.osts:
        raise BadInput("mdsd", "OSTs in its view", "none")
    found = drain.candidates(view, options.share)
    if options.apply:
        return _apply(options, view.fs_name, found, names)
    shown = tuple(options.set or drain.PARAMETERS)
    orders = {c.ost: drain.commands(view.fs_name, c.ost) for c in found if not c.held_back}
    if options.json:
        chosen = {ost: {name: order[name] for name in shown} for ost, order in orders.items()}
        print_json({"fs": view.fs_name, "osts": found, "commands": chosen})
        return 0
    _print_candidates(found, options.share, len(view.osts))
    where = {
        "degraded": "on OSS {oss} (2.12 and later; taken only when others do not suffice):",
        "no_create": "on OSS {oss} (2.16.1 and later; no new objects):",
        "max_create_count": "on the MDS (no new objects):",
    }
    for name in shown:
        for candidate in (c for c in found if not c.held_back):
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
    options: argparse.Namespace, fs_name: str, found: list[drain.Candidate], names: tuple[str, ...]
) -> int:
    osts = [c.ost for c in found if not c.held_back]
    changes = drain.apply(fs_name, osts, options.root, options.state, names)
    if options.json:
        print_json({"fs": fs_name, "osts": found, "changed": changes})
        return 0
    for change in changes:
        print(f"{change.parameter}: {change.before} -> {change.after}")
    if not changes:
        print("nothing to change on this server")
    for candidate in (c for c in found if c.held_back):
        print(f"OST {candidate.ost} stays: {candidate.why}, but --share {options.share:g} OSTs are out")
    return 0


def _undo(options: argparse.Namespace) -> int:
    restored, left = drain.undo(options.state)
    if options.json:
        print_json({"restored": restored, "left": [{"change": c, "why": why} for c, why in left]})
        return 0
    for change in restored:
        print(f"{change.parameter}: {change.after} -> {change.before}")
    for change, why in left:
        print(f"{change.parameter}: {why}")
    if not restored and not left:
        print(f"nothing to undo: {options.state} remembers no change")
    return 0
