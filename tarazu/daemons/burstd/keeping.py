"""Looks at Slurm again and again, and takes back what was asked of it for jobs that did not start soon.

A job whose nodes were named waits for them though others become free: so its wish is taken back after `wait_s`, or as
soon as one of its nodes is busy, or when the mode is not `apply` any more. A job that waits anyway is given a
preference (`Prefer=`) instead, which Slurm gives up by itself.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from tarazu.batch.jobs import Waiting
from tarazu.batch.node_set import fold, unfold
from tarazu.batch.slurm import Slurm, View
from tarazu.daemons.burstd.pins import Pin, Pins
from tarazu.errors import StoreError, TarazuError
from tarazu.past import no_later

log = logging.getLogger("tarazu.bursts")

SUBMITTED_S = 20.0
"""So long after it was asked about a job is in the queue at the latest: a wrapper asks before it submits."""
NOT_STARTED = ("PENDING", "CONFIGURING", "CANCELLED", "DEADLINE")
CANNOT = ("ReqNodeNotAvail", "Nodes_required_for_job_are")
"""How Slurm's reasons begin where a job's nodes cannot be had: a reservation is to come, or they are down."""
GONE_S = 60.0
"""A job that is not in the queue so long after its nodes were noted has ended, or was never submitted."""


class Tended(NamedTuple):
    """What became of a note."""

    pin: Pin
    outcome: str
    """`started` (told once), `taken back`, `gone` (ended, or never submitted), `not taken back`."""
    why: str


def audit(what: str, **fields: object) -> None:
    """A line of `name=value`, as mdsd's."""
    shown = " ".join(f"{n}={json.dumps(v) if isinstance(v, str) else v}" for n, v in fields.items())
    log.info("time=%s bursts=%s %s", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), what, shown)


def tend(
    pins: Pins, view: View, slurm: Slurm, wait_s: float, *, now_s: float, all_of: str = ""
) -> list[Tended]:
    """Go through all notes once. `view`: with running jobs; `all_of`: take back each, and why. Raises StoreError where
    notes cannot be written; what is to be taken back is so then too.
    """
    tended: list[Tended] = []
    trouble: StoreError | None = None
    for pin in pins.all:
        if pin.at_s != (at_s := no_later(pin.at_s, now_s)):
            pins.replace(pin, msgspec.structs.replace(pin, at_s=at_s))
    for pin, job in _jobs(pins.all, view.queue):
        age_s = now_s - pin.at_s
        if job is None:
            # Of one that was just asked for the job may still come.
            if age_s > GONE_S or (all_of and pin.job):
                tended.append(Tended(pin, "gone", ""))
            continue
        # Noted as long as it is there: put back into the queue it would wait for the same nodes again.
        known = msgspec.structs.replace(pin, job=job.id, started=pin.started or job.state not in NOT_STARTED)
        try:
            pins.replace(pin, known)
        except StoreError as error:
            trouble = error
        if known.started and not pin.started:
            if not trouble:
                tended.append(Tended(known, "started", ""))
        elif (
            job.pending
            and (why := all_of or _why_back(known, job, view, age_s, wait_s))
            and (taken := _take_back(known, job, slurm, why))
        ):
            tended.append(taken)
    for each in tended:
        if each.outcome != "gone":
            audit(
                each.outcome.replace(" ", "-"),
                job=each.pin.job,
                user=each.pin.user,
                name=each.pin.name,
                nodes=each.pin.nodes,
                prefer=each.pin.prefer,
                why=each.why,
            )
    pins.drop(each.pin for each in tended if each.outcome in ("taken back", "gone"))
    if trouble:
        raise trouble
    return tended


def _jobs(pins: Iterable[Pin], queue: Iterable[Waiting]) -> list[tuple[Pin, Waiting | None]]:
    """Each note with its job, if there is one; no job has two. A user may have been told the same nodes for several
    jobs of one name, one after another: which is which their time of submission tells.
    """
    by_id = {each.id: each for each in queue}
    taken = {pin.job for pin in pins if pin.job}
    wanted = {(pin.user, pin.name) for pin in pins if not pin.job}
    by_nodes: dict[tuple[str, str, frozenset[str]], list[Waiting]] = {}
    for each in by_id.values():
        if each.asked and each.id not in taken and (each.user, each.name) in wanted:
            by_nodes.setdefault((each.user, each.name, _names(each.asked)), []).append(each)
    pairs: list[tuple[Pin, Waiting | None]] = []
    for pin in pins:
        job: Waiting | None = by_id.get(pin.job)
        if not pin.job:
            same = by_nodes.get((pin.user, pin.name, _names(pin.nodes)), [])
            near = [each for each in same if -1.0 <= each.submit_s - pin.at_s <= SUBMITTED_S]
            if near:
                job = min(near, key=lambda each: each.submit_s)
                same.remove(job)
        elif job and pin.nodes and _names(job.asked) != _names(pin.nodes):
            job = None  # its user has taken them back, or named others
        pairs.append((pin, job))
    return pairs


def _names(folded: str) -> frozenset[str]:
    """None of what cannot be read: it is not ours."""
    try:
        return frozenset(unfold(folded))
    except TarazuError:
        return frozenset()


def _why_back(pin: Pin, job: Waiting, view: View, age_s: float, wait_s: float) -> str:
    if pin.prefer:
        return ""
    if age_s >= wait_s:
        return f"it has not started within {wait_s:g} s"
    if job.reason.startswith(CANNOT):
        return job.reason[:80]
    partition = view.partitions.get(job.partition)
    # Nodes were looked at before jobs: those of a job that has just started there are not its own, but another's.
    if partition and (busy := set(unfold(pin.nodes)) - partition.idle):
        return f"{fold(sorted(busy))[:80]} not idle any more"
    return ""


def _take_back(pin: Pin, job: Waiting, slurm: Slurm, why: str) -> Tended | None:
    """None: it has started, or ended, a moment ago; its note stays as long as it may be put back into the queue."""
    try:
        slurm.update(job.id, **({"Prefer": ""} if pin.prefer else {"ReqNodeList": ""}))
    except TarazuError as error:
        return Tended(pin, "not taken back", str(error)) if _still_waits(slurm, job) else None
    return Tended(pin, "taken back", why)


def _still_waits(slurm: Slurm, job: Waiting) -> bool:
    try:
        return "JobState=PENDING" in slurm.job(job.id)
    except TarazuError as error:
        return "Invalid job id" not in str(error)


def take_back_all(pins: Pins, slurm: Slurm, why: str) -> list[Tended]:
    """Now, without the daemon. Raises TarazuError where Slurm's queue cannot be read, or the notes not be written."""
    if not pins.all:
        return []
    return tend(pins, slurm.view(running=True), slurm, 0.0, now_s=time.time(), all_of=why)


def untouched(slurm: Slurm, id: str) -> bool:
    """Whether a job that waits says nothing of its nodes but how many. Raises TarazuError."""
    words = dict(word.split("=", 1) for word in slurm.job(id).split() if "=" in word)
    unset = ("ReqNodeList", "ExcNodeList", "Features")
    return (
        words.get("JobState") == "PENDING"
        and all(words.get(name) == "(null)" for name in unset)
        and words.get("Contiguous") == "0"
        and not {"Prefer", "Switches", "Reservation", "ArrayJobId", "HetJobId"} & set(words)
    )


def prefer(
    pins: Pins,
    slurm: Slurm,
    job: Waiting,
    features: str,
    *,
    now_s: float,
    why: str,
    untouched: Callable[[Slurm, str], bool] = untouched,
) -> bool:
    """Noted first. False: it is left alone. Raises TarazuError."""
    if not untouched(slurm, job.id):
        return False
    pin = Pin(now_s, job.user, job.name, "", features, job.id)
    if not pins.add(pin):
        return False
    try:
        slurm.update(job.id, Prefer=features)
    except TarazuError:
        pins.drop([pin])
        raise
    audit("preferred", job=job.id, user=job.user, name=job.name, prefer=features, why=why)
    return True
