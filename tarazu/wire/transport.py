"""The seam between the daemons and the wire: what a transport offers, and what all transports share.

`ZmqTransport` (sockets.py) is the one there is. mdsd binds a subscriber and a
replier; ossd connects a publisher, clientd a requester.
"""

from __future__ import annotations

import logging
import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, get_args

import msgspec

from tarazu.errors import Unavailable, WireError
from tarazu.wire import messages
from tarazu.wire.admission import Admission
from tarazu.wire.messages import (
    AllocationReply,
    AllocationRequest,
    FileClosed,
    Message,
    NodeReport,
    NotActive,
    OssReport,
    Reply,
    Request,
    RulesRequest,
    StatusReply,
    TargetsChanged,
    decode,
    encode,
)
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.wire")

MAX_MESSAGE_BYTES = 64 << 20
"""Of a reply: one to the largest request."""
MAX_REQUEST_BYTES = 16 << 20
"""Of what mdsd receives, requests and reports: the largest request that it takes (a million files) is 14 MB."""
QUEUED_REPLIES = 256
"""To one peer that does not read them; more are lost, and sent when it asks again."""
RESEND_S = 1.0
UNCONNECTED_S = 0.5
"""Without a connection to the mdsd that is asked first, the other one is asked too after this."""
ASK_AGAIN_S = 0.25
"""When neither of two mdsds is the active one (yet)."""
DEPOSED_S = 30.0
"""So long after a later term was heard of last, answers of an earlier one count nowhere. Then the later one is gone:
whoever is left is asked."""

STATISTICS = (OssReport,)
TRAFFIC = (OssReport, NodeReport)
REQUESTS = get_args(Request)
REPLIES = get_args(Reply)
OF_OSS = (RulesRequest,)
"""What a server's key may ask for; a client's may ask for all else."""


class Peer(NamedTuple):
    """Who sent a message: where the reply goes, and a name for the log."""

    route: bytes
    name: str
    """Its address."""
    admission: Admission | None = None
    """What its key may say; None where there are no keys."""

    @property
    def key(self) -> str:
        """The name of its key's file, `client-login1`; empty where there are no keys."""
        return self.admission.name if self.admission else ""


@dataclass
class Counts:
    """What a socket has seen; `tarazu status` shows it."""

    received: int = 0
    dropped: int = 0
    """Messages that were malformed, of another protocol version, or do not belong on this socket."""
    refused: int = 0
    """Handshakes that failed: wrong or missing key, or no ZeroMQ peer at all."""
    shut_out: int = 0
    """Messages that came after their key was removed."""
    too_many: int = 0
    """Messages beyond what one connection may say."""
    connections: int = 0
    """That stand now, the unfinished ones too."""
    turned_away: int = 0
    """Connections for which there was no room."""
    _said: SaidOnce = field(default_factory=lambda: SaidOnce(log), repr=False)

    def summary(self) -> dict[str, int]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def accept(self, data: bytes, peer: str, kinds: tuple[type, ...]) -> Message | None:
        """The message, or None for one that is dropped: counted, and logged once per peer."""
        try:
            message = decode(data, peer)
            if not isinstance(message, kinds):
                raise WireError(
                    peer, "one of " + ", ".join(k.__name__ for k in kinds), type(message).__name__
                )
        except WireError as error:
            self._drop(peer, str(error))
            return None
        self.received += 1
        return message

    def drop(self, peer: str, expected: str) -> None:
        """Count a message as dropped that was well-formed, but not `expected`."""
        self._drop(peer, f"{peer}: expected {expected}")

    def _drop(self, peer: str, reason: str) -> None:
        self.dropped += 1
        self._said.warning(f"dropped a message: {reason}", peer)


def request_id(message: Message) -> str:
    """The id under which a request and its reply belong together."""
    if isinstance(message, AllocationRequest | AllocationReply):
        return message.id
    if isinstance(message, OssReport | NodeReport):
        raise TypeError("a report is not answered")
    return message.message_id


class Publisher(ABC):
    """Sends statistics. They may be lost: nobody there, nothing kept."""

    counts: Counts

    @abstractmethod
    def publish(self, report: OssReport | NodeReport) -> None:
        """Send to every subscriber."""

    @abstractmethod
    def repeat(self, report: OssReport | NodeReport) -> None:
        """Send to those alone that `wait` has seen come since the last report."""

    @abstractmethod
    def wait(self, timeout_s: float) -> bool:
        """True as soon as a subscriber has come (or come back), False after `timeout_s`."""

    @abstractmethod
    def close(self) -> None: ...


class Subscriber(ABC):
    """Receives statistics of all publishers."""

    counts: Counts
    address: str
    sender: Peer
    """Of the report that `receive` returned last."""

    @abstractmethod
    def receive(self, timeout_s: float) -> OssReport | None:
        """The next report, or None after `timeout_s`. Bad messages are dropped."""

    @abstractmethod
    def close(self) -> None: ...


def askable(peer: Peer) -> tuple[type, ...]:
    """The requests that this peer may send: without keys all of them."""
    if peer.admission is None:
        return REQUESTS
    if peer.admission.role == "oss":
        return OF_OSS
    return tuple(kind for kind in REQUESTS if kind not in OF_OSS)


def reportable(peer: Peer) -> tuple[type, ...]:
    """The reports of traffic that this peer may send: without keys either."""
    if peer.admission is None:
        return TRAFFIC
    return (OssReport,) if peer.admission.role == "oss" else (NodeReport,)


class Replier(ABC):
    """Receives requests and answers them, in any order and at any time."""

    counts: Counts
    address: str
    term: Callable[[], int] = staticmethod(lambda: 0)
    """With which each answer is stamped: of two mdsds that of the reign that is known here."""

    @abstractmethod
    def receive(self, timeout_s: float) -> tuple[Peer, Request] | None:
        """The next request, or None after `timeout_s`. Bad messages are dropped."""

    @abstractmethod
    def reply(self, peer: Peer, message: Reply | bytes) -> None:
        """Answer; a peer that has gone is no error, it will ask again. Bytes: a reply that is encoded already."""

    @abstractmethod
    def close(self) -> None: ...


class Servers:
    """The addresses of one mdsd, or of two of which one answers; shared by all requesters of a process.

    Which one that is nobody tells: the one that answered last is asked first. Each reign of one of two has a term,
    and no two the same. Who has heard of a term takes no answer of an earlier one.
    """

    def __init__(self, addresses: str | Sequence[str]) -> None:
        self.addresses = (addresses,) if isinstance(addresses, str) else tuple(addresses)
        self.first = 0
        self.term = 0
        """The latest that was heard of."""
        self._term_at = -math.inf

    def deposed(self, term: int) -> bool:
        """Whether an answer of this term, which came now, is one of an mdsd in whose place another one reigns."""
        now = time.monotonic()
        if 0 < term < self.term and now - self._term_at < DEPOSED_S:
            return True
        if term:
            self.term, self._term_at = term, now
        return False

    def __str__(self) -> str:
        return " or ".join(self.addresses)


@dataclass
class _Open:
    """A request without an answer."""

    message: Request
    due_s: float = 0.0
    refused: set[int] = field(default_factory=set)
    """Servers that said since it was sent last that they are not the active one."""


class Requester(ABC):
    """Sends requests and resends each until it is answered. Replies to nothing that is open are ignored.

    With two servers, a request goes to the one that answered last. The other one is asked instead as soon as that
    one says that it is not active, and as well while that one is silent.
    """

    counts: Counts
    resend_s: float = RESEND_S

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self.counts = Counts()
        self._early: deque[Reply] = deque()
        """Replies to other requests that came while `request` waited for its own."""
        self._open: dict[str, _Open] = {}
        self._heard_s = 0.0
        """When the server that is asked first spoke last, or the first of what is open was submitted."""
        self._connected = True
        """What was sent last to the server that is asked first could be sent."""

    @abstractmethod
    def _send(self, message: Request, server: int) -> bool:
        """Try to send now; False when nobody is connected."""

    @abstractmethod
    def _next(self, timeout_s: float) -> tuple[int, Reply] | None:
        """The next well-formed reply within `timeout_s`, and which server it came from."""

    @abstractmethod
    def close(self) -> None: ...

    def submit(self, message: Request) -> None:
        """Send as soon as somebody is connected; both that and the reply are up to `receive`.

        Raises WireError for a message that no replier would take.
        """
        if isinstance(message, AllocationRequest | FileClosed):
            size_bytes = len(encode(message))
            if size_bytes > MAX_REQUEST_BYTES:
                expected = f"a request of at most {MAX_REQUEST_BYTES} bytes"
                raise WireError(str(self.servers), expected, size_bytes)
        if not self._open:
            self._heard_s = time.monotonic()
        self._open[request_id(message)] = _Open(message)
        self._resend()

    def forget(self, message_id: str) -> None:
        """No longer wait for the reply to this request."""
        self._open.pop(message_id, None)

    def receive(self, timeout_s: float) -> Reply | None:
        """The reply to one of the open requests, or a TargetsChanged, or None after `timeout_s`; resends meanwhile."""
        if self._early:
            return self._early.popleft()
        return self._receive(timeout_s)

    def _receive(self, timeout_s: float) -> Reply | None:
        deadline = time.monotonic() + timeout_s
        while True:
            due_s = self._resend()
            left_s = deadline - time.monotonic()
            came = self._next(max(0.0, min(left_s, due_s)))
            if came and (reply := self._taken(*came)):
                return reply
            if left_s <= 0 and came is None:
                return None

    def _taken(self, server: int, reply: Reply) -> Reply | None:
        """The reply, if it answers what is open."""
        if isinstance(reply, messages.Answer):
            deposed, term = self.servers.deposed(reply.term), reply.term
            reply = msgspec.structs.replace(reply, term=0)
            if deposed and not isinstance(reply, NotActive):
                later = f"an answer of term {self.servers.term} or later, found {term}"
                self.counts.drop(self.servers.addresses[server], f"{later}: the other mdsd has taken over")
                reply = NotActive("" if isinstance(reply, TargetsChanged) else request_id(reply))
        if isinstance(reply, TargetsChanged):
            return reply  # nobody has asked for it
        open = self._open.get(request_id(reply))
        if server == self.servers.first:
            self._heard_s = time.monotonic()
        if isinstance(reply, NotActive):
            if open:
                self._refused(open, server)
            return None
        if open is None:
            return None
        # Any mdsd says how it is; all else only the active one.
        if server != self.servers.first and not isinstance(reply, StatusReply):
            self._ask_first(server)
        self.forget(request_id(reply))
        return reply

    def _refused(self, open: _Open, server: int) -> None:
        open.refused.add(server)
        count = len(self.servers.addresses)
        if len(open.refused) == count:
            open.refused.clear()
            open.due_s = time.monotonic() + min(ASK_AGAIN_S, self.resend_s)
        elif server == self.servers.first:
            open.due_s = 0.0
        if server == self.servers.first and count > 1:
            self._ask_first((server + 1) % count)

    def _ask_first(self, server: int) -> None:
        self.servers.first = server
        self._heard_s = time.monotonic()

    def request(self, message: Request, timeout_s: float) -> Reply:
        """Ask and wait. Raises Unavailable when no answer came within `timeout_s`.

        Replies to other open requests that arrive meanwhile are kept for `receive`. Raises WireError as `submit`.
        """
        wanted = request_id(message)
        self.submit(message)
        deadline = time.monotonic() + timeout_s
        while (left_s := deadline - time.monotonic()) > 0:
            reply = self._receive(left_s)
            if reply is None:
                break
            if request_id(reply) == wanted:
                return reply
            self._early.append(reply)
        self.forget(wanted)
        raise Unavailable(f"{self.servers}: expected an answer within {timeout_s:g} s, found none")

    def _resend(self) -> float:
        """Send whatever is due; seconds until the next is."""
        now = time.monotonic()
        wait_s = self.resend_s
        for open in list(self._open.values()):
            if open.due_s <= now:
                # Nobody connected: try again soon, so that a peer that comes back is asked at once.
                sent = (
                    self._send_to_all(open.message)
                    if self._silent(now)
                    else self._send_to_first(open.message)
                )
                open.due_s = now + (self.resend_s if sent else min(0.05, self.resend_s))
            wait_s = min(wait_s, open.due_s - now)
        return max(0.0, wait_s)

    def _silent(self, now: float) -> bool:
        return now - self._heard_s > (2 * self.resend_s if self._connected else UNCONNECTED_S)

    def _send_to_first(self, message: Request) -> bool:
        self._connected = self._send(message, self.servers.first)
        return self._connected

    def _send_to_all(self, message: Request) -> bool:
        sent = self._send_to_first(message)
        for server in range(len(self.servers.addresses)):
            if server != self.servers.first:
                sent = self._send(message, server) or sent
        return sent


class Transport(ABC):
    """Makes the four kinds of ends. Closing it closes them all."""

    @abstractmethod
    def publisher(self, *addresses: str) -> Publisher: ...

    @abstractmethod
    def subscriber(self, address: str) -> Subscriber: ...

    @abstractmethod
    def requester(self, servers: str | Servers) -> Requester: ...

    @abstractmethod
    def replier(self, address: str) -> Replier: ...

    @abstractmethod
    def close(self) -> None: ...
