"""Which router (I/O node) serves which compute nodes: what other mappings would have given, and set one.

    tarazu change bursts remap --advise                      what each mapping gives on the site's traffic; sets nothing
    tarazu change bursts remap --apply                       on mdsd's node, as root: let mdsd plan `folded`
    tarazu change bursts remap --undo                        there: the mapping before, or none
    tarazu change bursts remap --networks                    instead: networks of LNet, for /etc/lnet.conf

Mappings: contiguous (neighbours share a router), round-robin (node i has router i % n), folded (neighbours have
different routers, in few rules). Rules are set where `part.routers.mode` is `apply`; jobs with routers of their own
keep those. With two mdsds use --apply and --undo on both nodes.

moved: nodes that get another router. busiest 10 %: mean share of an interval's bytes on the busiest tenth of the
routers. of busiest 1 %: routers that serve the busiest 1 % of the nodes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tarazu import config
from tarazu.cli.output import Progress, action_options, print_json, print_table, say
from tarazu.cli.stopped import refuse_while_stopped
from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.names import shown
from tarazu.parts.bursts.mapping import agent as mapping
from tarazu.parts.changes import here
from tarazu.parts.changes.agent import Plan
from tarazu.parts.changes.commands import undo
from tarazu.parts.routers import mapping_file, udsp
from tarazu.parts.routers.settings import Routers
from tarazu.units import counted, figure

if TYPE_CHECKING:
    from tarazu.parts.bursts.mapping.mappings import Site
    from tarazu.parts.bursts.mapping.rules import Addresses
    from tarazu.parts.bursts.traffic.machine import Machine
    from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

VERB = "tarazu change bursts remap"
NAMES = ("contiguous", "round-robin", "folded")
DAYS, DAY_S = 14, 86_400.0


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--advise": "what mappings give; change nothing (default)",
            "--apply": "let mdsd plan the mapping",
            "--undo": "what was there before",
            "--networks": "print networks of LNet instead: docs/bursts.md",
        },
    )
    parser.add_argument("--mapping", choices=NAMES, default="folded", help="this one (default: folded)")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.undo:
        return undo.one_agent(here.agent_named(settings, "mapping"), VERB, as_json=options.json)
    from tarazu.parts.bursts.mapping.mappings import mappings, offers

    if options.apply:
        _may_apply(settings)
    site = _site(settings)
    by_name = mappings(site, udsp.MOST_RULES)
    if options.apply or options.networks:
        if site.addresses is None:
            raise BadInput("part.routers.nids", "a file with the NIDs of nodes and routers", "none")
        if options.networks:
            return _print_networks(site, by_name[options.mapping], site.addresses)
        return _apply(settings, options.mapping, by_name[options.mapping], site.addresses, options.json)
    period = _period(settings)
    with Progress() as progress:
        offered = offers(site, by_name, _judged_on(*period, progress) if period else None)
    _print_offers(offered, period, site, as_json=options.json)
    return 0


def _may_apply(settings: config.Settings) -> None:
    if _mode_of_rules(settings) == "observe":
        raise BadInput(
            "part.routers.mode", "apply, here and on the OSSs, before a mapping can be set", "observe"
        )
    refuse_while_stopped(settings)


def _mode_of_rules(settings: config.Settings) -> str:
    return settings.part.of("routers", Routers).mode


def _site(settings: config.Settings) -> Site:
    from tarazu.parts.bursts.burstd import here as burstd
    from tarazu.parts.bursts.mapping import rules
    from tarazu.parts.bursts.mapping.mappings import Site
    from tarazu.parts.routers import hosts

    machine = burstd.machine(settings)
    if machine is None:
        raise BadInput("part.bursts.machine", "a file of nodes and routers", "nothing")
    if not machine.nodes or not machine.io_nodes:
        raise BadInput("part.bursts.machine", "nodes, and routers that serve them (io_node=NAME)", "none")
    nids = settings.part.of("routers", Routers).nids
    if not nids.startswith("/"):
        return Site(machine, machine.served_by)
    addresses = rules.addresses(machine, hosts.read(Path(nids)))
    return Site(machine, _present(settings, machine, addresses), addresses)


def _present(settings: config.Settings, machine: Machine, addresses: Addresses) -> Numbers:
    """By the mapping in force, where there is one; else as the machine's file says."""
    from tarazu.parts.bursts.mapping import rules

    try:
        in_force = mapping_file.read(Path(mapping_file.path_of(settings)))
    except TarazuError as error:
        print(shown(f"{VERB}: what is in force is not known: {error}"), file=sys.stderr)
        return machine.served_by
    return rules.served_by(in_force.rules, addresses, machine.served_by) if in_force else machine.served_by


def _period(settings: config.Settings) -> tuple[Path, float, float] | None:
    """The directory of traffic, and the last days of it; None: there is none."""
    from tarazu.parts.bursts.burstd import here as burstd
    from tarazu.parts.bursts.traffic import days

    directory = burstd.traffic(settings)
    span = days.span(directory) if directory.is_dir() else None
    if span is None:
        return None
    end_s = min(span[1], time.time())  # a clock that was ahead may have written days to come
    return directory, max(span[0], end_s - DAYS * DAY_S), end_s


def _judged_on(directory: Path, begin_s: float, end_s: float, progress: Progress) -> Iterator[Traffic]:
    from tarazu.parts.bursts.traffic import days

    for chunk in days.read(directory, begin_s, end_s):
        yield chunk
        if len(chunk):
            progress(f"judging: {(float(chunk.time_s[-1]) - begin_s) / (end_s - begin_s):.0%}")


def _apply(
    settings: config.Settings, name: str, numbers: Numbers, addresses: Addresses, as_json: bool
) -> int:
    """By hand: whatever was left to somebody else, or taken back. Raises Unavailable where it is not set."""
    from tarazu.parts.bursts.mapping import rules

    its, path = rules.rules(numbers, addresses), mapping_file.path_of(settings)
    if not 0 < rules.on_a_server(its) <= udsp.MOST_RULES:
        expected = f"rules, at most {udsp.MOST_RULES} on a server"
        raise BadInput(f"mapping {name}", expected, rules.on_a_server(its))
    agent = mapping.agent_of(settings)
    agent.resume()
    change = mapping.change_of(settings, name, its, f"{VERB} --apply", f"uid {os.getuid()}")
    outcome = agent.follow(Plan((change,)), "apply", "", of=lambda held: False)
    for failure in outcome.wrong:
        raise Unavailable(failure.why)
    if as_json:
        print_json({"written": path, "mapping": name, "rules": [str(rule) for rule in its]})
        return 0
    say(f"{path}: {name}: {len(its)} rules; mdsd plans it, and takes it away after --undo")
    if addresses.unknown:
        print(_without_nid(addresses.unknown, len(addresses.nodes)))
    if _mode_of_rules(settings) == "advise":
        print("part.routers.mode is advise: OSSs say what they would set, and set nothing")
    return 0


def _print_offers(
    offered: list[dict[str, Any]],
    period: tuple[Path, float, float] | None,
    site: Site,
    *,
    as_json: bool = False,
) -> None:
    from tarazu.parts.bursts.commands.report_text import MAPPED, mapped

    most = udsp.MOST_RULES
    unknown = site.addresses.unknown if site.addresses else None
    if as_json:
        print_json(
            {
                "offers": offered,
                "judged_s": period[2] - period[1] if period else 0.0,
                "rules": most,
                "nodes_without_nid": unknown,
            }
        )
        return
    if period:
        say(f"judged on {(period[2] - period[1]) / DAY_S:.3g} days")
    print_table(
        ("mapping", "moved", *MAPPED, "most nodes", "rules"),
        [
            (
                its["name"],
                its["moved"],
                *(mapped(its["judged"]) if its["judged"] else ("-",) * len(MAPPED)),
                its["most_nodes"],
                figure(its["rules"], "d"),
            )
            for its in offered
        ],
    )
    for line in _remarks(offered, unknown, len(site.machine.nodes)):
        print(line)


def _remarks(offered: list[dict[str, Any]], unknown: int | None, nodes: int) -> Iterator[str]:
    from tarazu.parts.bursts.mapping.mappings import PRESENT

    most = udsp.MOST_RULES
    if not any(its["judged"] for its in offered):
        yield "no traffic: what mappings give is not known"
    if any((its["rules"] or 0) > most for its in offered):
        yield f"a server sets {most} rules at most"
    if unknown:
        yield _without_nid(unknown, nodes)
    if unknown is None:
        yield "no NIDs are known (part.routers.nids): without them there are no rules, nothing folded"
    if offered[0]["name"] != PRESENT:
        yield "at present no node is bound to a router (io_node= in the machine's file): data take all routes alike"


def _without_nid(unknown: int, nodes: int) -> str:
    return f"{unknown} of {counted(nodes, 'node')} have no NID (part.routers.nids): no rule is for them"


def _print_networks(site: Site, numbers: Numbers, addresses: Addresses) -> int:
    from tarazu.parts.bursts.mapping import rules

    for line in rules.networks(numbers, site.machine, addresses):
        say(line)
    return 0
