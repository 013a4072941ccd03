"""The transport's twin in memory, for tests of what stands on top: same seam, no sockets, no keys."""

from __future__ import annotations

import itertools
import queue
import time

from tarazu.errors import WireError
from tarazu.wire import messages
from tarazu.wire.messages import Message, OssReport, Reply, Request
from tarazu.wire.transport import (
    REPLIES,
    REQUESTS,
    STATISTICS,
    Counts,
    Peer,
    Publisher,
    Replier,
    Requester,
    Subscriber,
    Transport,
)

Inbox = queue.Queue[tuple[bytes, bytes]]
"""(route of the sender, encoded message)."""


class _Network:
    def __init__(self) -> None:
        self.bound: dict[str, Inbox] = {}
        self.routes: dict[bytes, Inbox] = {}
        self.numbers = itertools.count(1)


class _Bound:
    """What subscriber and replier share: an inbox under an address."""

    def __init__(self, network: _Network, address: str, kinds: tuple[type, ...]) -> None:
        if address in network.bound:
            raise WireError(address, "an address that can be bound", "one in use")
        self.network, self.address, self.kinds = network, address, kinds
        self.counts = Counts()
        self.inbox: Inbox = queue.Queue()
        network.bound[address] = self.inbox

    def take(self, timeout_s: float) -> tuple[Peer, Message] | None:
        deadline = time.monotonic() + timeout_s
        while (item := _get(self.inbox, deadline)) is not None:
            peer = Peer(item[0], item[0].decode())
            if (message := self.counts.accept(item[1], peer.name, self.kinds)) is not None:
                return peer, message
        return None

    def close(self) -> None:
        if self.network.bound.get(self.address) is self.inbox:
            del self.network.bound[self.address]


class MemoryPublisher(Publisher):
    def __init__(self, network: _Network, address: str) -> None:
        self.counts = Counts()
        self._network, self._address = network, address
        self._route = b"publisher-%d" % next(network.numbers)
        self._known: Inbox | None = None

    def publish(self, report: OssReport) -> None:
        self._send(messages.encode(report))

    def _send(self, data: bytes) -> None:
        if inbox := self._network.bound.get(self._address):
            inbox.put((self._route, data))

    def wait(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while True:
            inbox = self._network.bound.get(self._address)
            if inbox is not self._known:
                self._known = inbox
                if inbox is not None:
                    return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)

    def close(self) -> None:
        self._address = ""


class MemorySubscriber(Subscriber):
    def __init__(self, network: _Network, address: str) -> None:
        self._bound = _Bound(network, address, STATISTICS)
        self.counts, self.address = self._bound.counts, address

    def receive(self, timeout_s: float) -> OssReport | None:
        item = self._bound.take(timeout_s)
        return item[1] if item and isinstance(item[1], OssReport) else None

    def close(self) -> None:
        self._bound.close()


class MemoryReplier(Replier):
    def __init__(self, network: _Network, address: str) -> None:
        self._bound = _Bound(network, address, REQUESTS)
        self.counts, self.address = self._bound.counts, address

    def receive(self, timeout_s: float) -> tuple[Peer, Request] | None:
        item = self._bound.take(timeout_s)
        return (item[0], item[1]) if item and isinstance(item[1], REQUESTS) else None

    def reply(self, peer: Peer, message: Reply | bytes) -> None:
        if inbox := self._bound.network.routes.get(peer.route):
            inbox.put((b"replier", message if isinstance(message, bytes) else messages.encode(message)))

    def close(self) -> None:
        self._bound.close()


class MemoryRequester(Requester):
    def __init__(self, network: _Network, address: str) -> None:
        super().__init__(address)
        self._network = network
        self._route = b"requester-%d" % next(network.numbers)
        self._inbox: Inbox = queue.Queue()
        network.routes[self._route] = self._inbox

    def _send(self, message: Request) -> bool:
        inbox = self._network.bound.get(self.address)
        if inbox is not None:
            inbox.put((self._route, messages.encode(message)))
        return inbox is not None

    def _next(self, timeout_s: float) -> Reply | None:
        item = _get(self._inbox, time.monotonic() + timeout_s)
        message = self.counts.accept(item[1], self.address, REPLIES) if item else None
        return message if isinstance(message, REPLIES) else None

    def close(self) -> None:
        self._network.routes.pop(self._route, None)


class MemoryTransport(Transport):
    """All ends made by one MemoryTransport can reach one another, by whatever address."""

    def __init__(self) -> None:
        self._network = _Network()

    def publisher(self, address: str) -> MemoryPublisher:
        return MemoryPublisher(self._network, address)

    def subscriber(self, address: str) -> MemorySubscriber:
        return MemorySubscriber(self._network, address)

    def requester(self, address: str) -> MemoryRequester:
        return MemoryRequester(self._network, address)

    def replier(self, address: str) -> MemoryReplier:
        return MemoryReplier(self._network, address)

    def close(self) -> None:
        self._network.bound.clear()
        self._network.routes.clear()


def _get(inbox: Inbox, deadline: float) -> tuple[bytes, bytes] | None:
    try:
        return inbox.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        return None
