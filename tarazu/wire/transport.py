"""The peer at the other end, what it may do, and what it sent: shared by all ends of a connection."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, get_args

from tarazu.errors import WireError
from tarazu.figures import Family, counters
from tarazu.wire.admission import Admission
from tarazu.wire.messages import (
    AllocationReply,
    AllocationRequest,
    Message,
    PartRequest,
    Reply,
    Request,
    StatusRequest,
    ThenRequest,
    ViewRequest,
    decode,
)
from tarazu.wire.reports import OssReport
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.wire")

MAX_MESSAGE_BYTES = 64 << 20
"""Of a reply: one to the largest request."""
MAX_REQUEST_BYTES = 16 << 20
"""Of what mdsd receives, requests and reports: the largest request that it takes (a million files) is 14 MB."""
QUEUED_REPLIES = 256
"""To one peer that does not read them; more are lost, and sent when it asks again."""
LOOK_BACK_S = 2.0
"""So often it is seen whether an mdsd that stands before the one that answers is back."""

STATISTICS = (OssReport,)
REQUESTS = get_args(Request)
REPLIES = get_args(Reply)
QUESTIONS = (ViewRequest, ThenRequest, StatusRequest)
"""How the system is: every key may ask."""
OF_PARTS = (PartRequest,)
"""Which of them each key may send the part says (`tarazu.part.InMdsd.asks`)."""


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
    if isinstance(message, OssReport):
        raise TypeError("a report is not answered")
    return message.message_id


def askable(peer: Peer) -> tuple[type, ...]:
    """The requests that this peer may send: without keys all of them."""
    if peer.admission is None:
        return REQUESTS
    if peer.admission.role == "oss":
        return (*QUESTIONS, *OF_PARTS)
    if peer.admission.role == "server":
        return QUESTIONS
    return REQUESTS


class Servers:
    """The addresses of mdsds, in the order in which they are asked; shared by all requesters of a process.

    The first one that answers is asked alone; where it is silent the others are asked as well, and so is, now and then,
    one before it.
    """

    def __init__(self, addresses: str | Sequence[str]) -> None:
        self.addresses = (addresses,) if isinstance(addresses, str) else tuple(addresses)
        self.first = 0
        """That answered last."""
        self._looked = -math.inf

    def look_back(self, now: float) -> bool:
        """Whether those before the one that answers are to be asked too: every `LOOK_BACK_S`."""
        due = self.first > 0 and now - self._looked >= LOOK_BACK_S
        self._looked = now if due else self._looked
        return due

    def __str__(self) -> str:
        return " or ".join(self.addresses)


_OF_SOCKET = (
    ("messages_received", "received", "Valid messages."),
    ("messages_dropped", "dropped", "Malformed messages, or of a type that the socket does not take."),
    ("messages_beyond_rate", "too_many", "Messages beyond the rate of one connection."),
    ("messages_shut_out", "shut_out", "Messages under a key that was removed."),
    ("handshakes_refused", "refused", "Connections refused: wrong or no key, or no ZeroMQ."),
    ("connections_turned_away", "turned_away", "Connections refused for lack of room."),
)


def of_sockets(name: str, sockets: Mapping[str, Counts]) -> Iterator[Family]:
    """What each bound socket of a daemon has seen."""
    for what, counted, text in _OF_SOCKET:
        values = {socket: getattr(counts, counted) for socket, counts in sockets.items()}
        yield counters(f"{name}_{what}", text, "socket", values)
    standing = Family("gauge", f"{name}_connections", "Open connections.", ("socket",))
    for socket, counts in sockets.items():
        standing.samples[socket,] = counts.connections
    yield standing
