"""The transport: ZeroMQ over TCP with CURVE.

mdsd binds SUB and ROUTER; ossd connects XPUB (which tells when a subscriber comes), clientd DEALER. Every
socket has a monitor, so that refused handshakes are counted instead of unseen; those of bound ones are followed at
the door. A transport and its ends belong to one thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import zmq

from tarazu.wire import messages
from tarazu.wire.admission import Admitted
from tarazu.wire.door import Door
from tarazu.wire.ends import BOUND, ONE_OF_TWO, End, Socket, readable
from tarazu.wire.messages import Reply, Request
from tarazu.wire.reports import OssReport
from tarazu.wire.requester import Requester
from tarazu.wire.security import QUESTIONERS, Curve, check_address
from tarazu.wire.transport import (
    REQUESTS,
    STATISTICS,
    Peer,
    Servers,
    askable,
)

log = logging.getLogger("tarazu.wire")
R = TypeVar("R")


class Publisher:
    """Sends statistics. They may be lost: nobody there, nothing kept."""

    def __init__(self, ends: Sequence[End]) -> None:
        """One end for each subscriber: where one refuses our key, the others go on."""
        self._ends = ends
        self._came: list[End] = []
        self.counts = ends[0].counts

    def publish(self, report: OssReport) -> None:
        """Send to every subscriber."""
        data = messages.encode(report)
        while self.wait(0.0):
            pass  # whoever has come by now gets this report, and needs no repetition
        self._send(data)

    def repeat(self, report: OssReport) -> None:
        """Send to those alone that `wait` has seen come since the last report."""
        self._send(messages.encode(report), self._came)

    def _send(self, data: bytes, ends: Sequence[End] | None = None) -> None:
        for end in self._ends if ends is None else ends:
            end.look()
            try:
                end.socket.send(data, zmq.NOBLOCK)
            except zmq.Again:
                log.debug("%s does not take reports", end.address)
        self._came = []

    def wait(self, timeout_s: float) -> bool:
        """True as soon as a subscriber has come (or come back), False after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while end := readable(self._ends, max(0.0, deadline - time.monotonic())):
            if end.socket.recv()[:1] == b"\x01":
                self._came.append(end)
                return True
        return False

    def close(self) -> None:
        for end in self._ends:
            end.close()


class Subscriber(Generic[R]):
    """Receives reports of all publishers."""

    def __init__(self, end: End, kinds: Callable[[Peer], tuple[type, ...]]) -> None:
        """`kinds`: that a peer may send."""
        self._end, self._kinds = end, kinds
        self.counts = end.counts
        self.address = end.address
        self.sender = Peer(b"", "")
        """Of the report that `receive` returned last."""
        end.socket.subscribe(b"")

    def receive(self, timeout_s: float) -> R | None:
        """The next report, or None after `timeout_s`. Bad messages, and those of others' kind, are dropped."""
        deadline = time.monotonic() + timeout_s
        while self._end.wait(max(0.0, deadline - time.monotonic())):
            if (got := self._end.frames()) is None:
                if self._end.dropping:
                    return None
                continue
            frames, self.sender = got
            message = self.counts.accept(b"".join(frames), self.sender.name, self._kinds(self.sender))
            if message is not None:
                return cast(R, message)
        return None

    def close(self) -> None:
        self._end.close()


class Replier:
    """Receives requests and answers them, in any order and at any time."""

    def __init__(self, end: End) -> None:
        self._end = end
        self.counts = end.counts
        self.address = end.address

    def receive(self, timeout_s: float) -> tuple[Peer, Request] | None:
        """The next request, or None after `timeout_s`. Bad messages are dropped."""
        deadline = time.monotonic() + timeout_s
        while self._end.wait(max(0.0, deadline - time.monotonic())):
            if (got := self._end.frames()) is None:
                if self._end.dropping:
                    return None
                continue
            frames, peer = got
            message = self.counts.accept(b"".join(frames[1:]), peer.name, askable(peer))
            if isinstance(message, REQUESTS):
                return peer, message
        return None

    def reply(self, peer: Peer, message: Reply | bytes) -> None:
        """Answer; a peer that has gone is no error, it will ask again. Bytes: a reply that is encoded already."""
        data = message if isinstance(message, bytes) else messages.encode(message)
        try:
            self._end.socket.send_multipart([peer.route, data], zmq.NOBLOCK)
        except zmq.Again:
            log.debug("%s does not take replies", peer.name)

    def close(self) -> None:
        self._end.close()


class ZmqTransport:
    """Ends over TCP (or ipc). `curve` from `security.curve_for`.

    `wake_fd`: a descriptor that, once readable, ends every wait early (signals, worker threads); the owner
    reads it empty. Ends raise ConfigError for an address that needs keys and has none, WireError for one
    that cannot be bound.
    """

    def __init__(
        self, curve: Curve | None = None, *, insecure: bool = False, wake_fd: int | None = None
    ) -> None:
        self.curve = curve
        self.insecure = insecure
        self.wake_fd = wake_fd
        self.context: zmq.Context[Socket] = zmq.Context()
        self.ends: set[End] = set()
        self._door: Door | None = None

    @property
    def door(self) -> Door:
        """Of the bound ends; made with the first of them."""
        if self._door is None:
            self._door = Door(self.context, Admitted(self.curve.directory) if self.curve else None)
        return self._door

    def _end(self, kind: int, address: str, **options: Any) -> End:
        check_address(address, self.curve, self.insecure)
        end = End(self, kind, address, **options)
        self.ends.add(end)
        return end

    def publisher(self, *addresses: str) -> Publisher:
        # Statistics that could not be sent are soon too old to be worth it.
        # VERBOSE: a subscriber that comes back is told of too, not only a new one.
        options = {zmq.SNDHWM: 8, zmq.XPUB_VERBOSE: 1}
        return Publisher([self._end(zmq.XPUB, address, options=options) for address in addresses])

    def subscriber(self, address: str) -> Subscriber[OssReport]:
        return Subscriber(self._end(zmq.SUB, address, admits=("oss",), options=BOUND), lambda _: STATISTICS)

    def requester(self, servers: str | Servers) -> Requester:
        known = Servers(servers) if isinstance(servers, str) else servers
        # IMMEDIATE: nothing is queued for a connection that does not stand; what is not answered is resent.
        options = {zmq.IMMEDIATE: 1, **(ONE_OF_TWO if len(known.addresses) > 1 else {})}
        return Requester(known, lambda address: self._end(zmq.DEALER, address, options=options))

    def replier(self, address: str) -> Replier:
        return Replier(self._end(zmq.ROUTER, address, admits=QUESTIONERS, options=BOUND))

    def talking(self, address: str, *, bind: bool, options: Mapping[int, int]) -> End:
        """One end between a daemon that binds it, and admits everybody's keys, and those who talk with it."""
        if bind:
            admits = ("oss", "client", "server")
            return self._end(zmq.ROUTER, address, admits=admits, options={**BOUND, **options})
        return self._end(zmq.DEALER, address, options={**options, zmq.IMMEDIATE: 1})

    def poll(self, ends: Sequence[End], timeout_s: float) -> set[Any]:
        """Sockets (and `wake_fd`) that can be read, after at most `timeout_s`."""
        poller = zmq.Poller()
        for end in ends:
            poller.register(end.socket, zmq.POLLIN)
            if not end.admits:
                poller.register(end.monitor, zmq.POLLIN)
        if self.wake_fd is not None:
            poller.register(self.wake_fd, zmq.POLLIN)
        empty = [end.reader for end in ends if not end.can_read()]
        for reader in empty:
            reader.waits()
        ready = {source for source, _ in poller.poll(max(0, int(timeout_s * 1000 + 0.999)))}
        for reader in empty:
            reader.found_empty()
        return ready

    def wait(self, timeout_s: float) -> bool:
        """Sleep until any end can be read, `wake_fd` is readable, `timeout_s` is over, or a refused end tries again.

        True when `wake_fd` is readable.
        """
        ends, now = list(self.ends), time.monotonic()
        retries = (end._retry_at - now for end in ends if end._retry_at is not None)
        ready = self.poll(ends, min([timeout_s, *retries]))
        for end in ends:
            end.look()
        return self.wake_fd in ready

    def close(self) -> None:
        for end in list(self.ends):
            end.close()
        if self._door:
            self._door.close()
            self._door = None
        self.context.term()
