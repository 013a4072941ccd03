"""Slurm's programs: what is asked of them, and of a job that waits changed.

Slurm is asked for nothing while it asks us: its locks are held then. Who answers it reads a `View` of a moment ago.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from typing import NamedTuple

from tarazu.batch import jobs, nodes
from tarazu.batch.jobs import JobNodes, Listed, Waiting
from tarazu.batch.nodes import Partition
from tarazu.errors import BadInput
from tarazu.program import PATH, Program

PROGRAMS = ("sinfo", "squeue", "scontrol", "sacct", "sacctmgr")
MAX_BYTES = 32 << 20
MAX_BYTES_OF_JOBS = 1 << 30
"""All of a week."""


class View(NamedTuple):
    """Nodes and queue."""

    seen: float
    """When it was asked for, on the monotonic clock; -inf: never."""
    partitions: Mapping[str, Partition]
    default: str
    """The partition of who names none; empty where there is none."""
    queue: tuple[Waiting, ...]
    """Pending jobs, those with the highest priority first; all others too where they were asked for."""


NONE = View(float("-inf"), {}, "", ())


class Slurm:
    """Of one thread. Each call raises Unavailable for a program that cannot be run or does not answer in time, and
    BadInput for one that says no, or something else than it should.
    """

    def __init__(self, timeout_s: float = 30.0) -> None:
        environ = {"SLURM_TIME_FORMAT": "%s", **_path()}
        self._programs = {name: Program(name, name, timeout_s, environ) for name in PROGRAMS}

    @property
    def changing(self) -> Program:
        """What changes jobs: whoever is killed while it runs leaves it running."""
        return self._programs["scontrol"]

    def ended(self, since_s: float) -> Listed:
        """Jobs that ran since then (Unix time), by the accounting."""
        separator = secrets.token_hex(8)
        options = ("--allusers", "--allocations", "--noheader", "--parsable2", "--duplicates")
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since_s))
        what = (f"--delimiter={separator}", f"--starttime={since}", f"--format={','.join(jobs.COLUMNS)}")
        text = self.call("sacct", *options, *what, most_bytes=MAX_BYTES_OF_JOBS)
        return jobs.answered(text, separator, "sacct")

    def jobs(self) -> Listed:
        """Those that the controller still knows."""
        separator = secrets.token_hex(8)
        options = ("--noheader", "--array", "--states=all", f"--format={separator.join(jobs.SQUEUE)}")
        return jobs.answered(self.call("squeue", *options, most_bytes=MAX_BYTES_OF_JOBS), separator, "squeue")

    def nodes_of_jobs(self) -> dict[str, JobNodes]:
        """Job → its nodes, of those that run; by the id that a job has in its own environment, also in an array."""
        return jobs.nodes_of_jobs(
            self.call("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%A %U %N"), "squeue"
        )

    def view(self, *, running: bool = False) -> View:
        """`running`: with jobs that run, or have just ended: those can be put back into the queue too."""
        seen = time.monotonic()
        partitions, default = nodes.partitions(self.call("sinfo", "--noheader", f"--format={nodes.SINFO}"))
        separator = secrets.token_hex(8)
        states = "--states=all" if running else "--states=PENDING"
        format = f"--format={separator.join(jobs.QUEUED)}"
        queue = jobs.waiting(self.call("squeue", "--noheader", "--sort=-p,i", states, format), separator)
        return View(seen, partitions, default, queue)

    def topology(self) -> str:
        """As topology.conf; empty where there is none."""
        return self.call("scontrol", "show", "topology")

    def job(self, id: str) -> str:
        return self.call("scontrol", "show", "job", "-o", id)

    def update(self, id: str, **changes: str) -> None:
        """Of a job that waits."""
        words = (f"{name}={value}" for name, value in changes.items())
        self.call("scontrol", "update", f"JobId={id}", *words)

    def uid(self) -> int:
        """Slurm's own user."""
        for line in self.call("scontrol", "show", "config").splitlines():
            name, _, value = line.partition("=")
            number = value.strip().partition("(")[2].rstrip(")")  # SlurmUser = slurm(64030)
            if name.strip() == "SlurmUser" and number.isdecimal():
                return int(number)
        raise BadInput("scontrol show config", "SlurmUser = NAME(UID)", "none")

    def level(self, user: str) -> str:
        """`None`, `Operator` or `Administrator`, by the accounting."""
        return self.call("sacctmgr", "-nP", "show", "user", user, "format=adminlevel").strip()

    def call(self, name: str, *words: str, most_bytes: int = MAX_BYTES) -> str:
        """What it printed."""
        answer = self._programs[name].call(words)
        if answer.status:
            lines = (answer.err or answer.out).strip().splitlines()
            raise BadInput(answer.words[:120], "exit status 0", f"{answer.status}: {' '.join(lines)}"[:200])
        if len(answer.out) > most_bytes:
            raise BadInput(name, f"at most {most_bytes} bytes", f"{len(answer.out)}")
        return answer.out


def _path() -> dict[str, str]:
    """A site's own Slurm comes before that of the system."""
    return {"PATH": f"{os.environ.get('PATH', '')}:{PATH}"}
