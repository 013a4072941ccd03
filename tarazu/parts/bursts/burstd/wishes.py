"""What is asked of Slurm for a job, as it is noted: whose, which job in the queue has it, why it is taken back."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping

from tarazu.batch.jobs import Waiting
from tarazu.batch.node_set import fold, names_in, unfold
from tarazu.batch.slurm import View
from tarazu.durable import boot_id
from tarazu.parts.bursts.nodes.lever import NODES, NodesLever
from tarazu.parts.changes.model.change import Change, Part
from tarazu.parts.changes.model.held import Held

SUBMITTED_S = 20.0
"""So long after it was asked about a job is in the queue at the latest: a wrapper asks before it submits."""
CANNOT = ("ReqNodeNotAvail", "Nodes_required_for_job_are")
"""How Slurm's reasons begin where a job's nodes are not available: a reservation is to come, or they are down."""
GONE_S = 60.0
"""A job that is not in the queue so long after its nodes were noted has ended, or was never submitted."""
_TARGET = re.compile(r"([^/]*)/(.*)\+\w+", re.DOTALL)


def noted(user: str, name: str, nodes: str, job: str, why: str, at_s: float) -> Held:
    """A note of what is asked for. `job`: its id, empty while it has none."""
    change = Change(
        lever=NodesLever.name,
        target=f"{user}/{name}+{secrets.token_hex(4)}",
        wanted={NODES: nodes},
        why=why,
        asked_by="tarazu-burstd",
        lasts_s=GONE_S,
    )
    before, wanted = (Part(NODES, ""),), (change.wanted,)
    return Held(change, before, wanted, at_s, at_s, boot_id(), lasting=True, askers=(job,) if job else ())


def jobs_of(notes: Iterable[Held], queue: Iterable[Waiting]) -> Mapping[str, Waiting]:
    """Target → its job, where there is one; no job has two. A user may have been told the same nodes for several jobs
    of one name, one after another: which is which their time of submission tells.
    """
    notes = sorted(notes, key=lambda held: held.asked_s)
    by_id = {each.id: each for each in queue}
    taken = {job_id(held) for held in notes}
    wanted = {named(held) for held in notes if not is_known(held)}
    by_nodes: dict[tuple[str, str, frozenset[str]], list[Waiting]] = {}
    for each in by_id.values():
        if each.asked and each.id not in taken and (each.user, each.name) in wanted:
            by_nodes.setdefault((each.user, each.name, names_in(each.asked)), []).append(each)
    found: dict[str, Waiting] = {}
    for held in notes:
        job = by_id.get(job_id(held))
        if not is_known(held):
            same = by_nodes.get((*named(held), names_in(held.change.wanted[NODES])), [])
            near = [each for each in same if -1.0 <= each.submit_s - held.asked_s <= SUBMITTED_S]
            if near:
                job = min(near, key=lambda each: each.submit_s)
                same.remove(job)
        if job:
            found[held.change.target] = job
    return found


def named(held: Held) -> tuple[str, str]:
    """(user, name of the job)."""
    matched = _TARGET.fullmatch(held.change.target)
    return (matched[1], matched[2]) if matched else ("", held.change.target)


def job_id(held: Held) -> str:
    return held.askers[0] if held.askers else ""


def is_known(held: Held) -> bool:
    """Its job was seen."""
    return bool(job_id(held))


def has_started(held: Held) -> bool:
    """It was seen running: what comes after that is another turn of it."""
    return not held.change.lasts_s


def why_back(held: Held, job: Waiting, view: View, age_s: float, wait_s: float) -> str:
    if age_s >= wait_s:
        return f"it has not started within {wait_s:g} s"
    if job.reason.startswith(CANNOT):
        return job.reason[:80]
    partition = view.partitions.get(job.partition)
    # Nodes were looked at before jobs: those of a job that has just started there are not its own, but another's.
    if partition and (busy := set(unfold(held.change.wanted[NODES])) - partition.idle):
        return f"{fold(sorted(busy))[:80]} not idle any more"
    return ""
