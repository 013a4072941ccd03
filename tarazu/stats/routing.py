"""LNet routing as a node's debugfs tells it: the routers that a server knows, and what a router itself forwards."""

from __future__ import annotations

import re

from tarazu.stats.lnet import LnetStats
from tarazu.wire.bounds import MAX_ID_CHARACTERS, MAX_MOUNTED, MAX_ROUTERS
from tarazu.wire.reports import RouterLoad, RouterState

_NID = re.compile(r"[^@\s]+@[a-z][a-z0-9]*")


def params() -> tuple[str, ...]:
    return "lnet.routes", "lnet.nis", "lnet.stats"


def is_routing(text: str) -> bool:
    """`lnet.routes`: its first line says whether this node forwards."""
    return text.startswith("Routing enabled")


def parse_routes(text: str) -> tuple[RouterState, ...]:
    """`lnet.routes`: one for each network and router, the first MAX_ROUTERS. Raises ValueError."""
    routes: dict[tuple[str, str], bool] = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] in ([], ["Routing"], ["net"]):
            continue
        if len(words) < 5 or words[3] not in ("up", "down") or not _NID.fullmatch(words[4]):
            raise ValueError(f"expected net, hops, priority, state and router, found {line[:60]!r}")
        if max(len(words[0]), len(words[4])) <= MAX_ID_CHARACTERS:
            routes.setdefault((words[4], words[0]), words[3] == "up")
    return tuple(RouterState(nid, up, net) for (nid, net), up in list(routes.items())[:MAX_ROUTERS])


def parse_nis(text: str) -> tuple[str, ...]:
    """`lnet.nis`: the node's own NIDs that are up, each once, without that of itself. Raises ValueError."""
    nids: dict[str, None] = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] in ([], ["nid"]):
            continue
        if len(words) < 2 or not _NID.fullmatch(words[0]):
            raise ValueError(f"expected a NID and its state, found {line[:60]!r}")
        if words[1] == "up" and not words[0].endswith("@lo") and len(words[0]) <= MAX_ID_CHARACTERS:
            nids[words[0]] = None
    return tuple(nids)[:MAX_MOUNTED]


def forwarded(now: LnetStats, before: LnetStats) -> tuple[int, int]:
    """(messages, bytes) forwarded since `before`; after a reset, those since the reset.

    The count is 32 bits wide and wraps; the length, 64 wide, tells a wrap from a reset. Zeros where that is not known.
    """
    if not now.knows(before, "route_count", "route_length"):
        return 0, 0
    if now.route_length < before.route_length:
        return now.route_count, now.route_length
    return (now.route_count - before.route_count) % 2**32, now.route_length - before.route_length


def load(nids: tuple[str, ...], now: LnetStats, before: LnetStats | None, elapsed_s: float) -> RouterLoad:
    """Of a node that forwards; without a reading before, its rates are 0."""
    if before is None or elapsed_s <= 0:
        return RouterLoad(nids)
    messages, size_bytes = forwarded(now, before)
    return RouterLoad(nids, size_bytes / elapsed_s, messages / elapsed_s)
