"""What two mdsds say to each other: one connection, from the second to the first, with the server's keys on both ends.

either ──Here──► the other                         every `HERE_S`, and at each change
follower ──Follow, Taken──► active                 what it has promised alone, then acknowledgements
active ──Part, Records──► follower                 the whole book, then every record of it

What is in the records is up to the daemons: here they are bytes.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Literal

import msgspec
import zmq

from tarazu.errors import WireError
from tarazu.malformed import MALFORMED
from tarazu.wire.bounds import MAX_ID_CHARACTERS, PROTOCOL
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Counts

HERE_S = 0.5
PART_BYTES = 1 << 20
"""Of one message with a part of a snapshot, or with what was promised alone."""
MAX_RECORDS_BYTES = 256 << 20
"""Of a message with records: those of one turn of the loop. The longest is that of a request for a million files."""

Role = Literal["asking", "active", "following"]
Name = Annotated[str, msgspec.Meta(max_length=MAX_ID_CHARACTERS)]


class Here(msgspec.Struct, frozen=True, tag="here", omit_defaults=True):
    """How the sender is."""

    process: Name
    """Of this start of the daemon."""
    second: bool
    role: Role
    term: int
    sequence: int
    """Of its last record."""
    now_s: float
    """On its ledger's clock."""
    leaving: bool = False
    """It ends now, or can write nothing: the other need not wait."""
    feeds: Name = ""
    """Session of the one that follows it."""
    problem: Name = ""
    """Why it cannot write its ledger."""
    protocol: int = PROTOCOL


class Handed(msgspec.Struct, frozen=True, array_like=True):
    """A promise that was made alone, as its records."""

    id: Name
    records: tuple[bytes, ...]
    heard_s: float
    """When its job step reported last, on the sender's ledger's clock: mdsds of earlier versions decide by it."""


class Follow(msgspec.Struct, frozen=True, tag="follow", omit_defaults=True):
    """Give me your book, and every record from now on. In parts, with what the sender knows alone."""

    session: Name
    number: int
    last: bool
    now_s: float
    """On its ledger's clock."""
    handed: tuple[Handed, ...] = ()
    told: tuple[bytes, ...] = ()
    """Records about promises that both know."""
    protocol: int = PROTOCOL


class SnapshotPart(msgspec.Struct, frozen=True, tag="part", omit_defaults=True):
    """Of the book's snapshot."""

    session: Name
    number: int
    last: bool
    data: bytes
    protocol: int = PROTOCOL


class Records(msgspec.Struct, frozen=True, tag="records", omit_defaults=True):
    """What came after the snapshot, in order."""

    session: Name
    first: int
    """Number of the first of them."""
    data: bytes
    protocol: int = PROTOCOL


class Taken(msgspec.Struct, frozen=True, tag="taken", omit_defaults=True):
    """How far the follower is."""

    session: Name
    parts: int
    sequence: int = -1
    """Number of the last record that it has on its disk; -1: the snapshot is not complete."""
    protocol: int = PROTOCOL


Said = Here | Follow | SnapshotPart | Records | Taken

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Said)

_LINK: dict[int, int] = {
    # What is under way is bounded by whoever sends it, and must not be dropped unseen.
    zmq.SNDHWM: 0,
    zmq.RCVHWM: 0,
    zmq.MAXMSGSIZE: MAX_RECORDS_BYTES + PART_BYTES,
    # A connection that broke unseen is replaced soon.
    zmq.TCP_KEEPALIVE_IDLE: 1,
    zmq.TCP_KEEPALIVE_INTVL: 1,
    zmq.TCP_KEEPALIVE_CNT: 3,
    zmq.TCP_MAXRT: 3_000,
    zmq.RECONNECT_IVL: 100,
    zmq.RECONNECT_IVL_MAX: 500,
}


class Link:
    """One end of the connection. The first mdsd binds it, the second connects to it."""

    counts: Counts

    def __init__(self, transport: ZmqTransport, address: str, second: bool) -> None:
        """Raises ConfigError for an address that needs keys and has none, WireError for one that cannot be bound."""
        self._bound = not second
        self._end = transport.link(address, bind=self._bound, options=_LINK)
        self._route: bytes | None = None
        self.counts = self._end.counts
        self.address = self._end.address

    def send(self, message: Said) -> None:
        """To the other one, if it is there: what is lost shows in what it says next."""
        frames = [encode(message)]
        if self._bound:
            if self._route is None:
                return
            frames.insert(0, self._route)
        with contextlib.suppress(zmq.Again):
            self._end.socket.send_multipart(frames, zmq.NOBLOCK)

    def receive(self) -> Said | None:
        """What came next, if anything did. Bad messages are dropped and counted."""
        while self._end.wait(0):
            if (got := self._end.frames()) is None:
                continue
            frames = got[0]
            route = frames.pop(0) if self._bound else None
            try:
                message = decode(b"".join(frames))
            except WireError as error:
                self.counts.drop(error.where, error.expected)
                continue
            self.counts.received += 1
            self._route = route
            return message
        return None


def encode(message: Said) -> bytes:
    return _encoder.encode(message)


def decode(data: bytes, peer: str = "mdsd") -> Said:
    """Raises WireError for anything else than what an mdsd of this protocol version says."""
    try:
        message: Said = _decoder.decode(data)
    except MALFORMED as error:
        # ValueError: text that is no UTF-8.
        raise WireError(peer, "what a second mdsd says", str(error)) from None
    if message.protocol != PROTOCOL:
        raise WireError(peer, f"protocol {PROTOCOL}", message.protocol)
    return message
