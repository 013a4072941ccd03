"""`tarazu change bursts remap --follow`, which a timer runs each hour; and what it would have given."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.cli.output import print_json, print_table, say
from tarazu.errors import BadInput, StoreError, Unavailable
from tarazu.parts.bursts.commands.remap_input import (
    Period,
    RemapProgress,
    mode_of_rules,
    read,
    site_of,
    traffic,
)
from tarazu.parts.bursts.mapping import agent as mapping
from tarazu.parts.bursts.mapping.lever import MappingLever
from tarazu.parts.changes.agent import Plan
from tarazu.parts.routers import mapping_file, udsp
from tarazu.past import no_later
from tarazu.units import counted, percent

if TYPE_CHECKING:
    from tarazu.parts.bursts.mapping.follow import OnWindows
    from tarazu.parts.bursts.mapping.offers import Site
    from tarazu.parts.bursts.traffic.traffic import Numbers
    from tarazu.parts.changes.agent import Agent
    from tarazu.parts.changes.model.change import Change, Score
    from tarazu.parts.routers.udsp import Rule

WINDOW_S = 3_600.0
"""What is learned from, and about as long as it holds."""
FRESH_S = 2 * WINDOW_S
"""Older traffic says nothing of the jobs that run."""


def execute(options: argparse.Namespace, settings: config.Settings) -> int:
    """Write the mapping for the next hour, if it is another one than that in force."""
    from tarazu.parts.bursts.mapping import follow, history, judge, rules
    from tarazu.parts.bursts.mapping.simple import moved
    from tarazu.parts.bursts.traffic import days

    agent, path = (
        mapping.agent_of(settings, "tarazu change bursts remap --follow"),
        mapping_file.path_of(settings),
    )
    if agent.store.held:
        return _said(options, f"{path}: {agent.store.nothing_new()}", 0)
    site = site_of(options, settings)
    if site.addresses is None:
        raise BadInput("part.routers.nids", "a file with the NIDs of nodes and routers, for rules", "none")
    most = udsp.MOST_RULES
    base = base_of(site, most)
    directory = traffic(options, settings)
    span = days.span(directory) if directory.is_dir() else None
    now_s = time.time()
    new, why = base, "no traffic of the last two hours"
    scores: tuple[Score, ...] = ()
    end_s = no_later(span[1], now_s) if span else 0.0
    if span and now_s - end_s < FRESH_S and span[0] < end_s:
        learned = history.learn(read(directory, end_s - WINDOW_S, end_s, "reading"), site.machine)
        moves = follow.MOVES if options.moves is None else options.moves
        new = follow.within(learned, site.machine, base, site.present, site.addresses, most, moves)
        why = f"{counted(moved(base, new), 'node')} off folded"
        hour = read(directory, end_s - WINDOW_S, end_s, "judging")
        found = judge.judge({"now": site.present, "new": new}, hour, site.machine)
        before, after = (found[name].busiest_share for name in ("now", "new"))
        scores = mapping.scores_of(before, after)
        agent.saw(MappingLever.name, {"evenness": before})
    its = rules.rules(new, site.addresses)
    if rules.on_a_server(its) > most:
        raise BadInput("rules", f"at most {most} on a server", rules.on_a_server(its))
    changed = moved(site.present, new)
    if _in_force(path) != its:
        change = mapping.change_of(settings, mapping_file.FOLLOW, its, why, agent.name, scores)
        done = agent.follow(Plan((change,)), mode_of_rules(settings), "", of=lambda held: False)
        if agent.store.held:
            return _said(options, f"{path}: {agent.store.nothing_new()}", 0)
        for failure in done.wrong:
            raise Unavailable(failure.why)
        if not done.set:
            return _said(options, f"{path}: {_why_not(agent, change)}", 0)
    return _said(
        options,
        f"{path}: {why}; another router for {counted(changed, 'node')}; {counted(len(its), 'rule')}",
        changed,
    )


def _why_not(agent: Agent, change: Change) -> str:
    held = agent.store.held_changes.get(change.key)
    if held and held.theirs:
        return "somebody else has set it: his until --apply"
    proposals = agent.store.proposals().proposals
    return next((f"{each.change.id}: {each.why_not}" for each in proposals), "it is not set")


def _in_force(path: str) -> tuple[Rule, ...] | None:
    with contextlib.suppress(StoreError):
        found = mapping_file.read(Path(path))
        return found.rules if found else None
    return None


def _said(options: argparse.Namespace, text: str, changed: int) -> int:
    if options.json:
        print_json({"changed": changed, "text": text})
    else:
        say(text)
    return 0


def base_of(site: Site, most_rules: int) -> Numbers:
    """Half of the rules are left for nodes that have other routers."""
    from tarazu.parts.bursts.mapping.folded import folded, units_in
    from tarazu.parts.bursts.mapping.simple import round_robin

    count = len(site.machine.io_nodes)
    if site.addresses is None:
        return round_robin(len(site.machine.nodes), count)
    return folded(units_in(site.addresses, count, most_rules // 2), count)


def judged(
    options: argparse.Namespace, settings: config.Settings, site: Site, period: Period
) -> OnWindows | None:
    """On hours of the days that judge; None where there are not two of them."""
    from tarazu.parts.bursts.mapping import follow
    from tarazu.parts.bursts.mapping.history import TrafficHistory
    from tarazu.parts.bursts.mapping.offers import PRESENT
    from tarazu.parts.bursts.mapping.simple import round_robin

    most = udsp.MOST_RULES
    base = base_of(site, most)
    moves = follow.MOVES if options.moves is None else options.moves
    others = {"round-robin": round_robin(len(site.machine.nodes), len(site.machine.io_nodes)), "folded": base}
    if (site.present >= 0).any():
        others = {PRESENT: site.present, **others}

    def change(learned: TrafficHistory, now: Numbers) -> Numbers:
        if site.addresses is None:
            return follow.follow(learned, site.machine, base, now, moves)
        return follow.within(learned, site.machine, base, now, site.addresses, most, moves)

    say_so = RemapProgress()
    hours = follow.judged(
        lambda begin_s, end_s: read(period.directory, begin_s, end_s, ""),
        site.machine,
        base,
        others,
        (period.split_s, period.end_s),
        WINDOW_S,
        options.windows,
        change,
        site.addresses,
        lambda share: say_so("judging hours", share),
    )
    say_so.end()
    return hours if hours.windows else None


def show(found: OnWindows, most_rules: int) -> None:
    """Beside one another, on the same hours."""
    print(f"\non {found.windows} hours of these days, each learned from the hour before:")
    print_table(
        ("mapping", "busiest 10 %", "by bytes", "of busiest 1 %"),
        [
            (
                name,
                percent(its.busiest_share),
                percent(its.busiest_share_of_bytes),
                f"{its.io_nodes_of_busiest:.1f}",
            )
            for name, its in found.judged.items()
        ],
    )
    needs = f", {found.rules} rules of {most_rules}" if found.rules else ""
    print(f"follow has {found.off:.0f} nodes off folded{needs} (`--follow`, run hourly)")
    if found.rules and not found.off:
        print("either nothing was better, or a server may have no more rules")
