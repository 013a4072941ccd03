"""What announcers and a council say to one another: msgpack of tagged structs over the sockets of `tarazu.wire`.

announcer ──Observed──► council      each `INTERVAL_S` while there is I/O; else a sign of life
council ──Decided──► announcer       to each Observed at once; by itself to all when what is decided changes
any ──Asked──► council ──Told──► any  how is it, what has it learned
another group's, another's name, too many ──► council ──Refused──► that announcer
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import zmq

from tarazu.errors import WireError
from tarazu.malformed import MALFORMED
from tarazu.parts.changes.ordered import Mode
from tarazu.parts.council.counters import Kind
from tarazu.parts.council.pattern import Observation
from tarazu.wire.bounds import PROTOCOL, Id
from tarazu.wire.ends import NOBLOCK, can_read
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Counts, Peer

MODES: tuple[Mode, ...] = ("observe", "advise", "apply")
"""From the least to the most."""
INTERVAL_S = 1.0
"""Between two words of an announcer, while there is I/O."""
DWELL_S = 10.0
"""A value stays at least so long, unless it makes things worse."""
SILENT_S = 30.0
"""When the council is silent for so long, what was there before is restored; a node as silent is forgotten."""
MAX_LEVERS = 16
MAX_BYTES = 32 << 10
"""Of one message of an announcer, and of a decision."""
MAX_TOLD_BYTES = 16 << 20
QUEUED, QUEUED_HERE = 64, 8
"""Messages to one peer that wait, and from one that wait at the council."""

Text = Annotated[str, msgspec.Meta(max_length=512)]
Values = Annotated[dict[Id, Id], msgspec.Meta(max_length=MAX_LEVERS)]
"""Lever → value."""


class Observed(msgspec.Struct, frozen=True, tag="observed", omit_defaults=True):
    """What one node saw in one interval, and what was in force there all the time."""

    message_id: Id
    group: Id
    host: Id
    kind: Kind
    observation: Observation | None = None
    """None: no I/O, or not of one value alone; a sign of life."""
    in_force: Values = {}
    """Of the node's levers."""
    mode: Mode = "observe"
    """What this node allows: the least of its `part.council.mode` and what holds it."""
    problem: Text = ""
    """Why a lever is not what was decided; for people."""
    protocol: int = PROTOCOL


class Decided(msgspec.Struct, frozen=True, tag="decided", omit_defaults=True):
    """What all nodes of a group should have in force now."""

    message_id: Id
    """Of the Observed that it answers; empty: by itself."""
    council: Id
    """Its name."""
    group: Id
    generation: int
    """Counts up with each change."""
    mode: Mode
    values: Values = {}
    """A lever that is not here has what was there before. With `advise` they are what would be set."""
    why: Text = ""
    protocol: int = PROTOCOL


class Refused(msgspec.Struct, frozen=True, tag="not-ours", omit_defaults=True):
    """The council does not listen to this announcer."""

    message_id: Id
    why: Text
    protocol: int = PROTOCOL


class Asked(msgspec.Struct, frozen=True, tag="tune?", omit_defaults=True):
    """How is the council?"""

    message_id: Id
    protocol: int = PROTOCOL


class TuneStatus(msgspec.Struct, frozen=True, tag="tune", omit_defaults=True):
    """What `tarazu change tune show --json` prints: plain values, for people."""

    message_id: Id
    status: dict[str, Any]
    protocol: int = PROTOCOL


ToCouncil = Observed | Asked
FromCouncil = Decided | Refused | TuneStatus

_encoder = msgspec.msgpack.Encoder()
_to_council: msgspec.msgpack.Decoder[ToCouncil] = msgspec.msgpack.Decoder(ToCouncil)
_from_council: msgspec.msgpack.Decoder[FromCouncil] = msgspec.msgpack.Decoder(FromCouncil)


def encode(message: ToCouncil | FromCouncil) -> bytes:
    return _encoder.encode(message)


def to_council(data: bytes, peer: str = "announcer") -> ToCouncil:
    """Raises WireError for anything but an announcer's report."""
    message: ToCouncil = _decoded(_to_council, data, peer, "what an announcer says")
    return message


def from_council(data: bytes, peer: str = "council") -> FromCouncil:
    """Raises WireError for anything else than what a council says."""
    message: FromCouncil = _decoded(_from_council, data, peer, "what a council says")
    return message


def _decoded(decoder: msgspec.msgpack.Decoder[Any], data: bytes, peer: str, expected: str) -> Any:
    try:
        message = decoder.decode(data)
    except MALFORMED as error:
        raise WireError(peer, expected, str(error)) from None
    if message.protocol != PROTOCOL:
        raise WireError(peer, f"protocol {PROTOCOL}", message.protocol)
    return message


class CouncilEnd:
    """The council's socket: many connect to it, with an OSS's, a client's or the server's own key."""

    counts: Counts

    def __init__(self, transport: ZmqTransport, address: str) -> None:
        """Raises ConfigError for an address that needs keys and has none, WireError for one that cannot be bound."""
        options: dict[int, int] = {
            zmq.SNDHWM: QUEUED,
            zmq.MAXMSGSIZE: MAX_BYTES,
            # Whether an announcer has gone shows when it is spoken to.
            zmq.ROUTER_MANDATORY: 1,
        }
        self._end = transport.talking(address, bind=True, options=options)
        self.counts = self._end.counts
        self.address = self._end.address

    def receive(self) -> tuple[Peer, ToCouncil] | None:
        """What came next, if anything did. Bad messages are dropped and counted."""
        while self._end.wait(0):
            if (got := self._end.frames()) is None:
                continue
            frames, peer = got
            try:
                message = to_council(frames[-1], peer.name)
            except WireError as error:
                self.counts.drop(error.where, error.expected)
                continue
            self.counts.received += 1
            return peer, message
        return None

    def send(self, route: bytes, data: bytes) -> bool:
        """False when nobody is there any more. One that does not read is no error: it will say something again."""
        try:
            self._end.socket.send_multipart([route, data], zmq.NOBLOCK)
        except zmq.Again:
            return True
        except zmq.ZMQError:
            return False
        return True


class AnnouncerEnd:
    """The socket of an announcer, or of who asks a council."""

    counts: Counts

    def __init__(self, transport: ZmqTransport, address: str) -> None:
        """Raises ConfigError, WireError as `CouncilEnd`."""
        options: dict[int, int] = {
            zmq.SNDHWM: QUEUED_HERE,
            zmq.RCVHWM: QUEUED,
            zmq.MAXMSGSIZE: MAX_TOLD_BYTES,
        }
        self._end = transport.talking(address, bind=False, options=options)
        self.counts = self._end.counts
        self.address = address

    def send(self, message: ToCouncil) -> bool:
        """False when nobody is connected: what was seen is soon too old to be worth it."""
        self._end.look()
        try:
            self._end.socket.send(encode(message), NOBLOCK)
        except zmq.Again:
            return False
        return True

    def wait(self, timeout_s: float) -> bool:
        """True when there is something to `receive`."""
        return self._end.wait(timeout_s)

    def receive(self) -> FromCouncil | None:
        """What came next, if anything did. Bad messages are dropped and counted."""
        socket = self._end.socket
        while can_read(socket):
            try:
                message = from_council(b"".join(socket.recv_multipart(NOBLOCK)), self.address)
            except WireError as error:
                self.counts.drop(error.where, error.expected)
                continue
            self.counts.received += 1
            return message
        return None
