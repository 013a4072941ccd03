"""What the active mdsd sends to the one that follows: its book, then every record of it.

Records go out before they are on the own disk, so that both disks are written at the same time. The stream never holds
the active one up: what is under way is bounded, and a follower for which too much waits has to begin anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tarazu.allocate.records import Record
from tarazu.daemons.mdsd.book import Book
from tarazu.wire.replication import PART_BYTES, Records, Said, SnapshotPart, Taken

PARTS_UNDER_WAY = 8
BYTES_UNDER_WAY = 8 << 20
KEEPS_UP_S = 0.5
MAX_WAITING_BYTES = 256 << 20
"""Of records that the follower has not acknowledged; beyond, a new snapshot is the shorter way."""

_decoder = msgspec.msgpack.Decoder(list[Record])


class _Waiting(NamedTuple):
    """Records of one commit."""

    first: int
    last: int
    data: bytes
    since: float


class Feed:
    """`clock` gives the time by which waiting is measured."""

    def __init__(self, book: Book, send: Callable[[Said], None], clock: Callable[[], float]) -> None:
        self._book, self._send, self._clock = book, send, clock
        self._clear()

    def _clear(self) -> None:
        self.session = ""
        self.acked = -1
        """Number of the last record that the follower has on its disk; -1: it has no snapshot yet."""
        self._parts: deque[SnapshotPart] = deque()
        self._parts_sent = self._parts_taken = 0
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._sent = self._sent_bytes = 0
        """Of those that wait: how many commits are under way, and their bytes."""

    def stop(self) -> None:
        """Nobody follows."""
        if self.session:
            self._book.listeners.remove(self._listen)
        self._clear()

    def start(self, session: str) -> None:
        """For whoever asked under this name; an earlier session is over."""
        self.stop()
        self._book.commit()
        self.session = session
        data = self._book.snapshot()
        ends = range(0, max(len(data), 1), PART_BYTES)
        self._parts.extend(
            SnapshotPart(session, number, at + PART_BYTES >= len(data), data[at : at + PART_BYTES])
            for number, at in enumerate(ends)
        )
        self._book.listeners.append(self._listen)
        self._push()

    @property
    def close(self) -> bool:
        """Whether the follower has the snapshot, and keeps up."""
        return self.acked >= 0 and self.stalled_s() < KEEPS_UP_S

    def lag(self) -> int:
        """Records that the follower has not acknowledged."""
        return self._book.sequence - max(self.acked, 0)

    def stalled_s(self) -> float:
        """How long the oldest record has waited for its acknowledgement."""
        return self._clock() - self._waiting[0].since if self._waiting else 0.0

    def unknown(self) -> list[Record]:
        """Committed records of which it is not certain that the follower has them."""
        return [record for waiting in self._waiting for record in _decoder.decode(waiting.data)]

    def take(self, taken: Taken) -> None:
        """An acknowledgement."""
        if taken.session != self.session or taken.sequence > self._book.sequence:
            return
        self._parts_taken = max(self._parts_taken, taken.parts)
        self.acked = max(self.acked, taken.sequence)
        while self._waiting and self._waiting[0].last <= self.acked:
            done = self._waiting.popleft()
            self._waiting_bytes -= len(done.data)
            if self._sent:
                self._sent -= 1
                self._sent_bytes -= len(done.data)
        self._push()

    def _listen(self, first: int, data: bytes) -> None:
        self._waiting.append(_Waiting(first, self._book.sequence, data, self._clock()))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self.stop()
        else:
            self._push()

    def _push(self) -> None:
        """Send what may be under way now."""
        while self._parts and self._parts_sent - self._parts_taken < PARTS_UNDER_WAY:
            self._send(self._parts.popleft())
            self._parts_sent += 1
        while self.acked >= 0 and self._sent < len(self._waiting):
            waiting = self._waiting[self._sent]
            if self._sent and self._sent_bytes + len(waiting.data) > BYTES_UNDER_WAY:
                return
            self._send(Records(self.session, waiting.first, waiting.data))
            self._sent += 1
            self._sent_bytes += len(waiting.data)
