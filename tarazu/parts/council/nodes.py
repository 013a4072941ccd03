"""Which announcers a council accepts reports from, and how many.

A connection stands for one node, a node has one connection at a time; another group's are refused. What comes too often
is not learned. What a node says is a voice among many, and never more: see docs/security.md.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable

from tarazu.parts.changes.ordered import Mode
from tarazu.parts.council.councils import MAX_HOSTS
from tarazu.parts.council.exchange import Observed
from tarazu.wire.transport import Peer

NODES_PER_ADDRESS = 16
"""But on this node itself. Who has a key is one voice, not hundreds."""
MESSAGES_PER_INTERVAL = 4.0
"""An honest announcer says one, and one more after a change."""
MOST_AT_ONCE = 16.0


class CouncilNode:
    """What is known of one announcer."""

    def __init__(self, peer: Peer, now: float) -> None:
        self.address, self.route = peer.name, peer.route
        self.observed: Observed | None = None
        self.heard_at = now
        self.allowance = MOST_AT_ONCE

    @property
    def mode(self) -> Mode:
        return self.observed.mode if self.observed else "observe"


class CouncilNodes:
    def __init__(self, group: str, interval_s: float, silent_s: float) -> None:
        """A node that is silent for `silent_s` is forgotten."""
        self.group = group
        self.interval_s = interval_s
        self.silent_s = silent_s
        self.of: dict[str, CouncilNode] = {}
        """By host."""
        self.too_often = 0
        self._hosts: dict[bytes, str] = {}
        """Route → host."""
        self._per_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.of)

    def refusal(self, peer: Peer, message: Observed, now: float, gone: Callable[[bytes], bool]) -> str:
        """Why this announcer is not listened to; empty when it is. `gone`: whether nobody is at a route any more."""
        if message.group != self.group:
            return f"expected the group {self.group or '(none)'}, found {message.group or '(none)'}"
        if not message.host:
            return "expected the name of a node, found none"
        role = peer.admission.role if peer.admission else ""
        if role and role != message.kind:
            return f"expected the key of role {message.kind}, found {role}"
        of_route = self._hosts.get(peer.route)
        if of_route is not None and of_route != message.host:
            return f"expected one node on one connection, found {message.host} and {of_route}"
        known = self.of.get(message.host)
        if known is None:
            return self._add(peer, message, now)
        if known.route == peer.route:
            return ""
        if now - known.heard_at <= self.silent_s and not gone(known.route):
            return f"expected one announcer of {message.host}, found another at {known.address}"
        self.forget(message.host)
        return self._add(peer, message, now)

    def _add(self, peer: Peer, message: Observed, now: float) -> str:
        address = peer.name
        if self._per_address[address] >= NODES_PER_ADDRESS and not _is_here(address):
            return f"expected at most {NODES_PER_ADDRESS} nodes at one address"
        if len(self.of) >= MAX_HOSTS:
            return f"expected at most {MAX_HOSTS} nodes in a group"
        self.of[message.host] = CouncilNode(peer, now)
        self._hosts[peer.route] = message.host
        self._per_address[address] += 1
        return ""

    def take(self, message: Observed, now: float) -> bool:
        """Note what it says; False for what is not to be learned, for it comes too often."""
        node = self.of[message.host]
        passed_s, node.heard_at = now - node.heard_at, now
        node.allowance = min(
            MOST_AT_ONCE, node.allowance + MESSAGES_PER_INTERVAL * passed_s / self.interval_s
        )
        if node.allowance < 1.0:
            self.too_often += 1
            return False
        node.allowance -= 1.0
        node.observed = message
        return True

    def host(self, route: bytes) -> str:
        """Whose this connection is; empty where it is nobody's."""
        return self._hosts.get(route, "")

    def forget(self, host: str) -> None:
        node = self.of.pop(host)
        self._hosts.pop(node.route, None)
        self._per_address[node.address] -= 1
        self._per_address += Counter()  # without those of no node

    def silent(self, now: float) -> list[str]:
        """Those that have said nothing for too long; look now and then."""
        return [host for host, node in self.of.items() if now - node.heard_at > self.silent_s]


def _is_here(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address in ("local", "peer", "")
