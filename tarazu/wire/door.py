"""The door of a process that others connect to: which keys are let in, how many connections there are, and how much
each may say.

ZeroMQ bounds the size of a part of a message, not the number of parts, and holds them until the last one. So the kernel
is asked how many bytes came over a connection: one with more than `UNREAD_BYTES` that nobody has read is ended.

One thread for each transport, so that a crowd before the door does not keep the daemon from its work. It answers
ZeroMQ's question "may this key connect?" (ZAP, RFC 27; the domain of a socket is the roles that it admits), and
follows the sockets' monitors, which tell of each connection by its descriptor.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import queue
import resource
import socket
import struct
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.utils import z85

from tarazu.wire.admission import Admitted
from tarazu.wire.said import SaidOnce
from tarazu.wire.transport import Counts
from tarazu.wire.unread import Reader, Unread, came_bytes

log = logging.getLogger("tarazu.wire")

Socket = zmq.Socket[bytes]

SPARE_DESCRIPTORS = 128
"""For whatever else the process opens."""
MOST_CONNECTIONS = 65_536

MESSAGES = 10_000
MESSAGES_PER_S = 1_000
"""What one connection may say: so many messages at once, and so many a second from then on. A busy clientd has some
fifty; a message over it is dropped unread, and an honest peer says it again."""
BYTES = 64 << 20
BYTES_PER_S = 16 << 20

OVERHEAD_BYTES = 48
"""Of a part on the wire, at most: its length, nonce, seal."""
WATCH_S = 0.1
"""So often it looks at keys and at what nobody has read."""

BATCH = 1_000
"""Events of one monitor, then the keys' turn comes."""
SWITCH_S = 0.001
"""After so long of somebody else's work this thread gets its turn; Python's own 5 ms are too long for a crowd."""

EVENTS = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_ACCEPT_FAILED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_MONITOR_STOPPED
)
_NO_KEY = "it has no key, or another than ours of this server, or hung up or was silent before it was let in"
_WHY = {zmq.EVENT_HANDSHAKE_FAILED_AUTH: "its key is not known here"}
EVENTS_AT_ONCE = 64
UNKNOWN = "unknown"
_OR = "+"
_STOP = b"stop"
_LOOK = b"look"


_ENDED = {"04", "05", "06", "0B"}
"""FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSING: states of the side that hung up first (net/tcp_states.h)."""


def ended_peers(port: int, root: str = "/proc/net") -> set[tuple[str, int]]:
    """(address, port) of the peers whose connections to this port of ours we ended within the last minute.

    Of a peer that was refused before anybody asked for its address, the kernel still knows it (/proc/net/tcp).
    """
    peers: set[tuple[str, int]] = set()
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path(root, name).read_text().splitlines()[1:]:
                _, local, remote, state, *_ = line.split(None, 4)
                if state in _ENDED and int(local.rpartition(":")[2], 16) == port:
                    address, _, number = remote.rpartition(":")
                    peers.add((_address(address), int(number, 16)))
    return peers


def _address(digits: str) -> str:
    """The kernel prints 32-bit words in the order of the machine's bytes."""
    words = [int(digits[i : i + 8], 16) for i in range(0, len(digits), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


class Connection:
    """One connection to a bound end, as far as it has shown itself."""

    __slots__ = ("_at", "_bytes", "_messages", "_of_others", "address", "key", "read", "roles")

    def __init__(self, address: str) -> None:
        self.address = address
        self.read = 0
        """Bytes on the wire of the messages that were read, or a little more."""
        self._of_others = 0
        """Of `read`: what never came."""
        self.roles: tuple[str, ...] = ()
        self.key: bytes | None = None
        """Z85. Both are known from its first message on."""
        self._messages = float(MESSAGES)
        self._bytes = float(BYTES)
        self._at = time.monotonic()

    def may_say(self, size_bytes: int) -> bool:
        """Whether one more message of this size is within what a connection may say; it counts from now on."""
        now = time.monotonic()
        passed_s, self._at = now - self._at, now
        self._messages = min(MESSAGES, self._messages + passed_s * MESSAGES_PER_S)
        self._bytes = min(BYTES, self._bytes + passed_s * BYTES_PER_S)
        if self._messages < 1 or self._bytes < size_bytes:
            return False
        self._messages -= 1
        self._bytes -= size_bytes
        return True

    def unread(self, came: int) -> int:
        """Bytes that nobody has read of those that came."""
        self._of_others = max(self._of_others, self.read - came)
        return came - self.read + self._of_others


@dataclass
class _Watched:
    """The monitor of one bound end."""

    monitor: Socket
    counts: Counts
    reader: Reader = field(default_factory=Reader)
    port: int = 0
    failed: int = 0
    """The handshake that failed last: the descriptor comes with the next event."""


class Door:
    """Must be made before the first socket of its context is bound. `admitted` None: no keys, all are let in."""

    def __init__(self, context: zmq.Context[Socket], admitted: Admitted | None) -> None:
        self.admitted = admitted
        self.limit = most_connections()
        self.connections: dict[int, Connection] = {}
        """Descriptor → connection."""
        self._per_address: Counter[str] = Counter()
        self._said = SaidOnce(log)
        self._looked_up = float("-inf")
        self._ended: set[tuple[str, int]] = set()
        self._new: queue.SimpleQueue[_Watched] = queue.SimpleQueue()
        self._seen_changes = admitted.changes if admitted else 0
        self._poller = zmq.Poller()
        self._watched: dict[Socket, _Watched] = {}
        self._orders = context.socket(zmq.PAIR)
        self._orders.bind(f"inproc://tarazu.door.{id(self)}")
        self._voice = context.socket(zmq.PAIR)
        self._voice.connect(f"inproc://tarazu.door.{id(self)}")
        self._requests: Socket | None = None
        if admitted:
            self._requests = context.socket(zmq.REP)
            self._requests.linger = 0
            self._requests.bind("inproc://zeromq.zap.01")
        sys.setswitchinterval(min(SWITCH_S, sys.getswitchinterval()))
        self._unread = Unread()
        self._thread = threading.Thread(target=self._serve, name="tarazu-door", daemon=True)
        self._thread.start()

    def watch(self, monitor: Socket, counts: Counts) -> Reader:
        """Follow the monitor (of EVENTS) of a socket that is about to be bound; closed when the monitoring ends.

        Who reads it says when there is nothing to read.
        """
        watched = _Watched(monitor, counts)
        self._new.put(watched)
        self._voice.send(_LOOK)
        return watched.reader

    def close(self) -> None:
        self._voice.send(_STOP)
        self._thread.join()
        self._voice.close(linger=0)

    def of(self, fd: int, address: str) -> Connection:
        """The connection over which a message came."""
        connection = self.connections.get(fd)
        return connection or self.connections.setdefault(fd, Connection(address))

    def heard(self, connection: Connection, size_bytes: int) -> None:
        """A message of so many bytes on the wire was read."""
        connection.read += size_bytes
        self._unread.heard(connection.address, size_bytes)

    def _look_at_keys(self) -> None:
        """Close the connections whose keys were removed."""
        if self.admitted is None:
            return
        self.admitted.look()
        if self._seen_changes == self.admitted.changes:
            return
        self._seen_changes = self.admitted.changes
        for fd, connection in list(self.connections.items()):
            if connection.key and not self.admitted.find_any(connection.roles, connection.key):
                self._said.warning(f"{connection.address}: its key was removed: it is shut out")
                shut(fd)

    def _look_at_unread(self) -> None:
        """End connections over which much came that nobody can read."""
        readers = [each.reader for each in self._watched.values()]
        for fd, unread in self._unread.look(readers, self._unread_of_each).items():
            if connection := self.connections.get(fd):
                self._said.warning(
                    f"{connection.address}: connection closed: expected complete messages, and no more than"
                    f" can be read, found {unread} unread bytes",
                    f"endless {connection.address}",
                )
                shut(fd)

    def _unread_of_each(self) -> list[tuple[int, int]]:
        each = list(self.connections.items())
        return [(one.unread(came_bytes(fd)), fd) for fd, one in each]

    def _serve(self) -> None:
        self._poller.register(self._orders, zmq.POLLIN)
        if self._requests:
            self._poller.register(self._requests, zmq.POLLIN)
        stopping = False
        while not stopping:
            events = self._poller.poll(int(WATCH_S * 1000))
            self._look_at_keys()
            self._look_at_unread()
            for source, _ in events:
                try:
                    if source is self._orders:
                        stopping |= self._orders.recv() == _STOP
                        self._take_new()
                    elif source is self._requests:
                        self._requests.send_multipart(self._answer(self._requests.recv_multipart()))
                    else:
                        self._follow_all(self._watched[source])
                except Exception:
                    # Without this thread nobody would be let in any more.
                    log.exception("the door failed")
        for watched in self._watched.values():
            watched.monitor.close(linger=0)
        for own in (self._requests, self._orders):
            if own:
                own.close(linger=0)

    def _take_new(self) -> None:
        with contextlib.suppress(queue.Empty):
            while watched := self._new.get_nowait():
                self._watched[watched.monitor] = watched
                self._poller.register(watched.monitor, zmq.POLLIN)

    def _answer(self, frames: list[bytes]) -> list[bytes]:
        version, request, domain, address, _identity, mechanism, *credentials = frames
        roles, admission, public = tuple(domain.decode(errors="replace").split(_OR)), None, b""
        if self.admitted and mechanism == b"CURVE" and len(credentials) == 1:
            public = z85.encode(credentials[0])
            admission = self.admitted.find_any(roles, public)
        if admission is None:
            where = address.decode(errors="replace")
            self._said.warning(f"refused {where}: its key is not that of any {' or '.join(roles)}", where)
            return [version, request, b"400", b"no such key", b"", b""]
        # The key, not its name: a file may be replaced by another key's.
        return [version, request, b"200", b"OK", public, b""]

    def _follow_all(self, watched: _Watched) -> None:
        """What has come by now, a crowd a part at a time: others wait to be let in."""
        for _ in range(EVENTS_AT_ONCE):
            self._follow(watched)
            if watched.monitor.closed or not int(watched.monitor.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
                return

    def _follow(self, watched: _Watched) -> None:
        """A batch of what the monitor has to say."""
        with contextlib.suppress(zmq.Again):
            for _ in range(BATCH):
                if not self._take(watched, watched.monitor.recv_multipart(zmq.NOBLOCK)):
                    return

    def _take(self, watched: _Watched, frames: list[bytes]) -> bool:
        """False when the monitoring has ended."""
        event, value = struct.unpack("=Hi", frames[0])
        if event == zmq.EVENT_ACCEPTED:
            port = frames[-1].rpartition(b":")[2]
            watched.port = int(port) if port.isdigit() else 0
            self._came(value, watched.counts)
        elif event == zmq.EVENT_DISCONNECTED:
            self._went(value, watched)
        elif event == zmq.EVENT_ACCEPT_FAILED:
            watched.counts.turned_away += 1
            self._said.warning(f"a connection cannot be accepted: {os.strerror(value)}")
        elif event == zmq.EVENT_MONITOR_STOPPED:
            self._poller.unregister(watched.monitor)
            del self._watched[watched.monitor]
            watched.monitor.close(linger=0)
            return False
        else:
            watched.counts.refused += 1
            watched.failed = event
        return True

    def _came(self, fd: int, counts: Counts) -> None:
        address = _address_of(fd)
        self.connections[fd] = Connection(address)
        self._per_address[address] += 1
        counts.connections += 1
        left = self.limit - len(self.connections)
        room = left >= 0 and self._per_address[address] <= 3 * left
        if room and not self._unread.loud(address):
            return
        counts.turned_away += 1
        of_all = f"{len(self.connections)} of {self.limit} in all"
        if room:
            of_all += "; it sends faster than can be read"
        self._said.warning(
            f"{address}: turned away, with {self._per_address[address]} connections, {of_all}",
            f"crowd {address}",
        )
        shut(fd)

    def _went(self, fd: int, watched: _Watched) -> None:
        failed, watched.failed = watched.failed, 0
        connection = self.connections.pop(fd, None)
        if connection is None:
            return
        address = connection.address
        watched.counts.connections -= 1
        self._per_address[address] -= 1
        if self._per_address[address] <= 0:
            del self._per_address[address]
        if failed:
            if address == UNKNOWN:
                address = self._who_went(watched.port)
            self._said.warning(f"refused {address}: {_WHY.get(zmq.Event(failed), _NO_KEY)}", address)

    def _who_went(self, port: int) -> str:
        """The address of a peer that had gone before we asked for it; looked up once a second at most."""
        now = time.monotonic()
        if not port or now - self._looked_up < 1.0:
            return UNKNOWN
        self._looked_up = now
        ended = ended_peers(port)
        new, self._ended = ended - self._ended, ended
        return " or ".join(sorted({address for address, _ in new})[:3]) or UNKNOWN


def domain_of(roles: tuple[str, ...]) -> bytes:
    """The ZAP domain of a socket that admits these roles."""
    return _OR.join(roles).encode()


def shut(fd: int) -> None:
    """End a connection that ZeroMQ owns; ZeroMQ finds it ended and closes it.

    Should the descriptor be another's by now, that one's peer connects again, or it is no socket and nothing happens.
    """
    with contextlib.suppress(OSError):
        duplicate = socket.socket(fileno=os.dup(fd))
        try:
            duplicate.shutdown(socket.SHUT_RDWR)
        finally:
            duplicate.close()


def _address_of(fd: int) -> str:
    try:
        duplicate = socket.socket(fileno=os.dup(fd))
    except OSError:
        return UNKNOWN
    try:
        peer = duplicate.getpeername()
        return str(peer[0]) if isinstance(peer, tuple) else "local"
    except OSError:
        return UNKNOWN
    finally:
        duplicate.close()


def most_connections() -> int:
    """How many there may be at a time: as many as we may have descriptors. One address has at most three quarters."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(16, min(MOST_CONNECTIONS, soft - SPARE_DESCRIPTORS))
