"""Looks at Slurm again and again, and takes back what was asked of it for jobs that did not start soon.

A job whose nodes were named waits for them though others become free: so its wish is taken back after `wait_s`, or as
soon as one of its nodes is busy, or when the mode is not `apply` any more. What was asked stays noted until the job is
gone: put back into the queue it would wait for the same nodes again.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from tarazu import config
from tarazu.batch.jobs import Waiting
from tarazu.batch.node_set import fold, names_in, unfold
from tarazu.batch.slurm import Slurm, View
from tarazu.durable import boot_id
from tarazu.errors import StoreError
from tarazu.parts.bursts.nodes.agent import MOST, NODES, NodesLever, agent_of
from tarazu.parts.changes.agent import words_of_veto
from tarazu.parts.changes.model.change import Change, Part
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.trail import event
from tarazu.past import no_later

SUBMITTED_S = 20.0
"""So long after it was asked about a job is in the queue at the latest."""
CANNOT = ("ReqNodeNotAvail", "Nodes_required_for_job_are")
"""How Slurm's reasons begin where a job's nodes are not available: a reservation is to come, or they are down."""
GONE_S = 60.0
"""A job that is not in the queue so long after its nodes were noted has ended, or was never submitted."""
_TARGET = re.compile(r"([^/]*)/(.*)\+\w+", re.DOTALL)


def noted(user: str, name: str, nodes: str, why: str, at_s: float) -> Held:
    """A note of what is asked for, for a job that has no id yet."""
    change = Change(
        lever=NodesLever.name,
        target=f"{user}/{name}+{secrets.token_hex(4)}",
        wanted={NODES: nodes},
        why=why,
        asked_by="tarazu-burstd",
        lasts_s=GONE_S,
    )
    before, wanted = (Part(NODES, ""),), (change.wanted,)
    return Held(change, before, wanted, at_s, at_s, boot_id(), lasting=True)


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
    jobs: dict[str, Waiting] = {}
    for held in notes:
        job = by_id.get(job_id(held))
        if not is_known(held):
            same = by_nodes.get((*named(held), names_in(held.change.wanted[NODES])), [])
            near = [each for each in same if -1.0 <= each.submit_s - held.asked_s <= SUBMITTED_S]
            if near:
                job = min(near, key=lambda each: each.submit_s)
                same.remove(job)
        if job:
            jobs[held.change.target] = job
    return jobs


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


NOT_STARTED = ("PENDING", "CONFIGURING", "CANCELLED", "DEADLINE")


class Tended(NamedTuple):
    """What became of a note."""

    held: Held
    outcome: str
    """`started` (told once), `taken back`, `left` (its user has named others), `gone` (ended, or never submitted),
    `not taken back`.
    """
    why: str

    @property
    def user(self) -> str:
        return named(self.held)[0]

    @property
    def name(self) -> str:
        return named(self.held)[1]

    @property
    def nodes(self) -> str:
        return self.held.change.wanted[NODES]


class Keeping:
    """What was asked of Slurm. `add` is for another thread than the rest."""

    def __init__(
        self, settings: config.Settings, slurm: Slurm, stopped: Callable[[], str] | None = None
    ) -> None:
        """Raises StoreError, Unavailable for notes that cannot be read: whoever asks anew would forget them."""
        self.agent = agent_of(settings, slurm=slurm, stopped=stopped)
        self._lever: NodesLever = self.agent.engine.levers[NodesLever.name]  # type: ignore[assignment]
        self._fresh: tuple[Held, ...] = ()
        """Added since the notes were read last."""
        with self.agent.store.locked():  # which reads them
            pass

    @property
    def all(self) -> list[Held]:
        held = dict(self.agent.store.held_changes)
        return [*held.values(), *(each for each in self._fresh if each.key not in held)]

    @property
    def waited_for(self) -> bool:
        """Whether jobs may wait for nodes that were named."""
        return not all(map(has_started, self.all))

    def no_new(self) -> str:
        """Why people let no job be asked about: all is held or stopped, or this lever taken back; empty: they do."""
        store = self.agent.store
        try:
            veto = store.decisions().veto(Change(lever=NodesLever.name, target="", wanted={}))
        except StoreError as error:
            return str(error)
        return store.nothing_new() or (
            f"{words_of_veto(veto)}; to go on: tarazu change apply" if veto else ""
        )

    def add(self, user: str, name: str, nodes: str, why: str) -> bool:
        """On disk when this returns; Slurm sets it. False: there are too many, or too many of this user, who gets no
        more than half of those that are left. Raises StoreError: then nothing may be asked for.
        """
        held, now = noted(user, name, nodes, why, time.time()), self.all
        if sum(named(each)[0] == user for each in now) >= MOST - len(now):
            return False
        self.agent.store.add(held)
        self._fresh = (*self._fresh[-MOST:], held)
        self.agent.trail.add(event("set", self.agent.name, None, held))
        return True

    def tend(self, view: View, wait_s: float, *, now_s: float, all_of: str = "") -> list[Tended]:
        """Go through all notes once. `view`: with running jobs; `all_of`: take back each, and why. Raises StoreError
        where notes cannot be written; what is to be taken back is so then too.
        """
        tended: list[Tended] = []
        back: dict[str, set[tuple[str, str]]] = {}
        trouble: StoreError | None = None
        store = self.agent.store
        with store.locked():
            seen = set(store.held_changes)
            self._fresh = tuple(held for held in self._fresh if held.key not in seen)
            notes = [
                msgspec.structs.replace(held, asked_s=no_later(held.asked_s, now_s))
                for held in store.held_changes.values()
            ]
            jobs, kept = jobs_of(notes, view.queue), []
            for held in notes:
                age_s, job = now_s - held.asked_s, jobs.get(held.change.target)
                if job is None:
                    # Of one that was just asked for the job may still come.
                    if age_s > GONE_S or (all_of and is_known(held)):
                        tended.append(Tended(held, "gone", ""))
                    else:
                        kept.append(held)
                    continue
                known = msgspec.structs.replace(held, askers=(job.id,))
                if job.state not in NOT_STARTED and not has_started(held) and not held.theirs:
                    known = msgspec.structs.replace(
                        known, change=msgspec.structs.replace(held.change, lasts_s=0.0)
                    )
                    tended.append(Tended(known, "started", ""))
                elif (
                    job.pending
                    and not held.theirs
                    and (why := all_of or why_back(held, job, view, age_s, wait_s))
                ):
                    back.setdefault(why, set()).add(held.key)
                kept.append(known)
            try:
                store.note_all(kept)
            except StoreError as error:
                trouble, tended = error, []
        self._lever.jobs = {target: job.id for target, job in jobs.items()}
        for each in tended:
            if each.outcome == "gone":
                self.agent.trail.add(event("gone", self.agent.name, None, each.held))
        for why, keys in back.items():
            tended += self._take_back(why, keys)
        if trouble:
            raise trouble
        return tended

    def _take_back(self, why: str, keys: set[tuple[str, str]]) -> list[Tended]:
        held = dict(self.agent.store.held_changes)
        done = self.agent.engine.take_back(why, of=lambda each: each.key in keys, wait_s=30.0, anew=True)
        failed = {failure.key: failure.why for failure in done.failed if failure.key in keys}
        return [
            *(Tended(each, "taken back", why) for each in done.restored),
            *(Tended(each, "left", "its user has named other nodes since") for each in done.left),
            *(Tended(held[key], "not taken back", text) for key, text in failed.items() if key in held),
        ]

    def take_back_all(self, why: str) -> list[Tended]:
        """Now. Raises TarazuError where Slurm's queue cannot be read, or the notes not be written."""
        with self.agent.store.locked():
            none = not self.agent.store.held_changes
        if none:
            return []
        return self.tend(self._lever.slurm.view(running=True), 0.0, now_s=time.time(), all_of=why)
