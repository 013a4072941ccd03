"""What mdsd must not forget: promises and kept replies. Every change is a record, applied at once.

`note` applies a record and queues it; `commit` makes what is queued last. An answer leaves only when the records
before it have: whoever sends it looks at `durable`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tarazu.allocate.ledger import Dead, Ledger
from tarazu.allocate.records import Died, Heard, Passed, Promised, Record, Replied, Revoked, apply, state
from tarazu.daemons.ledger_clock import LedgerClock
from tarazu.daemons.per_user import REPLY_LIMITS, PerUser

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, list[Record]])


class Kept(NamedTuple):
    """A reply for a request that is sent again."""

    data: bytes
    """Encoded: a twentieth of its structs' memory."""
    until_s: float


class Book:
    """Times are on the ledger's clock."""

    def __init__(self, clock: LedgerClock) -> None:
        self.clock = clock
        self.ledger = Ledger()
        self.answered: PerUser[Kept] = PerUser(REPLY_LIMITS)
        self.sequence = 0
        """Number of the last record."""
        self.durable = 0
        """Number of the last one that is safe."""

    def note(self, record: Record) -> list[Dead]:
        """Apply a record, and queue it; which job steps died of it."""
        died = self._apply(record)
        self.sequence += 1
        return died

    def commit(self) -> None:
        """Make all records so far durable."""
        self.durable = self.sequence

    def hear(self, id: str, now: float) -> bool:
        """A sign of life of this job step; True for one that had died."""
        if not self.ledger.heard(id, now):
            return False
        self.note(Heard(id, now))
        return True

    def pass_time(self, now: float, listening: bool) -> list[Dead]:
        """What expired by now, and the steps that died; nobody dies while we are not listening."""
        oldest = min((kept.until_s for _, kept in self.answered), default=now + 1)
        if self.ledger.due(now) or oldest <= now:
            self.note(Passed(now))
        silent = self.ledger.silent(now) if listening else []
        return self.note(Died(tuple(silent), now)) if silent else []

    def state(self) -> Iterator[Record]:
        """Records that make an empty book equal to this one."""
        yield from state(self.ledger)
        for id, uid, kept in self.answered.owned():
            yield Replied(id, uid, kept.data, kept.until_s)

    def snapshot(self) -> bytes:
        """All that records change, and the number of the last one: for `restore`."""
        return _encoder.encode((self.sequence, list(self.state())))

    def restore(self, data: bytes) -> None:
        """Be as the book was of which this is the `snapshot`; every living step counts as heard of now.

        Raises msgspec.DecodeError or ValueError for what is no snapshot; the book is as it was then.
        """
        sequence, records = _decoder.decode(data)
        other = Book(self.clock)
        for record in records:
            other._apply(record)
        self.ledger.become(other.ledger)
        self.answered, self.sequence, self.durable = other.answered, sequence, sequence

    def digest(self) -> str:
        """Of promises and replies: equal for two books after the same records."""
        return hashlib.sha256(_encoder.encode(list(self.state()))).hexdigest()

    def _apply(self, record: Record) -> list[Dead]:
        died = apply(self.ledger, record, self.clock.now())
        match record:
            case Promised() | Replied():
                self._keep(record)
            case Revoked():
                self.answered.pop(record.id)
            case Passed():
                for id in [id for id, kept in self.answered if kept.until_s <= record.at_s]:
                    self.answered.pop(id)
        return died

    def _keep(self, record: Promised | Replied) -> None:
        kept = Kept(record.reply, record.keep_until_s)
        self.answered.add(record.id, record.uid, kept, len(record.reply))
        while excess := self.answered.excess(record.uid):
            self.answered.pop(self.answered.oldest(excess.uid))
