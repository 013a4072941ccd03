"""What clientd and the process of a forecast say to one another, over a socket pair.

clientd ──ForecastTask, with the histories as descriptors──► process ──ForecastSummary──► clientd
clientd ──Choose──► process ──ChosenLayouts, several──► clientd
clientd ──ForecastTask of no step, with the histories──► process ──PreparedForecast──► clientd

What comes back is checked like any message of a stranger: the process has read a user's file.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, NamedTuple

import msgspec

from tarazu import names
from tarazu.daemons.clientd.forecasts.prepared import MOST_BYTES
from tarazu.errors import WireError
from tarazu.evidence.outcomes import Outcome
from tarazu.layout.manager import LayoutPolicy, UsableOsts
from tarazu.malformed import MALFORMED
from tarazu.model import JobStep
from tarazu.predict.aipa import MOST_FILES
from tarazu.store.rows import NewFile
from tarazu.wire import local
from tarazu.wire.bounds import Id
from tarazu.wire.channel import Channel

MOST_TEXTS = 100
MOST_OUTCOMES = local.MAX_DESCRIPTORS
MOST_CHARACTERS = 500
MOST_PARTS = 100
PartBytes = Annotated[bytes, msgspec.Meta(max_length=1 << 20)]
FILES_AT_ONCE = 1_000
"""Decoding more of them holds up clientd's other threads."""
MAX_FRAME_BYTES = 64 << 20


class Begin(NamedTuple):
    """To the server, with one end of a socket pair: a process for one plan."""

    number: int
    uid: int
    nice: int
    cpu_s: int
    memory_bytes: int


BEGIN = struct.Struct("<QQIIQ")
END = struct.Struct("<Q")
"""To the server: the process of that number is to end."""
READY = b"ready"
"""From the server, once: all is imported."""


class ForecastTask(msgspec.Struct, frozen=True, tag="job"):
    """Read the histories that come along, and forecast."""

    step: JobStep | None
    """None: a step like the newest of the histories is to come. What it begins with is told, a PreparedForecast."""
    from_s: float
    until_s: float
    in_run: bool
    horizon_s: float
    """`predict.horizon_s`"""
    seconds: float = 60.0
    """In which `ForecastSummary` has to be told."""
    parts: dict[str, bytes] = {}
    """Part of tarazu → by what it makes something of the runs (`tarazu.part.Part.planned_by`)."""
    prepared: bytes = b""
    """What the end of the run before has left (`prepared.py`)."""


class PreparedForecast(msgspec.Struct, frozen=True, tag="prepared"):
    """What the next run of an application begins with; of none where no run can be read."""

    application: Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)] = ""
    body: Annotated[bytes, msgspec.Meta(max_length=MOST_BYTES)] = b""


class ForecastSummary(msgspec.Struct, frozen=True, tag="found"):
    """What is expected in [from_s, until_s)."""

    files: Annotated[int, msgspec.Meta(ge=0, le=MOST_FILES)]
    size_bytes: Annotated[int, msgspec.Meta(ge=0)]
    nothing: bool
    """No files are expected at all, whenever."""
    later: bool
    """More files are expected after `until_s`."""
    parents: tuple[str, ...]
    """Directories of the files."""
    problems: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_TEXTS)] = ()
    """Of reading the histories."""
    warnings: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_TEXTS)] = ()
    """Of the forecast."""
    parts: Annotated[dict[Id, PartBytes], msgspec.Meta(max_length=MOST_PARTS)] = {}
    """What they made."""
    outcomes: Annotated[tuple[Outcome, ...], msgspec.Meta(max_length=MOST_OUTCOMES)] = ()
    """What the runs before took, oldest first."""


class Choose(msgspec.Struct, frozen=True, tag="choose"):
    """Choose the layouts of the files found."""

    targets: UsableOsts
    directories: local.DirectoryLayouts
    policy: LayoutPolicy
    foreign_defaults: bool


class ChosenLayouts(msgspec.Struct, frozen=True, tag="chosen"):
    """The next files with their layouts, FILES_AT_ONCE at most."""

    files: Annotated[tuple[NewFile, ...], msgspec.Meta(max_length=FILES_AT_ONCE)]
    stripes: Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)] = ""
    """Why so many stripes, the same with all parts (`tarazu.plan.configure`)."""


class ForecastRefused(msgspec.Struct, frozen=True, tag="refused"):
    """It cannot be done."""

    reason: str


Frame = ForecastTask | ForecastSummary | Choose | ChosenLayouts | PreparedForecast | ForecastRefused
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame | local.Escaped)


def encode(frame: Frame) -> bytes:
    """With names that are not UTF-8 as in the local conversation."""
    try:
        return _encoder.encode(frame)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(frame, builtin_types=(bytes,))
        return _encoder.encode(local.Escaped(msgspec.Raw(_encoder.encode(local.texts(plain, names.to_text)))))


def decode(body: bytes) -> Frame:
    """The inverse of `encode`. Raises WireError."""
    try:
        answer: Any = _decoder.decode(body)
        if isinstance(answer, local.Escaped):
            plain = local.texts(msgspec.msgpack.decode(answer.message), names.from_text)
            answer = msgspec.convert(plain, Frame)
        frame: Frame = answer
        return frame
    except MALFORMED as error:
        raise WireError("forecast", "an answer of its process", str(error)) from None


class Pipe(Channel):
    """One end of the conversation."""

    def put(self, frame: Frame, descriptors: list[int] | None = None) -> None:
        """Raises Unavailable when the other end is gone."""
        self.send_body(encode(frame), descriptors)

    def take(self) -> Frame:
        """Raises Unavailable at the end or at the deadline, WireError for nonsense."""
        return decode(self.receive_body())
