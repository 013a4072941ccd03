"""The Unix socket between `tarazu run` and clientd: one conversation per job step or question.

A frame is u32 length, then a msgpack message. Descriptors of the user's history files travel with the
PlanRequest (SCM_RIGHTS), so clientd needs no right to read them; who asks is known from SO_PEERCRED.

    tarazu run ── PlanRequest + history files ──► clientd
               ◄── DirectoriesWanted ──            which directories' default layouts does the plan need?
               ── DirectoryLayouts ──►
               ◄── PlanReply ──
    tarazu run ── StepReport ──► clientd           ◄── Done ──
    any        ── PlansQuery, StatusQuery ──►      ◄── PlansReply, StatusAnswer ──
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
import time
from typing import Any

import msgspec

from tarazu.errors import Unavailable, WireError
from tarazu.model import JobStep, Layout

MAX_REPLY_BYTES = 1 << 30
"""A plan may hold a million files."""
MAX_REQUEST_BYTES = 16 << 20
MAX_DESCRIPTORS = 200


class PlanRequest(msgspec.Struct, frozen=True, tag="plan"):
    """Predict the next run of `step` from the history files sent along, and have its files placed."""

    step: JobStep
    histories: int
    """How many descriptors come with this message, oldest run first."""
    osts: tuple[int, ...]
    """OST indices that exist in the file system."""
    active: tuple[int, ...]
    pools: dict[str, tuple[int, ...]] = {}
    from_s: float = 0.0
    """Seconds after the start of the step: files expected before are planned already."""
    in_run: bool = False
    """The last history is this run so far: predict its next steps from itself."""
    place: bool = True
    """False: forecast and store only (mode observe)."""


class DirectoriesWanted(msgspec.Struct, frozen=True, tag="directories?"):
    """Directories below the mount in which files are expected."""

    keys: tuple[str, ...]


class DirectoryLayouts(msgspec.Struct, frozen=True, tag="directories"):
    """`lustre.lov` of the root and of the deepest existing parent of each directory (empty: none)."""

    root: bytes
    parents: dict[str, bytes]


class PlannedFile(msgspec.Struct, frozen=True, tag="file", array_like=True):
    """One row of the placement map to be."""

    row_id: int
    key: str
    precise: str
    loose: str
    volatile: bool
    rank: int
    nth_precise: int
    nth_loose: int
    size_bytes: int
    layout: int
    """Index into PlanReply.layouts."""
    osts: tuple[tuple[int, ...], ...]


class PlanReply(msgspec.Struct, frozen=True, tag="planned"):
    """What came of a PlanRequest. `status`: planned, forecast (nothing asked), nothing, or why not."""

    status: str
    reason: str = ""
    plan_id: int = 0
    request_id: str = ""
    layouts: tuple[Layout, ...] = ()
    files: tuple[PlannedFile, ...] = ()
    forecast_files: int = 0
    forecast_bytes: int = 0
    ost_cost: float = 0.0
    ost_cost_bound: float = 0.0
    elapsed_s: float = 0.0
    until_s: float = 0.0
    """The plan holds the files expected until then, seconds after the start of the step."""
    next_s: float | None = None
    """Ask again then: more files are expected."""
    warnings: tuple[str, ...] = ()
    """Of histories left out and of the forecast; equal ones come with every plan."""


class StepReport(msgspec.Struct, frozen=True, tag="step-report"):
    """The job step is over: the run's history file comes along as a descriptor."""

    fs_name: str
    plan_ids: tuple[int, ...]
    request_ids: tuple[str, ...]


class PlansQuery(msgspec.Struct, frozen=True, tag="plans?"):
    """Rows of the interaction database: the newest plan (of `application`), one plan, or one key."""

    application: str = ""
    plan_id: int = 0
    fs_name: str = ""
    key: str = ""


class PlansReply(msgspec.Struct, frozen=True, tag="plans"):
    plan: dict[str, Any] | None
    files: tuple[dict[str, Any], ...] = ()


class StatusQuery(msgspec.Struct, frozen=True, tag="status?"):
    pass


class StatusAnswer(msgspec.Struct, frozen=True, tag="status"):
    status: dict[str, Any]


class Done(msgspec.Struct, frozen=True, tag="done"):
    pass


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    reason: str


LocalMessage = (
    PlanRequest
    | DirectoriesWanted
    | DirectoryLayouts
    | PlanReply
    | StepReport
    | PlansQuery
    | PlansReply
    | StatusQuery
    | StatusAnswer
    | Done
    | Failed
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(LocalMessage)


class Channel:
    """One end of a conversation. `with Channel(sock) as channel: …`"""

    def __init__(
        self, sock: socket.socket, *, max_bytes: int = MAX_REPLY_BYTES, deadline_s: float | None = None
    ) -> None:
        """`deadline_s`: the whole conversation ends after this; else only silence does (the socket's time-out)."""
        self._socket = sock
        self._max_bytes = max_bytes
        self._ends_at = None if deadline_s is None else time.monotonic() + deadline_s
        self.descriptors: list[int] = []
        """Received with the last message; the receiver closes them."""

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.close_descriptors()
        self._socket.close()

    def close_descriptors(self) -> None:
        for descriptor in self.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.descriptors = []

    def peer_uid(self) -> int:
        """The uid of the process at the other end (SO_PEERCRED)."""
        size = struct.calcsize("3i")
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return int(struct.unpack("3i", credentials)[1])

    def send(self, message: LocalMessage, descriptors: list[int] | None = None) -> None:
        """Raises Unavailable when the other end is gone or does not read."""
        body = _encoder.encode(message)
        data = struct.pack("<I", len(body)) + body
        try:
            if descriptors:
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                sent = self._socket.sendmsg([data[:4]], ancillary)
                data = data[sent:]
            self._socket.sendall(data)
        except OSError as error:
            raise Unavailable(f"clientd socket: {error}") from None

    def receive(self) -> LocalMessage:
        """The next message. Raises Unavailable at the end or on time-out, WireError for nonsense."""
        self.close_descriptors()
        header = self._read(4, with_descriptors=True)
        (length,) = struct.unpack("<I", header)
        if length > self._max_bytes:
            raise WireError("clientd socket", f"a frame of at most {self._max_bytes} bytes", length)
        try:
            message: LocalMessage = _decoder.decode(self._read(length))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise WireError("clientd socket", "a message of this version of tarazu", str(error)) from None
        return message

    def ask(self, message: LocalMessage, descriptors: list[int] | None = None) -> LocalMessage:
        """Send, and return the answer; a Failed answer is raised as Unavailable."""
        self.send(message, descriptors)
        answer = self.receive()
        if isinstance(answer, Failed):
            raise Unavailable(f"clientd: {answer.reason}")
        return answer

    def _read(self, size: int, with_descriptors: bool = False) -> bytes:
        chunks = bytearray()
        try:
            while len(chunks) < size:
                if self._ends_at is not None:
                    self._socket.settimeout(max(0.001, self._ends_at - time.monotonic()))
                if with_descriptors:
                    data, descriptors, _, _ = socket.recv_fds(
                        self._socket, size - len(chunks), MAX_DESCRIPTORS
                    )
                    self.descriptors.extend(descriptors)
                else:
                    data = self._socket.recv(min(size - len(chunks), 1 << 20))
                if not data:
                    raise Unavailable("clientd socket: closed by the other end")
                chunks += data
        except OSError as error:
            raise Unavailable(f"clientd socket: {error}") from None
        return bytes(chunks)


def connect(path: str, timeout_s: float) -> Channel:
    """A conversation with clientd. Raises Unavailable."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        sock.connect(path)
    except OSError as error:
        sock.close()
        raise Unavailable(f"clientd at {path}: {error.strerror or error}") from None
    return Channel(sock)
