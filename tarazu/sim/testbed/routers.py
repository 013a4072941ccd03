"""LNet of a testbed with routers: servers on `tcp`, clients on `tcp1`, and routers that are on both.

Bulk data take the router that the *server's* rules name for the client (measured on a real Lustre: rules on clients do
nothing), else all routers alike. A router that is down is used until the server knows of it. What clients write is
carried; what they read is not counted here, as nowhere in the testbed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu import nids
from tarazu.errors import BadInput
from tarazu.nids import Nid

SERVER_NET, CLIENT_NET = "tcp", "tcp1"
MAX_ROUTERS = 200
MESSAGE_BYTES = 1 << 20
"""Of bulk data that LNet carries at once."""
_HOSTS = 250
"""In each of the networks from which addresses are taken."""


def router_nid(number: int, net: str = SERVER_NET) -> Nid:
    """Of router `number`, from 1, on one of its two nets."""
    return Nid((10, 77, 0, 10 + number), net)


def oss_nid(number: int) -> Nid:
    return _nid(1, number, SERVER_NET)


def client_nid(number: int) -> Nid:
    return _nid(64, number, CLIENT_NET)


def _nid(first: int, number: int, net: str) -> Nid:
    block, host = divmod(number - 1, _HOSTS)
    return Nid((10, 77, first + block, host + 1), net)


class RuleLine(NamedTuple):
    """A line of TB/oss/NAME/lnet/rules, as the stand-in for lnetctl keeps it."""

    src: str
    dst: str
    rte: str
    priority: str


def rules_of(oss_root: Path) -> list[RuleLine]:
    try:
        text = (oss_root / "lnet" / "rules").read_text()
    except FileNotFoundError:
        return []
    return [RuleLine(*line.split("\t")) for line in text.splitlines()]


def preferred(rules: Sequence[RuleLine], client: Nid, routers: Mapping[str, Nid]) -> list[str]:
    """Names of the routers that the last rule for this client names; none without one."""
    for rule in reversed(rules):
        if rule.rte and _has(rule.dst, client):
            return [name for name, nid in routers.items() if _has(rule.rte, nid)]
    return []


def _has(text: str, nid: Nid) -> bool:
    """Whether a NID is one of a pattern's, or on a net that stands alone."""
    if "@" not in text:
        return text == nid.net
    try:
        pattern = nids.pattern(text)
    except BadInput:
        return False
    return pattern.net == nid.net and all(
        n in place for n, place in zip(nid.address, pattern.places, strict=True)
    )


class Forwarded:
    """Counters of all routers since the testbed's server started."""

    def __init__(self, names: Sequence[str], osts_of: Mapping[Path, Sequence[int]]) -> None:
        """`osts_of`: root of each OSS → its OSTs."""
        self.nids = {name: router_nid(n) for n, name in enumerate(names, 1)}
        self._osts_of = osts_of
        self.counts = dict.fromkeys(self.nids, 0)
        self.lengths = dict.fromkeys(self.nids, 0)

    def carry(self, written: Sequence[Sequence[int]], dead: Mapping[str, float], now: float) -> None:
        """`written[client][ost]`: bytes since the last time; client 0 is nobody that is known. `dead`: router → Unix
        time from which servers know it.
        """
        alive = [name for name in self.nids if dead.get(name, now + 1) > now] or list(self.nids)
        for root, osts in self._osts_of.items():
            amounts = [sum(row[i] for i in osts) for row in written]
            rules = rules_of(root) if any(amounts) else []
            for client, amount in enumerate(amounts):
                named = preferred(rules, client_nid(client), self.nids) if client else []
                self._spread(amount, [name for name in named if name in alive] or alive)

    def _spread(self, amount: int, names: Sequence[str]) -> None:
        for name in names:
            part = amount // len(names)
            self.lengths[name] += part
            self.counts[name] += -(-part // MESSAGE_BYTES)

    def routes(self, dead: Mapping[str, float]) -> list[tuple[str, str, float | None]]:
        """(net, gateway, time from which servers know it to be down) as any OSS has them."""
        return [(CLIENT_NET, str(nid), dead.get(name)) for name, nid in self.nids.items()]
