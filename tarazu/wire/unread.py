"""What came at bound ends and nobody has read: how much there is, and whose connections are ended for it.

ZeroMQ bounds the size of a part of a message, not the number of parts, and holds them until the last one. It reads as
fast as peers send, and keeps what came over a connection that has ended. So the kernel is asked how many bytes came
over each connection that stands; of what came over others, only our own memory tells.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import resource
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

UNREAD_BYTES = 256 << 20
"""Of one connection: the largest request, sent again and again to an mdsd that is held up."""
UNREAD_BYTES_OF_ALL = 768 << 20
"""Beyond, the connection with the most is ended."""
GROWTH_BYTES = 32 << 20
"""The kernel is asked once our memory has grown by so much."""
FLOOD_S, FLOOD_BYTES = 1.0, 64 << 20
"""A flood: for so long there was always more to read, and our memory has grown by so much since there was nothing.
Then nobody is let in from where more came than from others."""
UNREAD_BYTES_IN_A_FLOOD = 16 << 20
"""Of all connections that stand."""
SHARE_OF_TIME = 0.02
"""That asking the kernel may take."""

_libc = ctypes.CDLL(None, use_errno=True)
_TCPI_BYTES_RECEIVED, _TCP_INFO_BYTES = 128, 136
"""Place in struct tcp_info (linux/tcp.h), and what of it is asked for."""
_PAGE_BYTES = resource.getpagesize()


class Reader:
    """Of one bound end: when there was nothing to read last. The reading thread says so."""

    __slots__ = ("empty_at",)

    def __init__(self) -> None:
        self.empty_at = math.inf
        """Monotonic, in seconds; infinite while it is waited for, or has not been read yet."""

    def found_empty(self) -> None:
        self.empty_at = time.monotonic()

    def waits(self) -> None:
        """From now on until the next `found_empty`."""
        self.empty_at = math.inf


class Unread:
    """Looked at now and then by one thread."""

    def __init__(self) -> None:
        self.flooded = False
        self._heard: Counter[str] = Counter()
        self._heard_bytes = 0
        """Of each address, and of all, what was read since there was nothing to read."""
        self._memory = self._base = memory_bytes()
        """When the kernel was asked last, and when there was nothing to read."""
        self._empty_at = -math.inf
        self._look_at = 0.0

    def heard(self, address: str, size_bytes: int) -> None:
        """A message was read."""
        self._heard[address] += size_bytes
        self._heard_bytes += size_bytes

    def loud(self, address: str) -> bool:
        """Whether there is a flood, and this address has its share of it."""
        return self.flooded and self._heard[address] * len(self._heard) >= self._heard_bytes

    def look(self, readers: Iterable[Reader], of_each: Callable[[], list[tuple[int, int]]]) -> dict[int, int]:
        """Descriptor → unread bytes of the connections to end. `of_each`: unread bytes and descriptor of all."""
        now, memory = time.monotonic(), memory_bytes()
        self._look_for_flood(min([now, *(each.empty_at for each in readers)]), now, memory)
        if now < self._look_at or not (self.flooded or memory >= self._memory + GROWTH_BYTES):
            self._memory = min(self._memory, memory)
            return {}
        waiting = sorted(of_each())
        total = sum(unread for unread, _ in waiting)
        if total < GROWTH_BYTES:
            self._memory = memory  # it grew for another reason
        of_all, to_end = UNREAD_BYTES_IN_A_FLOOD if self.flooded else UNREAD_BYTES_OF_ALL, {}
        while waiting and (waiting[-1][0] > UNREAD_BYTES or total > of_all):
            unread, fd = waiting.pop()
            to_end[fd] = unread
            total -= unread
        self._look_at = now + (time.monotonic() - now) / SHARE_OF_TIME
        return to_end

    def _look_for_flood(self, empty_at: float, now: float, memory: int) -> None:
        if empty_at > self._empty_at:
            self._empty_at, self.flooded = empty_at, False
            self._heard, self._heard_bytes = Counter(), 0
            if memory > self._base + GROWTH_BYTES:
                _give_back()
                memory = memory_bytes()
            self._base = memory
        elif now - empty_at > FLOOD_S and memory > self._base + FLOOD_BYTES:
            self.flooded = True


def came_bytes(fd: int) -> int:
    """Bytes that came over this connection; 0 where the kernel does not say (before Linux 4.2)."""
    tcp_info, length = ctypes.create_string_buffer(_TCP_INFO_BYTES), ctypes.c_uint32(_TCP_INFO_BYTES)
    got = _libc.getsockopt(fd, socket.IPPROTO_TCP, socket.TCP_INFO, tcp_info, ctypes.byref(length))
    if got or length.value < _TCP_INFO_BYTES:
        return 0
    return int(struct.unpack_from("=Q", tcp_info, _TCPI_BYTES_RECEIVED)[0])


def memory_bytes() -> int:
    """That this process has in use."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE_BYTES
    return 0


def _give_back() -> None:
    """What was freed goes back to the kernel, else a flood would leave room that the next one starts from."""
    with contextlib.suppress(AttributeError):  # not glibc
        _libc.malloc_trim(0)
