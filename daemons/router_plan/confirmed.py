"""Which of the nodes that leaders tell of count.

With a scheduler: those of the step's job, if the job is the step's user's. Without one there is only the leaders' word;
then nodes that steps of several users claim are nobody's, and keep all routes.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu.daemons.router_plan.nodes import Step
from tarazu.daemons.router_plan.scheduler import Listed
from tarazu.errors import BadInput
from tarazu.forwarding.routers import hosts, nids
from tarazu.forwarding.routers.nids import Nid
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.mdsd")

RESOLVED_S = 3600.0
UNRESOLVED_S = 60.0
"""For so long the answer to a host name's question is kept."""
MAX_RESOLVED = 200_000


class Confirmed(NamedTuple):
    step: Step
    nodes: frozenset[Nid]
    why: str
    """Why not all that its leader told of counts; empty where it does."""


class Hosts:
    """Which NIDs a host has, by `forwarding.nids`. Of one thread."""

    def __init__(self, setting: str, resolve: Callable[[str], str | None] | None = None) -> None:
        self.net = nids.net(setting[1:]) if setting.startswith("@") else ""
        self.path = Path(setting) if setting.startswith("/") else None
        self._known: dict[str, tuple[Nid, ...]] = {}
        self._mark: tuple[int, ...] = ()
        self._resolve = resolve or address_of
        self._resolved: dict[str, tuple[str | None, float]] = {}
        self._said = SaidOnce(log)

    def look(self) -> None:
        """Read the file again where it has changed; one that cannot be read leaves what was known."""
        if not self.path:
            return
        try:
            found = self.path.stat()
            mark = (found.st_ino, found.st_size, found.st_mtime_ns)
            if mark != self._mark:
                self._known, self._mark = hosts.read(self.path), mark
        except (OSError, BadInput) as error:
            self._said.warning(f"forwarding.nids: {error}")

    def all_of(self, names: Iterable[str]) -> frozenset[Nid] | None:
        """Every NID of these hosts; None where only addresses can be known."""
        if self.path:
            return frozenset(nid for name in names for nid in hosts.of(name, self._known))
        if self.net:
            return frozenset(Nid(address, self.net) for address in self.addresses(names))
        return None

    def addresses(self, names: Iterable[str]) -> frozenset[tuple[int, ...]]:
        """IPv4 addresses by the names."""
        found = (self._address(name) for name in names)
        return frozenset(tuple(map(int, text.split("."))) for text in found if text)

    def _address(self, name: str) -> str | None:
        now = time.monotonic()
        text, until = self._resolved.get(name, (None, 0.0))
        if now < until:
            return text
        if len(self._resolved) >= MAX_RESOLVED:
            self._resolved.clear()
        text = self._resolve(name)
        self._resolved[name] = text, now + (RESOLVED_S if text else UNRESOLVED_S)
        return text


def address_of(name: str) -> str | None:
    """The IPv4 address that a host's name resolves to."""
    try:
        return str(socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError):
        return None


def by_scheduler(steps: Sequence[Step], jobs: Mapping[str, Listed], known: Hosts) -> list[Confirmed]:
    """The leader's word as far as the scheduler agrees; where it told of no nodes, the scheduler's."""
    known.look()
    found = []
    unfolded: dict[str, tuple[frozenset[Nid] | None, frozenset[tuple[int, ...]]]] = {}
    for step in steps:
        listed = jobs.get(step.job_id)
        if listed is None or listed.uid != step.uid:
            why = f"the scheduler knows no running job {step.job_id or 'without an id'} of uid {step.uid}"
            found.append(Confirmed(step, frozenset(), why))
            continue
        if listed.hosts not in unfolded:
            unfolded[listed.hosts] = _of(listed.hosts, known)
        its, addresses = unfolded[listed.hosts]
        if its is not None:
            nodes = step.told & its if step.told else its
        else:
            nodes = frozenset(nid for nid in step.told if nid.address in addresses)
        strange = len(step.told - nodes)
        why = f"{strange} of {len(step.told)} nodes are not those of its job" if strange else ""
        found.append(Confirmed(step, nodes, why))
    return found


def _of(text: str, known: Hosts) -> tuple[frozenset[Nid] | None, frozenset[tuple[int, ...]]]:
    try:
        names = hosts.unfold(text)
    except BadInput:
        return frozenset(), frozenset()
    its = known.all_of(names)
    return its, frozenset() if its is not None else known.addresses(names)


def by_leaders(steps: Sequence[Step]) -> list[Confirmed]:
    """All that leaders say, without what users dispute."""
    users: dict[Nid, int] = {}
    disputed: set[Nid] = set()
    for step in steps:
        for nid in step.told:
            if users.setdefault(nid, step.uid) != step.uid:
                disputed.add(nid)
    found = []
    for step in steps:
        strange = len(step.told & disputed)
        why = f"{strange} of {len(step.told)} nodes are another user's too" if strange else ""
        found.append(Confirmed(step, step.told - disputed, why))
    return found
