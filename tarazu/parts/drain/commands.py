"""Keep new files off hot and sick OSTs, for all clients, with Lustre's own parameters.

tarazu change drain --advise                  which OSTs, why, and the lctl commands; changes nothing
tarazu change drain --apply                   on an OSS or the MDS, as root: set them there, and note what was there
tarazu change drain --apply --ost 5,7         there: drain these, whatever they are like; --undo --ost 5 restores one
tarazu change drain --undo                    restore what --apply changed on this node, and nothing else

--apply sets obdfilter.*.degraded on an OSS and osp.*.max_create_count on the MDS; --set chooses. Beware: with
no_create or max_create_count=0 a progressive file created with an explicit OST list cannot be written beyond the
components it has. While the site is stopped --apply does nothing. A reboot ends a drain, and after a week it is
restored.
"""

from __future__ import annotations

import argparse
import contextlib

from tarazu import config
from tarazu.cli.output import Progress, action_options, number, print_json, print_table
from tarazu.cli.stopped import refuse_while_stopped
from tarazu.daemons.asking import view_of, view_since_now
from tarazu.errors import BadInput, LayoutError, TarazuError
from tarazu.layout.setstripe import unfold
from tarazu.model import SystemView
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.commands import undo
from tarazu.parts.changes.commands.apply import say_done
from tarazu.parts.changes.here import NodeAgent
from tarazu.parts.drain import agent as drains
from tarazu.parts.drain import choosing


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
        choices=list(choosing.PARAMETERS),
        help="parameter to set; may be repeated (default: degraded, on an MDS max_create_count)",
    )
    parser.add_argument("--root", default=config.root(), help="root under which /proc and /sys are")


def _osts(text: str) -> tuple[int, ...]:
    try:
        return unfold(text)
    except LayoutError as error:
        raise argparse.ArgumentTypeError(f"expected {error.expected}, found {text!r}") from None


def execute(options: argparse.Namespace) -> int:
    names = tuple(options.set or choosing.DEFAULT)
    settings = config.load(options.config)
    if options.undo:
        agent, of = drains.agent_of(settings, root=options.root), drains.of(options.fs, options.ost)
        each = NodeAgent("drains", "", agent.store, agent)
        status = undo.one_agent(each, drains.COMMAND, as_json=options.json, of=of, hold=False)
        with contextlib.suppress(TarazuError):
            drains.tell(agent, ())  # what cannot be drained is of no interest any more
        return status
    agent = drains.agent_of(settings, root=options.root)
    if options.apply:
        refuse_while_stopped(settings)
        parameters = drains.here(options.root, names)  # before anything is asked
        with drains.alone(agent):
            return _apply(options, settings, agent, parameters)
    view = view_of(settings, options.fs)[0]
    candidates = _candidates(options, drains.with_here(agent, view, options.root))
    shown = tuple(options.set or choosing.PARAMETERS)
    orders = {c.ost: choosing.commands(view.fs_name, c.ost) for c in candidates if not c.held_back}
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


def _print_candidates(found: list[choosing.Candidate], share: float, osts: int) -> None:
    if not found:
        print("no OST is sick or hot")
        return
    limit = f"left in: {choosing.limit(share, osts)}"
    print_table(
        ("OST", "OSS", "why", ""),
        [(c.ost, c.oss, c.why, limit if c.held_back else "drain") for c in found],
        left=4,
    )


def _candidates(options: argparse.Namespace, view: SystemView) -> list[choosing.Candidate]:
    if not view.osts:
        raise BadInput("mdsd", "OSTs in its view", "none")
    osts, share = options.ost, options.share
    return choosing.named(view, share, osts) if osts else choosing.candidates(view, share)


def _apply(
    options: argparse.Namespace, settings: config.Settings, agent: Agent, parameters: dict[str, str]
) -> int:
    view = drains.with_here(agent, view_of(settings, options.fs)[0], options.root)
    found = _candidates(options, view)
    plan = drains.plan_of(view.fs_name, found, parameters, options.share, view.osts)
    if plan.changes and options.share < 1:
        with Progress() as progress:
            text = f"waiting for a report of each OSS ({settings.ossd.interval_s:g} s): what it drains counts"
            view = view_since_now(settings, options.fs, lambda: progress(text))
        view = drains.with_here(agent, view, options.root)
        found = _candidates(options, view)
        plan = drains.plan_of(view.fs_name, found, parameters, options.share, view.osts)
    done, limit = drains.apply(agent, plan), choosing.limit(options.share, len(view.osts))
    if options.json:
        print_json({"osts": found, **done._asdict()})
        return int(bool(done.wrong))
    if not say_done(done):
        print("nothing to change on this server")
    for candidate in (c for c in found if c.held_back):
        print(f"OST {candidate.ost} stays: {candidate.why}, but {limit}")
    return int(bool(done.wrong))
