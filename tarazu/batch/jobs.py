"""Jobs as Slurm prints them: our own questions to sacct and squeue.

A job's name is its user's own text: it may hold separators and line breaks, and look like another job's line. Our
questions use a separator that nobody knows before (`rows`).
"""

from __future__ import annotations

import math
import pwd
import re
import time
from collections.abc import Iterator
from functools import lru_cache
from sys import intern
from typing import NamedTuple

import msgspec

from tarazu.batch.node_set import unfold
from tarazu.errors import BadInput

COLUMNS = ("JobIDRaw", "User", "UID", "NodeList", "Submit", "Start", "End", "State", "Partition", "JobName")
"""Of our questions, the name last."""
SQUEUE = ("%A", "%u", "%U", "%N", "%V", "%S", "%e", "%T", "%P", "%j")
"""The same as squeue has them."""
QUEUED = ("%i", "%u", "%D", "%P", "%T", "%V", "%r", "%n", "%j")
"""Of `Waiting`."""
MAX_CHARACTERS = 256
"""Of a name."""
UID_DIGITS = 10

_NO_NODES = ("", "None", "None assigned", "(null)", "N/A")


class Job(msgspec.Struct, frozen=True):
    """Jobs of one user, name and number of nodes belong to one application (spatially-bursty-io, 6.1)."""

    id: str
    user: str
    """Name or number, as the batch system prints it."""
    name: str
    nodes: tuple[str, ...]
    """Host names in the order of the batch system, which is the order of ranks where they are placed in blocks."""
    start_s: float
    """Seconds since 1970."""
    end_s: float
    """`inf` while it runs."""
    submit_s: float = 0.0
    state: str = ""
    partition: str = ""

    @property
    def application(self) -> ApplicationKey:
        return ApplicationKey(self.user, self.name, len(self.nodes))


class ApplicationKey(msgspec.Struct, frozen=True, order=True):
    """What is expected to behave alike, each time that it runs."""

    user: str
    name: str
    size: int
    """Compute nodes."""


class Waiting(NamedTuple):
    """A job as it stands in the queue."""

    id: str
    """`17`; `17_[1-4]` of an array, `17+0` of a heterogeneous job."""
    user: str
    nodes: int
    partition: str
    state: str
    submit_s: float
    """Unix time, whole seconds."""
    reason: str
    asked: str
    """Node names that were asked for, folded; empty: none."""
    name: str

    @property
    def pending(self) -> bool:
        return self.state == "PENDING"


class Listed(NamedTuple):
    jobs: list[Job]
    """Those that have begun and have nodes."""
    left: int
    """Lines that are none, or that may be two things."""
    why: str
    """Of the first of them."""


class JobNodes(NamedTuple):
    """Nodes that a running job has."""

    uid: int
    hosts: str
    """Folded."""


def rows(text: str, separator: str, columns: int, where: str) -> Iterator[list[str]]:
    """Of an answer with a separator that nobody knew before, the job's name last, a job a line. Raises BadInput."""
    words = text.split(separator)
    last = columns - 1
    if len(words) % last != 1 % last:
        raise BadInput(where, f"rows of {columns} columns", f"{len(words)} words")
    for at in range(0, len(words) - 1, last):
        row = words[at : at + columns]
        if at:
            row[0] = row[0].rpartition("\n")[2]
        # The next row's id follows the name, on a line of its own.
        row[-1] = row[-1].rpartition("\n")[0]
        yield row


def answered(text: str, separator: str, where: str) -> Listed:
    """Jobs with `COLUMNS`. Raises BadInput."""
    jobs: list[Job] = []
    left, why = 0, ""
    for row in rows(text, separator, len(COLUMNS), where):
        try:
            if (job := _job(dict(zip(COLUMNS, row, strict=True)))) is not None:
                jobs.append(job)
        except (BadInput, ValueError, OverflowError) as error:
            left += 1
            why = why or str(error)
    return Listed(jobs, left, why)


def waiting(text: str, separator: str) -> tuple[Waiting, ...]:
    """Jobs with `QUEUED`, in their order. Raises BadInput."""
    jobs = []
    for number, row in enumerate(rows(text, separator, len(QUEUED), "squeue"), 1):
        id, user, nodes, partition, state, submit, reason, asked, name = row
        for what, word, most in (("a number of nodes", nodes, 9), ("seconds", submit, 12)):
            if not word.isdecimal() or len(word) > most:
                raise BadInput(f"squeue:{number}", what, word[:20])
        asked = "" if asked == "(null)" else asked
        jobs.append(Waiting(id, user, int(nodes), partition, state, float(submit), reason, asked, name))
    return tuple(jobs)


def nodes_of_jobs(text: str, where: str) -> dict[str, JobNodes]:
    """Lines of `JOB UID HOSTS`, `#` begins a comment; a job of several lines has the hosts of all. Raises BadInput."""
    jobs: dict[str, JobNodes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        is_uid = len(words) > 1 and words[1].isdecimal() and len(words[1]) <= UID_DIGITS
        if len(words) == 2 and is_uid:
            continue  # it has no nodes (yet)
        if len(words) != 3 or not is_uid:
            raise BadInput(f"{where}:{number}", "a line such as 4711 1000 n[001-004]", line[:60])
        job, uid, hosts = words[0], int(words[1]), words[2]
        known = jobs.get(job)
        if known and known.uid != uid:
            raise BadInput(f"{where}:{number}", f"job {job} to be of one user", f"{known.uid} and {uid}")
        jobs[job] = JobNodes(uid, f"{known.hosts},{hosts}" if known else hosts)
    return jobs


def _job(row: dict[str, str]) -> Job | None:
    """None for a step, and for what has not begun. Raises BadInput, ValueError."""
    id = row["JobIDRaw"]
    if "." in id:
        return None
    if not re.fullmatch(r"\w{1,32}(?:[+_][\w\[\]%,-]{1,64})?", id, re.ASCII):
        raise BadInput(id[:40], "the number of a job")
    state = row["State"].split(" ")[0].upper()
    start_s = seconds(row["Start"])
    if start_s is None or row["NodeList"] in _NO_NODES or state in ("PENDING", "COMPLETING"):
        # Of a job that is completing squeue names only the nodes that are not free yet.
        return None
    end_s = None if state in ("RUNNING", "SUSPENDED") else seconds(row["End"])
    if end_s is not None and end_s < start_s:
        raise BadInput(f"job {id}", "an end after its start", row["End"][:40])
    hosts = unfold(row["NodeList"])
    if not hosts:
        return None
    return Job(
        id=id,
        user=intern((row["User"] or _user(row["UID"]))[:MAX_CHARACTERS]),
        name=intern(row["JobName"][:MAX_CHARACTERS]),
        nodes=tuple(map(intern, hosts)),
        start_s=start_s,
        end_s=math.inf if end_s is None else end_s,
        submit_s=seconds(row["Submit"]) or 0.0,
        state=intern(state[:MAX_CHARACTERS]),
        partition=intern(row["Partition"][:MAX_CHARACTERS]),
    )


@lru_cache(maxsize=4096)
def _user(uid: str) -> str:
    """sacct knows the names of those alone whom the site has put into its accounting."""
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except (KeyError, ValueError, OverflowError):
        return uid


def seconds(text: str) -> float | None:
    """Since 1970, of digits or `2026-11-22T14:33:14` (local time); None where Slurm says that it does not know."""
    text = text.strip()
    if text in ("", "Unknown", "None", "N/A", "NONE", "(null)"):
        return None
    if re.fullmatch(r"\d{1,11}", text, re.ASCII):
        return float(text) or None
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        raise BadInput(text[:40], "a time such as 2026-11-22T14:33:14") from None
