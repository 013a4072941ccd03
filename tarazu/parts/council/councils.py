"""A group's council, and one for each client of it.

Servers of a group serve the same applications: they should use the same values, which one council decides.
A client has applications of its own: for its parameters it has a council of its own, with the rules of the group's
(dwell, taking back, turns) and what it alone has seen.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tarazu.errors import BadInput
from tarazu.malformed import MALFORMED, described
from tarazu.parts.changes.ordered import Mode
from tarazu.parts.council.council import USUAL, Council, Decision, Rules
from tarazu.parts.council.learning.careful import Careful
from tarazu.parts.council.levers.client import KINDS
from tarazu.parts.council.pattern import Observation

MAX_HOSTS = 8192
"""Of a group."""
MOST_KEPT = 32 << 20
"""Bytes of clients' knowledge on disk: of more, what was learned of those that spoke longest ago is left out."""
SHOWN, MOST_ROWS = 64, 20_000
"""Clients whose knowledge is shown, those that spoke last, and rows in all: some 4 MB of an answer's 16."""
KEPT_S = 0.02
"""So long knowledge is put together at most for one writing, but for the last one."""


class _Clients(msgspec.Struct):
    clients: dict[str, msgspec.Raw] = {}


class Councils:
    """Decides for one group: what its servers should have, and each client."""

    def __init__(
        self,
        levers: Mapping[str, Sequence[str]],
        rules: Rules = USUAL,
        *,
        seed: int = 0,
        mode: Mode = "apply",
    ) -> None:
        """As of `Council`."""
        self.levers = {name: values for name, values in levers.items() if name in KINDS}
        """Of clients."""
        self.seed = seed
        of_servers = {name: values for name, values in levers.items() if name not in KINDS}
        self.group = Council(of_servers, rules=rules, seed=seed, mode=mode)
        if not of_servers:
            self.group.decision = Decision(why="each client for itself")
        self.clients: OrderedDict[str, Council] = OrderedDict()
        """By host, that spoke last last."""
        self._kept: dict[str, bytes] = {}
        """What was put together of clients' knowledge that is still true."""

    @property
    def mode(self) -> Mode:
        return self.group.mode

    def all(self) -> Iterator[Council]:
        yield self.group
        yield from self.clients.values()

    def sum(self, name: str) -> int:
        """Of a counter of all councils."""
        return sum(getattr(council, name) for council in self.all())

    def receive(
        self,
        host: str,
        kind: str,
        observation: Observation | None,
        in_force: Mapping[str, str],
        now: float,
        mode: Mode = "apply",
    ) -> tuple[str, Decision | None]:
        """As `Council.receive`, with what has come to be decided for this client by it."""
        if kind != "client":
            self.clients.pop(host, None)  # of a host that has become a server
            self._kept.pop(host, None)
            return self.group.receive(host, observation, in_force, now, mode), None
        council, before = self._client(host), self.of(host)
        why = council.receive(host, observation, in_force, now, mode)
        if observation is not None:
            self._kept.pop(host, None)
        after = council.decide(now)
        return why, after if after is not before else None

    def of(self, host: str) -> Decision:
        """What this node should have."""
        return self.clients[host].decision if host in self.clients else self.group.decision

    def advice(self, host: str) -> dict[str, str]:
        return self.clients.get(host, self.group).advice()

    def _client(self, host: str) -> Council:
        council = self.clients.get(host)
        if council is None:
            if len(self.clients) >= MAX_HOSTS:
                self._kept.pop(self.clients.popitem(last=False)[0], None)
            rules, mode = self.group.rules, self.group.mode
            council = Council(self.levers, Careful, rules, seed=self.seed, mode=mode, alone=True)
            self.clients[host] = council
        self.clients.move_to_end(host)
        return council

    def silent(self, host: str) -> None:
        """Its announcer is gone. What was learned of a client is kept for when it comes again."""
        self.clients.get(host, self.group).silent(host)

    def set_mode(self, mode: Mode, now: float, why: str) -> None:
        for council in self.all():
            council.set_mode(mode, now, why)

    def in_force(self) -> dict[str, dict[str, int]]:
        """Lever → value → nodes that said they have it."""
        counts: dict[str, Counter[str]] = {}
        for council in self.all():
            for lever, values in council.in_force().items():
                counts.setdefault(lever, Counter()).update(values)
        return {lever: dict(values) for lever, values in counts.items()}

    def explain(self) -> list[dict[str, Any]]:
        """As `Council.explain`; a client's rows have its name as `node`, the group's none."""
        shown = [("", self.group), *list(self.clients.items())[: -SHOWN - 1 : -1]]
        return [{"node": host, **row} for host, council in shown for row in council.explain()][:MOST_ROWS]

    def knowledge(self, *, whole: bool = False) -> bytes:
        """As `Council.knowledge`. With many clients what is a little older is taken of some, but with `whole`."""
        until = time.monotonic() + KEPT_S
        left, clients = MOST_KEPT, {}
        for host, council in reversed(self.clients.items()):
            if host not in self._kept and (whole or time.monotonic() < until):
                self._kept[host] = council.knowledge()
            data = self._kept.get(host, b"")
            left -= len(data)
            if left < 0:
                break
            if data:
                clients[host] = msgspec.Raw(data)
        return self.group.knowledge(clients=dict(reversed(clients.items())))

    def restore(self, knowledge: bytes, *, values: bool = True) -> tuple[str, ...]:
        """As `Council.restore`."""
        left = list(self.group.restore(knowledge, values=values))
        try:
            file = msgspec.json.decode(knowledge, type=_Clients)
        except MALFORMED as error:
            raise BadInput("knowledge", "what a council has learned", str(error)) from None
        for host, data in list(file.clients.items())[-MAX_HOSTS:]:
            left += self._client(host).restore(bytes(data), values=values)
        return tuple(dict.fromkeys(left))


described(_Clients)
