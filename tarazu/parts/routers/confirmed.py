"""Which of the nodes that leaders tell of count.

With a scheduler: those of the step's job, if the job is the step's user's. Without one there is only the leaders' word;
then nodes that steps of several users claim are nobody's, and keep all routes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tarazu.batch.jobs import JobNodes
from tarazu.batch.node_set import unfold
from tarazu.errors import BadInput
from tarazu.nids import Nid
from tarazu.parts.routers.hosts import Hosts
from tarazu.parts.routers.nodes import RoutedStep
from tarazu.units import counted


class Confirmed(NamedTuple):
    step: RoutedStep
    nodes: frozenset[Nid]
    why: str
    """Why some of the nodes that its leader reported do not count; empty where all do."""


def by_scheduler(steps: Sequence[RoutedStep], jobs: Mapping[str, JobNodes], known: Hosts) -> list[Confirmed]:
    """The leader's nodes as far as the scheduler agrees; where it reported none, the scheduler's."""
    known.look()
    confirmed = []
    unfolded: dict[str, tuple[frozenset[Nid] | None, frozenset[tuple[int, ...]]]] = {}
    for step in steps:
        job = jobs.get(step.job_id)
        if job is None or job.uid != step.uid:
            why = f"the scheduler knows no running job {step.job_id or 'without an id'} of uid {step.uid}"
            confirmed.append(Confirmed(step, frozenset(), why))
            continue
        if job.hosts not in unfolded:
            unfolded[job.hosts] = _of(job.hosts, known)
        its, addresses = unfolded[job.hosts]
        if its is not None:
            nodes = step.told & its if step.told else its
        else:
            nodes = frozenset(nid for nid in step.told if nid.address in addresses)
        strange = len(step.told - nodes)
        why = f"{strange} of {counted(len(step.told), 'node')} do not belong to its job" if strange else ""
        confirmed.append(Confirmed(step, nodes, why))
    return confirmed


def _of(text: str, known: Hosts) -> tuple[frozenset[Nid] | None, frozenset[tuple[int, ...]]]:
    try:
        names = unfold(text)
    except BadInput:
        return frozenset(), frozenset()
    its = known.all_of(names)
    return its, frozenset() if its is not None else known.addresses(names)


def by_leaders(steps: Sequence[RoutedStep]) -> list[Confirmed]:
    """All that leaders say, without what users dispute."""
    users: dict[Nid, int] = {}
    disputed: set[Nid] = set()
    for step in steps:
        for nid in step.told:
            if users.setdefault(nid, step.uid) != step.uid:
                disputed.add(nid)
    confirmed = []
    for step in steps:
        strange = len(step.told & disputed)
        why = f"{strange} of {counted(len(step.told), 'node')} also belong to another user" if strange else ""
        confirmed.append(Confirmed(step, step.told - disputed, why))
    return confirmed
