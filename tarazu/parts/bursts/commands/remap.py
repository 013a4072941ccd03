"""Which router (I/O node) serves which compute nodes: what other mappings would give, and set one.

    tarazu change bursts remap --advise                      what each mapping gives on the site's traffic; sets nothing
    tarazu change bursts remap --advise --mapping together --moves 500
    tarazu change bursts remap --apply --mapping folded      on mdsd's node, as root: let mdsd plan this one
    tarazu change bursts remap --follow                      there, from a timer each hour: one for the jobs that run
    tarazu change bursts remap --undo                        there: no mapping any more, and none until --apply
    tarazu change bursts remap --mapping folded --routes nodes     instead: options of the module lnet, or its networks

Mappings: contiguous (neighbours share a router), round-robin (node i has router i % n), folded (neighbours have
different routers, in few rules), together (learned: nodes that burst together have different routers; together-folded
in few rules), best (the most even that needs 64 rules at most). They learn from the earlier days and are judged on
the later ones. Rules are set where `part.routers.mode` is `apply`; jobs with routers of their own keep those. With
two mdsds use --apply and --undo on both nodes.

moved: nodes that get another router. busiest 10 %: mean share of an interval's bytes on the busiest tenth of the
routers. of busiest 1 %: routers that serve the busiest 1 % of the nodes.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.cli.output import action_options, number, print_json, print_table, say, whole
from tarazu.cli.stopped import refuse_while_stopped
from tarazu.errors import BadInput, InfeasibleRequest, Unavailable
from tarazu.parts.bursts.commands import remap_follow
from tarazu.parts.bursts.commands.remap_input import (
    Period,
    RemapProgress,
    mode_of_rules,
    period_of,
    read,
    site_of,
    traffic,
)
from tarazu.parts.bursts.mapping import agent as mapping
from tarazu.parts.changes import here
from tarazu.parts.changes.agent import Plan
from tarazu.parts.changes.commands import undo
from tarazu.parts.changes.model.change import Score
from tarazu.parts.routers import mapping_file, udsp
from tarazu.units import counted, figure, percent

if TYPE_CHECKING:
    from tarazu.parts.bursts.mapping.follow import OnWindows
    from tarazu.parts.bursts.mapping.offers import Offer, Site
    from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic
    from tarazu.parts.routers.udsp import Rule

VERB = "tarazu change bursts remap"
BEST = "best"
NAMES = (BEST, "contiguous", "round-robin", "folded", "together", "together-folded")


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--advise": "what mappings give; change nothing (default)",
            "--apply": "let mdsd plan the mapping",
            "--follow": "let mdsd plan the one for the jobs that run now, by the last hour's traffic",
            "--undo": "what was there before, and let --follow write none",
        },
    )
    parser.add_argument(
        "--mapping", choices=NAMES, help="this one alone (with --apply and --routes: default best)"
    )
    parser.add_argument(
        "--days", type=number(0.001, 36_500), default=14.0, metavar="N", help="of traffic (default: 14)"
    )
    parser.add_argument(
        "--held-out",
        type=number(0.001, 36_500),
        metavar="N",
        help="of these the last ones judge (default: a third)",
    )
    parser.add_argument(
        "--moves",
        type=whole(0),
        metavar="N",
        help="nodes that `together` may move at most; with --follow, nodes off `folded` (default: 200)",
    )
    parser.add_argument(
        "--windows",
        type=whole(0),
        default=6,
        metavar="N",
        help="hours on which --follow is judged (default: 6)",
    )
    parser.add_argument("--traffic", type=Path, metavar="DIR", help="default: burstd's")
    parser.add_argument(
        "--machine",
        type=Path,
        metavar="FILE",
        help="lines `HOSTS cabinet=NAME io_node=NAME` (part.bursts.machine)",
    )
    parser.add_argument(
        "--routers",
        metavar="HOSTS",
        help="all of them, as rtr[01-89] (default: those that serve nodes by the machine's file)",
    )
    parser.add_argument("--nids", type=Path, metavar="FILE", help="lines `HOST NID…` (part.routers.nids)")
    parser.add_argument(
        "--hops", type=Path, metavar="FILE", help="lines `CABINETS IO_NODES HOPS`, or Slurm's topology.conf"
    )
    parser.add_argument(
        "--routes", choices=("nodes", "networks"), help="print options of lnet instead: docs/bursts.md"
    )


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.undo:
        return undo.one_agent(here.agent_named(settings, "mapping"), VERB, as_json=options.json)
    if options.follow:
        _may_apply(settings)
        return remap_follow.execute(options, settings)
    return _execute(options, settings)


def _execute(options: argparse.Namespace, settings: config.Settings) -> int:
    from tarazu.parts.bursts.mapping import offers, rules

    if options.apply:
        _may_apply(settings)
    site = site_of(options, settings)
    name = options.mapping or (BEST if options.apply or options.routes else "")
    most = udsp.MOST_RULES
    period = period_of(options, settings)
    if period is None and name in (BEST, *offers.LEARN):
        raise Unavailable(
            f"{traffic(options, settings)}: expected traffic, found none: is tarazu-burstd there?"
        )
    mappings = _mappings(options, site, period, offers.NAMES if name in ("", BEST) else (name,), most)
    made = offers.offers(site, mappings, _judged_on(period))
    if name in ("", BEST):
        chosen = offers.best(made, most)
        if chosen is None and (options.apply or options.routes):
            why = f"expected a mapping that is better than the present one, in {most} rules"
            if options.apply:
                mapping.cannot_mend(settings, why)
            raise InfeasibleRequest(why)
    else:
        chosen = next((offer for offer in made if offer.name == name), None)
    if options.routes and chosen:
        return _print_routes(options.routes, site, mappings[chosen.name])
    if not options.apply:
        best = name in ("", BEST)
        hours = None
        if not options.mapping and period is not None:
            hours = remap_follow.judged(options, settings, site, period)
        _print_offers(made, chosen, settings, period, site, hours, best=best, as_json=options.json)
        return 0
    if chosen is None or site.addresses is None:
        raise BadInput("part.routers.nids", "a file with the NIDs of nodes and routers, for rules", "none")
    if chosen.rules is None or not 0 < chosen.rules <= most:
        raise BadInput(
            f"mapping {chosen.name}",
            f"rules, at most {most} on a server ( fewer: --mapping folded)",
            f"{chosen.rules}",
        )
    path = mapping_file.path_of(settings)
    its = rules.rules(mappings[chosen.name], site.addresses)
    _set(settings, chosen.name, its, _scores(made, chosen))
    if options.json:
        print_json({"written": path, "offer": chosen, "rules": [str(rule) for rule in its]})
        return 0
    _print_offers(
        [offer for offer in made if offer.name in (offers.PRESENT, chosen.name)], None, settings, period, site
    )
    say(f"{path}: {chosen.name}: {len(its)} rules; mdsd plans it, and takes it away after --undo")
    if mode_of_rules(settings) == "advise":
        print("part.routers.mode is advise: OSSs say what they would set, and set nothing")
    return 0


def _may_apply(settings: config.Settings) -> None:
    if mode_of_rules(settings) == "observe":
        raise BadInput(
            "part.routers.mode", "apply, here and on the OSSs, before a mapping can be set", "observe"
        )
    refuse_while_stopped(settings)


def _set(settings: config.Settings, how: str, rules: Sequence[Rule], scores: tuple[Score, ...]) -> None:
    """By hand: whatever was left to somebody else, or taken back. Raises Unavailable where it is not set."""
    agent = mapping.agent_of(settings)
    agent.resume()
    why, by = f"{VERB} --apply", f"uid {os.getuid()}"
    change = mapping.change_of(settings, how, rules, why, by, scores)
    done = agent.follow(Plan((change,)), "apply", "", of=lambda held: False)
    for failure in done.wrong:
        raise Unavailable(failure.why)


def _scores(made: list[Offer], chosen: Offer) -> tuple[Score, ...]:
    present = next((offer.judged for offer in made if offer.name == "present"), None)
    before, after = (judged.busiest_share if judged else 0.0 for judged in (present, chosen.judged))
    return mapping.scores_of(before, after)


def _mappings(
    options: argparse.Namespace, site: Site, period: Period | None, names: tuple[str, ...], most: int
) -> dict[str, Numbers]:
    from tarazu.parts.bursts.mapping import history, offers
    from tarazu.parts.bursts.mapping.together import MappingOptions

    learned = None
    if period is not None and {*names} & {*offers.LEARN}:
        learned = history.learn(
            read(period.directory, period.begin_s, period.split_s, "reading"), site.machine
        )
    say_so = RemapProgress()
    mappings = offers.mappings(site, learned, names, MappingOptions(moves=options.moves), most, say_so)
    say_so.end()
    return mappings


def _judged_on(period: Period | None) -> Iterator[Traffic] | None:
    return read(period.directory, period.split_s, period.end_s, "judging") if period else None


def _print_offers(
    made: list[Offer],
    chosen: Offer | None,
    settings: config.Settings,
    period: Period | None,
    site: Site,
    hours: OnWindows | None = None,
    *,
    best: bool = False,
    as_json: bool = False,
) -> None:
    """`best`: `chosen` is the best of them all."""
    from tarazu.parts.bursts.mapping.offers import PRESENT

    unknown = site.addresses.unknown if site.addresses else None
    if as_json:
        print_json(
            {
                "offers": made,
                "best": chosen.name if chosen and best else None,
                "learned_s": period.split_s - period.begin_s if period else 0.0,
                "judged_s": period.end_s - period.split_s if period else 0.0,
                "rules": udsp.MOST_RULES,
                "nodes_without_nid": unknown,
                "follow": hours,
            }
        )
        return
    say(str(period) if period else "no traffic: what mappings give is not known")
    print_table(
        ("mapping", "moved", "busiest 10 %", "by bytes", "of busiest 1 %", "most nodes", "rules", "hops"),
        [
            (
                offer.name,
                offer.moved,
                percent(offer.judged.busiest_share) if offer.judged else "-",
                percent(offer.judged.busiest_share_of_bytes) if offer.judged else "-",
                f"{offer.judged.io_nodes_of_busiest:.1f}" if offer.judged else "-",
                offer.most_nodes,
                "-" if offer.rules is None else offer.rules,
                figure(offer.hops),
            )
            for offer in made
        ],
    )
    most = udsp.MOST_RULES
    if any(offer.rules is not None and offer.rules > most for offer in made):
        print(f"a server sets {most} rules at most")
    if unknown:
        print(
            f"{unknown} of {counted(len(site.machine.nodes), 'node')} have no NID (part.routers.nids): no rule will be "
            "for them, though they are judged as if there were"
        )
    if unknown is None:
        print(
            "no NIDs are known (part.routers.nids, or --nids FILE): without them there are no rules, nothing folded"
        )
    elif best and any(offer.judged for offer in made):
        verdict = f"{chosen.name} is best" if chosen else "none is better than the present one"
        print(f"{verdict}, of those that are judged and have rules for a server")
    if made and made[0].name != PRESENT:
        print(
            "at present no node is bound to a router (io_node= in the machine's file): data take all routes alike, "
            "which no mapping betters"
        )
    if hours:
        remap_follow.show(hours, most)


def _print_routes(what: str, site: Site, numbers: Numbers) -> int:
    from tarazu.parts.bursts.mapping import module_options

    if site.addresses is None:
        raise BadInput(
            "part.routers.nids", "a file with the NIDs of nodes and routers (or --nids FILE)", "none"
        )
    made = module_options.of_nodes if what == "nodes" else module_options.of_networks
    for line in made(numbers, site.machine, site.addresses):
        say(line)
    return 0
