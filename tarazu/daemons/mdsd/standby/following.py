"""The end of the mdsd that follows: asks the active one for its book, and applies every record to its own.

Until the snapshot is complete its book stays as it was. What it acknowledges is on its disk.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Callable

import msgspec

from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.standby.handover import hand_over
from tarazu.wire.replication import Records, Said, SnapshotPart, Taken

log = logging.getLogger("tarazu.mdsd")


class Following:
    def __init__(self, book: Book, send: Callable[[Said], None], second: bool) -> None:
        self._book, self._send, self._second = book, send, second
        self.progress = -math.inf
        """When we asked, or something came, last."""
        self.stop()

    def stop(self) -> None:
        self.session = ""
        self.complete = False
        """The book is the active one's, up to the last record that came."""
        self._parts: list[bytes] = []
        self._owed = False

    def ask(self, now: float) -> None:
        """Begin anew."""
        self.stop()
        self.session, self.progress = uuid.uuid4().hex, now
        for part in hand_over(self._book, self.session, self._second):
            self._send(part)

    def take(self, message: SnapshotPart | Records, now: float, now_s: float) -> None:
        """What the active one sent; `now_s` is the time on its ledger's clock."""
        if message.session != self.session:
            return
        self.progress, self._owed = now, True
        try:
            if isinstance(message, SnapshotPart):
                self._take_part(message, now_s)
            elif self.complete:
                self._take_records(message)
        except (msgspec.DecodeError, ValueError) as error:
            log.warning("the active mdsd's book cannot be followed: %s", error)
            self.stop()

    def acknowledge(self, again: bool = False) -> None:
        """Say how far we are; call after a commit. `again`: though nothing came, since what we said may be lost."""
        if (
            (self._owed or again)
            and self.session
            and not (self.complete and self._book.durable < self._book.sequence)
        ):
            self._owed = False
            self._send(Taken(self.session, len(self._parts), self._book.sequence if self.complete else -1))

    def _take_part(self, part: SnapshotPart, now_s: float) -> None:
        if part.number != len(self._parts):
            raise ValueError(f"expected part {len(self._parts)} of its snapshot, found {part.number}")
        self._parts.append(part.data)
        if part.last:
            self._book.clock.follow(now_s)
            self._book.restore(b"".join(self._parts))
            self._parts = [b""] * len(self._parts)
            self.complete = True

    def _take_records(self, message: Records) -> None:
        if message.first != self._book.sequence + 1:
            raise ValueError(f"expected record {self._book.sequence + 1}, found {message.first}")
        self._book.take(message.data)
