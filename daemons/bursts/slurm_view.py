"""Slurm's nodes and queue as they were a moment ago, so that whoever asks for nodes is answered without asking Slurm.

Looked at by one thread (`keeping.Keeper`), with `sinfo` and `squeue`; read by others, which see a whole `View` or the
one before. Slurm is asked for nothing while it asks us: its locks are held then.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import NamedTuple

from tarazu.daemons.program import CannotRun, Program, Silent
from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.forwarding.routers import hosts

SINFO = ("--noheader", "--format=%P|%T|%c,%z,%m,%d,%G,%w|%f|%N")
"""A line for all nodes that are alike; features are not part of what makes them so."""
_SQUEUE = ("%i", "%u", "%D", "%P", "%T", "%V", "%r", "%n", "%x", "%f", "%v", "%j")
"""The name comes last: it may hold anything, also what looks like another job's line; features may hold `|`. So a word
that nobody knows before begins each line, and stands between its columns."""
PENDING = "--states=PENDING"
ALL = "--states=all"
"""Also what has just ended: that can be put back into the queue too."""
MAX_BYTES = 32 << 20
PROGRAMS = ("sinfo", "squeue", "scontrol", "sacctmgr")
IDLE = "idle"
"""Nothing else will do: `planned` nodes wait for a job before us, `idle*` does not answer, `idle~` is switched off."""
SLOT = "tz"
"""A node with the feature tz0 is the first of its I/O node, one with tz1 the second…: see `bursts nodes --features`."""


class Partition(NamedTuple):
    nodes: frozenset[str]
    idle: frozenset[str]
    kinds: int
    """How many kinds of nodes it has, by processors, memory, disk, generic resources and weight."""
    slots: Mapping[str, frozenset[str]]
    """Feature `tz…` → nodes that have it."""


class Waiting(NamedTuple):
    """A job as squeue lists it."""

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
    own: bool
    """It says otherwise which nodes it wants: excluded ones, features, a reservation."""
    name: str

    @property
    def pending(self) -> bool:
        return self.state == "PENDING"

    @property
    def plain(self) -> bool:
        """No part of something larger."""
        return self.id.isdecimal()


class View(NamedTuple):
    seen: float
    """When it was asked for, on the monotonic clock; -inf: never."""
    partitions: Mapping[str, Partition]
    default: str
    """The partition of who names none; empty where there is none."""
    queue: tuple[Waiting, ...]
    """Pending jobs, those with the highest priority first; all others too where they were asked for."""


NONE = View(float("-inf"), {}, "", ())


class Slurm:
    """Slurm's commands. Each raises Unavailable or BadInput."""

    def __init__(self, timeout_s: float = 30.0) -> None:
        self._programs = {
            name: Program(name, f"env SLURM_TIME_FORMAT=%s {name}", timeout_s) for name in PROGRAMS
        }

    def view(self, *, running: bool = False) -> View:
        """`running`: with jobs that run, or have ended a moment ago."""
        seen = time.monotonic()
        partitions, default = read_partitions(self.call("sinfo", *SINFO))
        word = secrets.token_hex(8)
        format = f"--format={word}|{f'|{word}|'.join(_SQUEUE)}"
        states = ALL if running else PENDING
        queue = read_queue(self.call("squeue", "--noheader", "--sort=-p,i", states, format), word)
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

    def level(self, user: str) -> str:
        """`None`, `Operator` or `Administrator`, by the accounting."""
        return self.call("sacctmgr", "-nP", "show", "user", user, "format=adminlevel").strip()

    def call(self, name: str, *words: str) -> str:
        """What it printed."""
        try:
            answer = self._programs[name].call(words)
        except (CannotRun, Silent) as error:
            raise Unavailable(str(error)) from None
        if answer.status:
            lines = (answer.err or answer.out).strip().splitlines()
            raise BadInput(answer.words[:120], "exit status 0", f"{answer.status}: {' '.join(lines)}"[:200])
        return answer.out[:MAX_BYTES]


def read_partitions(text: str) -> tuple[dict[str, Partition], str]:
    """By name, and the default one's name. Raises BadInput."""
    nodes: dict[str, set[str]] = {}
    idle: dict[str, set[str]] = {}
    kinds: dict[str, set[str]] = {}
    slots: dict[str, dict[str, set[str]]] = {}
    default = ""
    for number, line in enumerate(text.splitlines(), 1):
        where = f"sinfo:{number}"
        words = line.split("|")
        if len(words) != 5:
            raise BadInput(where, "5 fields", line[:80])
        shown, state, kind, features, folded = words
        name = shown.removesuffix("*")
        if name != shown:
            default = name
        found = _hosts(folded, where)
        nodes.setdefault(name, set()).update(found)
        kinds.setdefault(name, set()).add(kind)
        if state == IDLE:
            idle.setdefault(name, set()).update(found)
        for feature in features.split(","):
            if feature.startswith(SLOT) and feature[len(SLOT) :].isdecimal():
                slots.setdefault(name, {}).setdefault(feature, set()).update(found)
    partitions = {
        name: Partition(
            frozenset(all_of),
            frozenset(idle.get(name, ())),
            len(kinds[name]),
            {feature: frozenset(having) for feature, having in slots.get(name, {}).items()},
        )
        for name, all_of in nodes.items()
    }
    return partitions, default


def read_queue(listed: str, word: str) -> tuple[Waiting, ...]:
    """Jobs in their order; `word` begins each one's line, and each column. Raises BadInput."""
    found = []
    lines = f"\n{listed}".split(f"\n{word}|")[1:]
    for number, line in enumerate(lines, 1):
        words = line.rstrip("\n").split(f"|{word}|")
        where = f"squeue:{number}"
        if len(words) != 12:
            raise BadInput(where, "12 fields", line[:80])
        id, user, nodes, partition, state, submit, reason, asked, *others, name = words
        for what, text, most in (("a number of nodes", nodes, 9), ("seconds", submit, 12)):
            if not text.isdecimal() or len(text) > most:
                raise BadInput(where, what, text[:20])
        own = not all(other in ("", "(null)") for other in others)
        asked = "" if asked == "(null)" else asked
        found.append(Waiting(id, user, int(nodes), partition, state, float(submit), reason, asked, own, name))
    return tuple(found)


def _hosts(folded: str, where: str) -> tuple[str, ...]:
    try:
        return hosts.unfold(folded)
    except TarazuError as error:
        raise BadInput(where, "node names", str(error)) from None
