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

from tarazu.daemons.bursts.pins import Pin, Pins
from tarazu.daemons.bursts.slurm_view import Slurm, View, Waiting
from tarazu.errors import TarazuError
from tarazu.forwarding.routers import hosts

log = logging.getLogger("tarazu.bursts")

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
    """Go through all notes once. `view`: with running jobs; `all_of`: take back each, and why. Raises StoreError."""
    found: list[Tended] = []
    by_nodes = _by_nodes(view.queue) if pins.all else {}
    for pin in pins.all:
        jobs = _jobs(pin, view, by_nodes)
        waiting = [job for job in jobs if job.pending]
        age_s = now_s - pin.at_s
        if waiting:
            why = all_of or _why_back(pin, waiting[0], view, age_s, wait_s)
            if why:
                found.append(_take_back(pin, waiting, slurm, why))
        elif jobs and not pin.job:
            # Still noted: put back into the queue it would wait for the same nodes again.
            pins.replace(pin, known := msgspec.structs.replace(pin, job=jobs[0].id))
            found.append(Tended(known, "started", ""))
        elif not jobs and (age_s > GONE_S or all_of):
            found.append(Tended(pin, "gone", ""))
    for each in found:
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
    pins.drop(each.pin for each in found if each.outcome in ("taken back", "gone"))
    return found


def _by_nodes(queue: Iterable[Waiting]) -> dict[frozenset[str], list[Waiting]]:
    found: dict[frozenset[str], list[Waiting]] = {}
    for job in queue:
        if job.asked:
            found.setdefault(frozenset(hosts.unfold(job.asked)), []).append(job)
    return found


def _jobs(pin: Pin, view: View, by_nodes: dict[frozenset[str], list[Waiting]]) -> list[Waiting]:
    """The jobs of a note: a user's jobs of one name may have been told the same nodes, one after another."""
    if pin.prefer:
        return [job for job in view.queue if job.id == pin.job]
    same = by_nodes.get(frozenset(hosts.unfold(pin.nodes)), ())
    named = [job for job in same if (job.user, job.name) == (pin.user, pin.name)]
    return [job for job in named if job.id == pin.job] if pin.job else named


def _why_back(pin: Pin, job: Waiting, view: View, age_s: float, wait_s: float) -> str:
    if pin.prefer:
        return ""
    if age_s >= wait_s:
        return f"it has not started within {wait_s:g} s"
    partition = view.partitions.get(job.partition)
    # Nodes were looked at before jobs: those of a job that has just started there are not its own, but another's.
    if partition and (busy := set(hosts.unfold(pin.nodes)) - partition.idle):
        return f"{hosts.fold(sorted(busy))[:80]} not idle any more"
    return ""


def _take_back(pin: Pin, waiting: list[Waiting], slurm: Slurm, why: str) -> Tended:
    for job in waiting:
        try:
            slurm.update(job.id, **({"Prefer": ""} if pin.prefer else {"ReqNodeList": ""}))
        except TarazuError as error:
            if _still_waits(slurm, job):
                return Tended(pin, "not taken back", str(error))
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
