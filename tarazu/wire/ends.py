"""One end of a connection: a ZeroMQ socket with its options, its keys and a monitor.

By the monitor refused handshakes are counted instead of unseen; bound ends are followed at the door.
"""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections.abc import Sequence
from typing import Any, Protocol

import zmq
from zmq.utils.monitor import recv_monitor_message

from tarazu.errors import WireError
from tarazu.wire.door import EVENTS, OVERHEAD_BYTES, Door, domain_of, shut
from tarazu.wire.security import Curve, is_local
from tarazu.wire.transport import (
    MAX_MESSAGE_BYTES,
    MAX_REQUEST_BYTES,
    QUEUED_REPLIES,
    Counts,
    Peer,
)
from tarazu.wire.unread import Reader

log = logging.getLogger("tarazu.wire")

MOST_PARTS = 64
"""Of one message; ours have one or two."""
PARTS_AT_ONCE = 10_000
"""Of a message with more so many are dropped before somebody else's turn comes."""
QUEUED_EVENTS = 200_000
"""Of connections that come and go, until they are looked at: 10,000 that come back at once, ten times over."""
RETRY_S = 1.0
"""After a refused handshake ZeroMQ gives up; a connecting end tries again with a new socket after this."""

KEYS_DIFFER = "refuses this node's key, or has another one than server.pub here"

_EVENTS, _POLLIN = int(zmq.EVENTS), int(zmq.POLLIN)
NOBLOCK = int(zmq.NOBLOCK)
_OPTIONS = {
    zmq.LINGER: 0,
    zmq.MAXMSGSIZE: MAX_MESSAGE_BYTES,
    # Patient: of thousands that come back at once most wait in the queue; who hangs up there is let in for nothing.
    zmq.HANDSHAKE_IVL: 60_000,
    zmq.RECONNECT_IVL: 100,
    zmq.RECONNECT_IVL_MAX: 2_000,
    # A node that vanished without closing its connections is noticed within half a minute, by the kernel. ZeroMQ's
    # own heartbeats are not used. Sealed and opened for ten thousand OSSs they would cost more than the reports; and
    # libzmq 4.3.5 aborts the process when it reads one from a connection that broke while its queue was full.
    zmq.HEARTBEAT_IVL: 0,
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 10,
    zmq.TCP_KEEPALIVE_INTVL: 5,
    zmq.TCP_KEEPALIVE_CNT: 4,
    zmq.TCP_MAXRT: 30_000,
}

BOUND = {
    zmq.MAXMSGSIZE: MAX_REQUEST_BYTES,
    # Not full at any number: libzmq 4.3.5 ends the process when it reads a PING from a connection that broke while its
    # queue was full (assertion !_io_error). What waits is bounded in bytes, at the door.
    zmq.RCVHWM: 0,
    zmq.SNDHWM: QUEUED_REPLIES,
    # After a restart all come back at once; the kernel takes the least of this and net.core.somaxconn.
    zmq.BACKLOG: 4096,
    zmq.HANDSHAKE_IVL: 10_000,
}
"""Ends that many peers connect to: what one of them can make us hold is small."""

ONE_OF_TWO = {
    zmq.TCP_KEEPALIVE_IDLE: 1,
    zmq.TCP_KEEPALIVE_INTVL: 1,
    zmq.TCP_KEEPALIVE_CNT: 3,
    zmq.TCP_MAXRT: 3_000,
}
"""Where another server can be asked instead, one that vanished is noticed soon."""

_REFUSED = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
_FINAL = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL

Socket = zmq.Socket[bytes]


class Ends(Protocol):
    """What makes ends, and waits for them."""

    curve: Curve | None
    wake_fd: int | None
    context: zmq.Context[Socket]
    ends: set[End]

    @property
    def door(self) -> Door: ...

    def poll(self, ends: Sequence[End], timeout_s: float) -> set[Any]: ...


class End:
    """One socket with its monitor."""

    def __init__(
        self,
        transport: Ends,
        kind: int,
        address: str,
        *,
        admits: tuple[str, ...] = (),
        **options: Any,
    ):
        self.transport = transport
        self.kind = kind
        self.address = address
        self.admits = admits
        """Roles that may connect here; none for an end that connects."""
        self.counts = Counts()
        self._options = options
        self.dropping = False
        """The rest of a message that has too many parts."""
        self.reached = False
        """Of a connecting end: somebody has listened at its address."""
        self.key_refused = False
        """Of a connecting end: there is no connection for want of keys that belong together."""
        self._retry_at: float | None = None
        self.reader = Reader()
        self._open()

    def _open(self) -> None:
        self.socket: Socket = self.transport.context.socket(self.kind)
        for option, value in {**_OPTIONS, **self._options.get("options", {})}.items():
            self.socket.setsockopt(option, value)
        if "[" in self.address:
            self.socket.ipv6 = True
        self.monitor: Socket = self._monitor(EVENTS if self.admits else _REFUSED | zmq.EVENT_CONNECTED)
        curve = self.transport.curve
        try:
            if self.admits:
                self.reader = self.transport.door.watch(self.monitor, self.counts)
                if curve:
                    self.socket.curve_server = True
                    self.socket.curve_secretkey = curve.own.secret
                    self.socket.zap_domain = domain_of(self.admits)
                self._bind()
                self.address = self.socket.getsockopt_string(zmq.LAST_ENDPOINT)
            else:
                if curve:
                    self.socket.curve_publickey = curve.own.public
                    self.socket.curve_secretkey = curve.own.secret
                    # All mdsds have the same key.
                    self.socket.curve_serverkey = curve.server or curve.own.public
                self.socket.connect(self.address)
        except WireError:
            self._shut()
            raise
        except zmq.ZMQError as error:
            verb = "bound" if self.admits else "connected to"
            self._shut()
            raise WireError(self.address, f"an address that can be {verb}", str(error)) from None

    def _monitor(self, events: int) -> Socket:
        address = f"inproc://monitor.{self.socket.FD}"
        self.socket.monitor(address, events)
        monitor: Socket = self.transport.context.socket(zmq.PAIR)
        # Not the usual thousand: where they are full, ZeroMQ's thread waits, and nobody's messages come or go.
        monitor.rcvhwm = QUEUED_EVENTS
        monitor.connect(address)
        return monitor

    def _bind(self) -> None:
        try:
            self.socket.bind(self.address)
        except zmq.ZMQError as error:
            # ZeroMQ binds addresses and interfaces only; one configuration for all nodes names the host.
            if error.errno != errno.ENODEV:
                raise
            self.socket.bind(_resolved(self.address))

    def _shut(self) -> None:
        self.socket.disable_monitor()
        if not self.admits:
            self.monitor.close(linger=0)
        self.socket.close(linger=0)

    def close(self) -> None:
        if not self.socket.closed:
            self._shut()
        self.transport.ends.discard(self)

    @property
    def waits(self) -> bool:
        """Whether a socket that was refused is to be replaced, in a while, by `look`."""
        return self._retry_at is not None

    def look(self) -> None:
        """Of a connecting end: count refused handshakes, and replace the socket that was refused."""
        if self.admits:
            return
        while can_read(self.monitor):
            event = recv_monitor_message(self.monitor)["event"]
            if event == zmq.EVENT_CONNECTED:
                self.reached = True
                continue
            self.counts.refused += 1
            # The first end of a connection may be that of a peer which ends.
            self.key_refused = bool(event & _FINAL) or self.counts.refused > 1
            if self.counts.refused == 1:
                log.warning("%s %s; trying again", self.address, KEYS_DIFFER)
            if event & _FINAL and self._retry_at is None:
                self._retry_at = time.monotonic() + RETRY_S
        if self._retry_at is not None and time.monotonic() >= self._retry_at:
            self._retry_at = None
            self._shut()
            self._open()

    def wait(self, timeout_s: float) -> bool:
        """True when the socket can be read."""
        return readable([self], timeout_s) is not None

    def can_read(self) -> bool:
        """Now."""
        if can_read(self.socket):
            return True
        self.reader.found_empty()
        return False

    def frames(self) -> tuple[list[bytes], Peer] | None:
        """The next message and its sender; None when it says too much or is admitted no more. Call when it can be
        read."""
        if (parts := self._parts()) is None:
            return None
        last = parts[-1]
        address = _property(last, "Peer-Address") or "peer"
        admission = None
        if self.admits:
            door = self.transport.door
            try:
                fd = int(last.get(zmq.SRCFD))
            except (zmq.ZMQError, ValueError):
                fd = -1
            connection = door.of(fd, address)
            size = sum(map(len, parts))
            door.heard(connection, size + OVERHEAD_BYTES * len(parts))
            if len(parts) > MOST_PARTS:
                self.counts.drop(address, f"a message of at most {MOST_PARTS} parts")
                shut(fd)
                return None
            if not connection.may_say(size):
                self.counts.too_many += 1
                return None
            if door.admitted:
                connection.roles, connection.key = self.admits, (_property(last, "User-Id") or "").encode()
                admission = door.admitted.find_any(self.admits, connection.key)
                if admission is None:
                    self.counts.shut_out += 1
                    return None
        route = parts[0].bytes if self.kind == zmq.ROUTER else b""
        return [part.bytes for part in parts], Peer(route, address, admission)

    def _parts(self) -> list[zmq.Frame] | None:
        """Of the next message; of one with too many the first ones, the rest is dropped in later calls."""
        parts: list[zmq.Frame] = []
        for _ in range(PARTS_AT_ONCE if self.dropping else MOST_PARTS + 1):
            part = self.socket.recv(copy=False)
            more = bool(part.more)
            if not self.dropping:
                parts.append(part)
            if not more:
                self.dropping = False
                return parts or None
        self.dropping = True
        return parts or None


def _property(frame: zmq.Frame, name: str) -> str | None:
    try:
        return str(frame.get(name))
    except zmq.ZMQError:
        return None


def can_read(socket: Socket) -> bool:
    """Now. With plain numbers: PyZMQ's own enumerations take as long again as the question."""
    return bool(socket.get(_EVENTS) & _POLLIN)  # type: ignore[operator]


def readable(ends: Sequence[End], timeout_s: float) -> End | None:
    """One of these ends of one transport that can be read, within `timeout_s`."""
    transport = ends[0].transport
    deadline = time.monotonic() + timeout_s
    while True:
        for end in ends:
            end.look()
            if end.can_read():
                return end  # nothing to wait for: most of what a poll costs is saved
        now = time.monotonic()
        if now >= deadline:
            return None
        left_s = min([deadline - now, *(end._retry_at - now for end in ends if end._retry_at is not None)])
        ready = transport.poll(ends, left_s)
        for end in ends:
            if end.socket in ready:
                return end
        if transport.wake_fd in ready or time.monotonic() >= deadline:
            return None


def _resolved(address: str) -> str:
    """`tcp://mds1:5770` → `tcp://10.0.0.1:5770`. Raises WireError for a name that is not known."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    try:
        addresses = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise WireError(address, "a host name that can be resolved", error.strerror) from None
    resolved = f"tcp://{addresses[0][4][0]}:{port}"
    if is_local(resolved):
        log.warning("%s is %s here: other nodes will not reach it", address, resolved)
    return resolved
