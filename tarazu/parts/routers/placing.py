"""Which routers carry which running job's bulk data, and the rules that say so to the servers.

A job of which nothing is known gets no rule: its data take all routes alike, as without tarazu. Neither does one that
may use all routers. What running jobs have is changed only where that helps.

Each rule for a node takes the place of those before it (`lnet_udsp_apply_rte_list_on_lpni` clears the node's preferred
routers), so a node has one rule, and its routers are those of one pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tarazu import nids
from tarazu.nids import Nid
from tarazu.parts.forwarding.application import Application, Resources, Scheduler
from tarazu.parts.forwarding.joint.congestion import Modelled, system
from tarazu.parts.routers.udsp import Rule, pattern_of

Placed = Mapping[str, tuple[Nid, ...]]
"""Job → its routers, ascending."""


class RunningJob(NamedTuple):
    """A running job on nodes of one network."""

    id: str
    nodes: frozenset[Nid]
    application: Application | None
    """None: nothing is known of its I/O."""


class RouterPlan(NamedTuple):
    placed: Placed
    """Of the jobs of which something is known."""
    slowdown: Mapping[str, float]
    """Expected I/O-SlowDown of each."""
    alike: Mapping[str, float]
    """The same, if all took all routes alike."""
    moved: int = 0
    """Running jobs that get other routers than they had, though those are there."""


def plan(
    jobs: Sequence[RunningJob], routers: Sequence[Nid], scheduler: Scheduler, current: Placed, gain: float
) -> RouterPlan:
    """What `scheduler` would do now, if it lowers the mean slowdown by the share `gain` at least; else running jobs
    keep what is there of their `current` routers, and newcomers get what it says.
    """
    known = [job for job in jobs if job.application]
    if not known or not routers:
        return RouterPlan({}, {}, {})
    applications = [job.application for job in known if job.application]
    among = Resources("io-node", len(routers), sum(a.nodes for a in applications))
    schedule = scheduler.schedule(applications, among)
    number = {router: n for n, router in enumerate(routers)}
    kept: list[tuple[int, ...]] = []
    fresh = [_expressible(placed, routers) for placed in schedule.placed]
    for job, wanted in zip(known, fresh, strict=True):
        there = [number[router] for router in current.get(job.id, ()) if router in number]
        kept.append(_expressible(there, routers) if there else wanted)
    everywhere = [tuple(range(len(routers)))] * len(known)
    before, after, alike = (slowdowns(applications, p, among) for p in (kept, fresh, everywhere))
    chosen, expected = (fresh, after) if sum(after) < (1 - gain) * sum(before) else (kept, before)
    ids = [job.id for job in known]
    return RouterPlan(
        {id: tuple(routers[n] for n in placed) for id, placed in zip(ids, chosen, strict=True)},
        dict(zip(ids, expected, strict=True)),
        dict(zip(ids, alike, strict=True)),
        sum(a != b and id in current for id, a, b in zip(ids, chosen, kept, strict=True)),
    )


def slowdowns(
    applications: Sequence[Application], placed: Sequence[Sequence[int]], among: Resources
) -> list[float]:
    """Expected I/O-SlowDown of each, by the model of congestion that `joint` has."""
    schedule = Modelled(system(applications, among), [np.array(numbers) for numbers in placed])
    return [float(value) for value in schedule.slowdowns]


def _expressible(placed: Iterable[int], routers: Sequence[Nid]) -> tuple[int, ...]:
    """Those of the routers that one pattern can name."""
    pattern = pattern_of({routers[n] for n in placed}, routers)
    return tuple(n for n, router in enumerate(routers) if pattern.has(router))


def rules(jobs: Iterable[RunningJob], plan: RouterPlan, routers: Collection[Nid]) -> tuple[Rule, ...]:
    """Few rules, of which each node has one at most, those that are worth most first: nodes of the same jobs are one
    group; a node of several jobs may use the routers of all of them. Who may use all `routers` needs no rule.
    """
    placed = plan.placed
    worth = {id: plan.alike[id] / plan.slowdown[id] for id in placed}
    of_node: dict[Nid, tuple[str, ...]] = {}
    for job in jobs:
        if job.id in placed:
            for node in job.nodes:
                of_node[node] = (*of_node.get(node, ()), job.id)
    groups: dict[tuple[str, ...], list[Nid]] = {}
    for node, ids in of_node.items():
        groups.setdefault(ids, []).append(node)
    entries: list[Rule] = []
    for its_jobs, nodes in sorted(
        groups.items(), key=lambda group: (-max(map(worth.__getitem__, group[0])), group)
    ):
        its = {router for id in its_jobs for router in placed[id]}
        if len(its) < len(routers):
            rte = pattern_of(its, routers)
            entries += [Rule(dst, rte) for dst in nids.fold(nodes)]
    return tuple(entries)
