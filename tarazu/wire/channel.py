"""A conversation on the Unix socket of clientd: frames of u32 length and a message of `wire.local`.

Descriptors travel beside a frame's first byte (SCM_RIGHTS); who is at the other end is known from SO_PEERCRED.
"""

from __future__ import annotations

import array
import contextlib
import math
import os
import select
import socket
import struct
import time
from typing import Protocol

from tarazu import errors
from tarazu.errors import Unavailable, WireError
from tarazu.wire.local import (
    MAX_DESCRIPTORS,
    MAX_REPLY_BYTES,
    Busy,
    Failed,
    LocalMessage,
    decode,
    encode,
)


class Allowance(Protocol):
    """Room that many conversations share: a part of it is taken before it is used, and given back."""

    def take(self, amount: int) -> bool: ...
    def give(self, amount: int) -> None: ...


class Channel:
    """One end of a conversation. `with Channel(sock) as channel: …`"""

    def __init__(
        self,
        sock: socket.socket,
        *,
        max_bytes: int = MAX_REPLY_BYTES,
        deadline_s: float | None = None,
        room: Allowance | None = None,
        descriptor_room: Allowance | None = None,
        name: str = "clientd socket",
    ) -> None:
        """`deadline_s`: the whole conversation ends after this; else only silence does (the socket's time-out).

        `room`, `descriptor_room`: where the bytes of a received frame and its descriptors are taken from, until
        the next one is received; without room for them `receive` raises Busy. `name`: of the socket, in errors.
        """
        self._socket, self._name = sock, name
        self.max_bytes = max_bytes
        self._room, self._descriptor_room = room, descriptor_room
        self._room_taken = self._descriptors_taken = 0
        self.limit(deadline_s)
        self.descriptors: list[int] = []
        """Received with the last message; the receiver closes them."""

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def limit(self, deadline_s: float | None) -> None:
        """From now on the conversation ends after this, whoever is slow."""
        self._ends_at = None if deadline_s is None else time.monotonic() + deadline_s
        self._limit_s = deadline_s

    def close(self) -> None:
        self.close_descriptors()
        self._give_back()
        self._socket.close()

    def close_descriptors(self) -> None:
        for descriptor in self.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.descriptors = []

    def _give_back(self) -> None:
        if self._room and self._room_taken:
            self._room.give(self._room_taken)
        if self._descriptor_room and self._descriptors_taken:
            self._descriptor_room.give(self._descriptors_taken)
        self._room_taken = self._descriptors_taken = 0

    def twin(self) -> Channel:
        """The same conversation, to be led on by somebody else once this one is closed. Raises Unavailable."""
        try:
            return Channel(self._socket.dup(), max_bytes=self.max_bytes, name=self._name)
        except OSError as error:
            raise Unavailable(f"{self._name}: {error}") from None

    def wait(self, timeout_s: float) -> bool:
        """True as soon as something can be read, or the other end has hung up."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(int(1000 * timeout_s)))

    def gone(self) -> bool:
        """True when the other end has hung up; nothing is read."""
        patience_s = self._socket.gettimeout()
        self._socket.settimeout(0)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self._socket.settimeout(patience_s)

    def send(self, message: LocalMessage, descriptors: list[int] | None = None) -> None:
        """Raises Unavailable when the other end is gone or does not read."""
        self.send_body(encode(message), descriptors)

    def send_body(self, body: bytes, descriptors: list[int] | None = None) -> None:
        """As `send`, for what is encoded already."""
        data = memoryview(struct.pack("<I", len(body)) + body)
        try:
            if descriptors:
                self._within_deadline()
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                data = data[self._socket.sendmsg([data[:4]], ancillary) :]
            while data:
                self._within_deadline()
                data = data[self._socket.send(data) :]
        except OSError as error:
            raise self._unavailable(error) from None

    def receive(self) -> LocalMessage:
        """The next message. Raises Unavailable at the end or on time-out, Busy without room, WireError for nonsense."""
        return decode(self.receive_body())

    def receive_body(self) -> bytes:
        """As `receive`, but the body as it came."""
        self.close_descriptors()
        self._give_back()
        header = self._read(4, with_descriptors=True)
        (length,) = struct.unpack("<I", header)
        if length > self.max_bytes:
            raise WireError(self._name, f"a frame of at most {self.max_bytes} bytes", length)
        if self._room:
            if not self._room.take(length):
                raise errors.Busy(f"{self._name}: no room for a frame of {length} bytes")
            self._room_taken = length
        return self._read(length)

    def ask(self, message: LocalMessage, descriptors: list[int] | None = None) -> LocalMessage:
        """Send, and return the answer; a Failed answer is raised as Unavailable, Busy as errors.Busy."""
        try:
            self.send(message, descriptors)
        except Unavailable:
            answer = self._last_word()
            if answer is None:
                raise
        else:
            return self.answer()
        return self._usable(answer)

    def answer(self) -> LocalMessage:
        """The next message of an answer. Raises as `ask`."""
        return self._usable(self.receive())

    def _usable(self, answer: LocalMessage) -> LocalMessage:
        if isinstance(answer, Failed):
            raise Unavailable(f"clientd: {answer.reason}")
        if isinstance(answer, Busy):
            after_s = answer.retry_after_s if math.isfinite(answer.retry_after_s) else 1.0
            raise errors.Busy(f"clientd is busy: expected room, found none for {after_s:g} s", after_s)
        return answer

    def _last_word(self) -> LocalMessage | None:
        """What the other end said before it hung up on us."""
        try:
            return self.receive()
        except (Unavailable, WireError):
            return None

    def _within_deadline(self) -> None:
        if self._ends_at is not None:
            left_s = self._ends_at - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(left_s)

    def _read(self, size: int, with_descriptors: bool = False) -> bytes:
        chunks = bytearray()
        try:
            while len(chunks) < size:
                self._within_deadline()
                if with_descriptors and not chunks:
                    data = self._read_first(size)
                else:
                    # Descriptors that come later than the first byte have no room here: the kernel drops them.
                    data = self._socket.recv(min(size - len(chunks), 1 << 20))
                if not data:
                    raise Unavailable(f"{self._name}: closed by the other end")
                chunks += data
        except OSError as error:
            raise self._unavailable(error) from None
        return bytes(chunks)

    def _unavailable(self, error: OSError) -> Unavailable:
        if not isinstance(error, TimeoutError):
            return Unavailable(f"{self._name}: {error.strerror or error}")
        silence_s = self._socket.gettimeout() if self._limit_s is None else self._limit_s
        within = "" if silence_s is None else f" within {silence_s:.3g} s"
        return Unavailable(f"{self._name}: expected an answer{within}, found none")

    def _read_first(self, size: int) -> bytes:
        data, self.descriptors, flags, _ = socket.recv_fds(self._socket, size, MAX_DESCRIPTORS)
        if flags & socket.MSG_CTRUNC:
            raise WireError(self._name, f"at most {MAX_DESCRIPTORS} descriptors, and room for them", "more")
        if self._descriptor_room and self.descriptors:
            if not self._descriptor_room.take(len(self.descriptors)):
                raise errors.Busy(f"{self._name}: no room for {len(self.descriptors)} descriptors")
            self._descriptors_taken = len(self.descriptors)
        return data


def connect(path: str, timeout_s: float, *, deadline_s: float | None = None) -> Channel:
    """A conversation with clientd, within `timeout_s` also when its backlog is full. Raises Unavailable.

    `timeout_s` bounds each silence afterwards, `deadline_s` the whole conversation from now on.
    """
    started = time.monotonic()
    ends_at = started + (timeout_s if deadline_s is None else min(timeout_s, deadline_s))
    pause_s = 0.01
    while True:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout_s)
        try:
            sock.connect(path)
            break
        except BlockingIOError:  # with a time-out a full backlog is an error; without one it would block
            sock.close()
            if time.monotonic() + pause_s > ends_at:
                raise Unavailable(f"clientd at {path}: its backlog is full") from None
            import random  # for the few that wait: each job step loads this module before its program

            time.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, 0.2)
        except OSError as error:
            sock.close()
            raise Unavailable(f"clientd at {path}: {error.strerror or error}") from None
    left_s = None if deadline_s is None else deadline_s - (time.monotonic() - started)
    return Channel(sock, deadline_s=left_s, name=f"clientd at {path}")


def peer_uid(sock: socket.socket) -> int:
    """The uid of the process at the other end (SO_PEERCRED)."""
    size = struct.calcsize("3i")
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", credentials)[1])
