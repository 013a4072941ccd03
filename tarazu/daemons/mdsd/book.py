"""What mdsd must not forget: promises and kept replies. Every change is a record, applied at once.

`note` applies a record and queues it; `commit`, once a turn of the loop, writes what is queued to the journal and syncs
it. An answer leaves only when the records before it are `durable`. When the journal cannot be written, `trouble` says
why: nothing is to be promised then, what happens is noted still, and written when the disk takes it again.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tarazu.allocate.alone import AloneCount
from tarazu.allocate.ledger import Dead, Ledger
from tarazu.allocate.records import (
    Died,
    Heard,
    Marked,
    Passed,
    Promised,
    Record,
    Replied,
    Revoked,
    apply,
    state,
)
from tarazu.daemons.mdsd.ledger_clock import LedgerClock
from tarazu.daemons.mdsd.per_user import REPLY_LIMITS, PerUser
from tarazu.malformed import MALFORMED
from tarazu.store.frames import Damage
from tarazu.store.journal import Content, Journal, base_of
from tarazu.units import counted

log = logging.getLogger("tarazu.mdsd")

COMPACT_BYTES = 32 << 20
"""A log of that size is replaced by a snapshot; one twice as large as the snapshot before, if that is more."""
RETRY_S = 1.0
COMPACT_AGAIN_S = 60.0
MARK_S = 60.0
MAX_QUEUED_BYTES = 64 << 20
"""Of records that wait for a disk; beyond, all is written as a snapshot when it comes back."""
SNAPSHOT_FRAME_BYTES = 1 << 20
FARTHEST = 1 << 40
"""No more records than that can be missing."""

_encoder = msgspec.msgpack.Encoder()
_records = msgspec.msgpack.Decoder(list[Record])
_snapshots = msgspec.msgpack.Decoder(tuple[int, list[Record]])


class KeptReply(NamedTuple):
    """A reply for a request that is sent again."""

    data: bytes
    """Encoded: a twentieth of its structs' memory."""
    until_s: float


class Book:
    """Times are on the ledger's clock."""

    def __init__(self, clock: LedgerClock, journal: Journal | None = None) -> None:
        """Without a journal all is kept in memory."""
        self.clock = clock
        self.ledger = Ledger()
        self.answered: PerUser[KeptReply] = PerUser(REPLY_LIMITS)
        self.alone = AloneCount()
        self.sequence = 0
        """Number of the last record."""
        self.durable = 0
        """Number of the last one that is safe."""
        self.trouble = ""
        """Why nothing can be made durable; empty: it can."""
        self.follows = False
        """Its records are those of another book, with none of its own between them."""
        self.listeners: list[Callable[[int, bytes], None]] = []
        """Told at each commit: number of its first record, the records as `take` takes them."""
        self.damages: list[Damage] = []
        """What could not be read at the start."""
        self.read_s = 0.0
        """What reading the directory took."""
        self._mark: Marked | None = None
        self.latest_s = 0.0
        """Time of the latest record."""
        self._journal = journal
        self._queued: list[msgspec.Raw] = []
        self._queued_bytes = 0
        self._told = 0
        self._whole = False
        """The log misses records: all is to be written anew."""
        self._of_another = False
        """What is on the disk is of an earlier book."""
        self._retry_at = 0.0
        self._compact_at = 0.0
        self.limit_bytes = COMPACT_BYTES
        """A longer log is replaced by a snapshot."""

    @classmethod
    def open(cls, directory: str | Path, clock: LedgerClock | None = None) -> Book:
        """The book kept in this directory, which is made if need be.

        Every living job step counts as having reported just now. Raises StoreError when it cannot be used at all.
        """
        clock = clock or LedgerClock()
        book = cls(clock, Journal(Path(directory)))
        book._resume()
        return book

    def __str__(self) -> str:
        promises, stripes = self.ledger.numbers()
        where = (
            f"{self._journal.directory}, read in {self.read_s:.1f} s" if self._journal else "in memory only"
        )
        kept = counted(len(self.answered), "kept reply")
        return f"ledger: {counted(promises, 'promise')} of {counted(stripes, 'stripe')}, {kept} ({where})"

    def note(self, record: Record) -> list[Dead]:
        """Apply a record, and queue it; which job steps died of it."""
        died = self._apply(record)
        self.sequence += 1
        if self._journal or self.listeners:
            data = _encoder.encode(record)
            self._queued.append(msgspec.Raw(data))
            self._queued_bytes += len(data)
        return died

    def take(self, payload: bytes) -> None:
        """Note the records of another book's commit. Raises msgspec.DecodeError or ValueError."""
        for record in _records.decode(payload):
            self.note(record)
        self.clock.not_before(self.latest_s)

    def commit(self) -> None:
        """Make all records so far durable; `trouble` when they cannot be."""
        may_write = self._journal is not None and not (self.trouble and time.monotonic() < self._retry_at)
        if may_write and self._mark_is_due():
            self.note(self.clock.mark())
        self._tell()
        if self._journal is None:
            self._written()
            return
        try:
            if may_write:
                self._write(self._journal)
        except OSError as error:
            self._fail(error)
        self._compact(self._journal)

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
        # The leader of a promise from before may talk to the other mdsd.
        excused = self.alone.from_before if self.alone.alone else None
        silent = self.ledger.silent(now, excused) if listening else []
        return self.note(Died(tuple(silent), now)) if silent else []

    def state(self) -> Iterator[Record]:
        """Records that make an empty book equal to this one."""
        yield from state(self.ledger)
        for id, uid, kept in self.answered.owned():
            yield Replied(id, uid, kept.data, kept.until_s)
        yield from self.alone.state()

    def snapshot(self) -> bytes:
        """All that records change, and the number of the last one: for `restore`."""
        return _encoder.encode((self.sequence, [self.clock.mark(), *self.state()]))

    def restore(self, data: bytes) -> None:
        """Be as the book was of which this is the `snapshot`; every living step counts as having reported just now.

        Raises msgspec.DecodeError or ValueError for what is no snapshot; the book is as it was then.
        """
        sequence, records = _snapshots.decode(data)
        other = Book(self.clock)
        for record in records:
            other._apply(record)
        self.clock.not_before(other.latest_s)
        self.ledger.become(other.ledger)
        self.alone.become(other.alone)
        self.ledger.hear_all(self.clock.now())
        self.answered, self.sequence, self.durable = other.answered, sequence, 0
        self._queued, self._queued_bytes, self._told, self._whole = [], 0, 0, True
        self._of_another = True

    def digest(self) -> str:
        """Of promises and replies: equal for two books after the same records."""
        return hashlib.sha256(_encoder.encode(list(self.state()))).hexdigest()

    def close(self) -> None:
        if self._journal:
            self._journal.close()

    def replay(self, content: Content) -> None:
        """Apply what is in a directory, on top of nothing. Places that cannot be read are left out, and named."""
        for path, frame in content.snapshot():
            self.sequence = base_of(path)
            for record in self._decoded(path, frame.offset, frame.payload):
                self._replayed(path, frame.offset, record)
        for path, frame in content.records():
            if frame.first > self.sequence + FARTHEST:
                why = f"expected record {self.sequence + 1}, found {frame.first}"
                self._damaged(Damage(path, frame.offset, len(frame.payload), why, False))
                continue
            for number, record in enumerate(self._decoded(path, frame.offset, frame.payload), frame.first):
                if number <= self.sequence:
                    continue
                if number > self.sequence + 1:
                    why = f"expected record {self.sequence + 1}, found {number}"
                    self._damaged(Damage(path, frame.offset, 0, why, False))
                self.sequence = number
                self._replayed(path, frame.offset, record)
        self.damages = [*content.damages, *self.damages]

    def _decoded(self, path: Path, offset: int, payload: bytes) -> list[Record]:
        try:
            return _records.decode(payload)
        except MALFORMED as error:
            self._damaged(Damage(path, offset, len(payload), f"expected records of a ledger: {error}", False))
            return []

    def _replayed(self, path: Path, offset: int, record: Record) -> None:
        try:
            self._apply(record)
        except (ValueError, OverflowError) as error:
            self._damaged(Damage(path, offset, 0, str(error), False))

    def _damaged(self, damage: Damage) -> None:
        self.damages.append(damage)

    def _resume(self) -> None:
        """Read the directory, and go on behind its last record."""
        assert self._journal
        begin = time.monotonic()
        try:
            content = self._journal.content()
            self.replay(content)
            if self._mark:
                self.clock.resume(self._mark, self.latest_s)
            self.clock.not_before(self.latest_s)
            self.ledger.hear_all(self.clock.now())
            self._mark = None
            if len(content.found.logs) > 1:
                # A snapshot was not finished.
                self.limit_bytes = 0
            if content.torn:
                log.warning(
                    "%s: the last write was incomplete; requests that were not answered are lost",
                    content.torn,
                )
            for damage in self.damages:
                log.error("%s; the records before and after it are used", damage)
            if self.damages:
                # A number that was never given: so no new file has the name of an old one.
                self.sequence += 1
                self._rewrite(self._journal, {damage.path for damage in self.damages})
            elif content.found.logs:
                self._journal.resume(content.found.logs[-1], content.torn)
            else:
                self._journal.roll(self.sequence)
        except OSError as error:
            self._whole = True
            self._fail(error)
        self.durable = self.sequence
        self.read_s = time.monotonic() - begin

    def _mark_is_due(self) -> bool:
        """With the first records, and once a minute; and to find out whether the disk is back."""
        if self.follows:
            return False
        if self.trouble or not self._queued:
            return bool(self.trouble)
        return self._mark is None or self.clock.now() > self._mark.at_s + MARK_S

    def _tell(self) -> None:
        """The listeners, of what they do not know yet."""
        new = self._queued[self._told :]
        if new and self.listeners:
            first, payload = self.sequence - len(new) + 1, _encoder.encode(new)
            for listener in self.listeners:
                listener(first, payload)
        self._told = len(self._queued)

    def _write(self, journal: Journal) -> None:
        if self._whole:
            self._rewrite(journal)
        elif self._queued:
            journal.append(self.sequence - len(self._queued) + 1, _encoder.encode(self._queued))
        if self.trouble:
            log.info("the ledger can be written again")
        self._written()

    def _written(self) -> None:
        self.durable, self.trouble = self.sequence, ""
        self._queued, self._queued_bytes, self._told = [], 0, 0

    def _fail(self, error: OSError) -> None:
        assert self._journal
        if not self.trouble:
            log.error(
                "%s: the ledger cannot be written: %s: nothing is promised",
                self._journal.directory,
                error.strerror,
            )
        self.trouble = f"the ledger cannot be written: {error.strerror}"
        self._retry_at = time.monotonic() + RETRY_S
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self._queued, self._queued_bytes, self._told, self._whole = [], 0, 0, True

    def _rewrite(self, journal: Journal, aside: Iterable[Path] = ()) -> None:
        """All of it as a snapshot, and a new log."""
        if journal.compacting:
            journal.compacted(wait=True)
        journal.roll(self.sequence)
        records = [self.clock.mark(), *self.state()]
        journal.write_snapshot(self.sequence, _frames_of(records), aside, self._of_another)
        self._whole = self._of_another = False

    def _compact(self, journal: Journal) -> None:
        """Replace a long log by a snapshot, which a thread writes."""
        now = time.monotonic()
        try:
            if journal.compacted():
                self.limit_bytes = max(COMPACT_BYTES, 2 * journal.snapshot_bytes)
            if (
                journal.compacting
                or journal.bytes < self.limit_bytes
                or now < self._compact_at
                or self.trouble
            ):
                return
            self._compact_at = now + COMPACT_AGAIN_S
            records = [self.clock.mark(), *self.state()]
            journal.roll(self.sequence)
            journal.compact(self.sequence, _frames_of(records))
        except OSError as error:
            log.warning("%s: no snapshot was written: %s", journal.directory, error.strerror)

    def _apply(self, record: Record) -> list[Dead]:
        self.alone.apply(record, self.ledger)
        died = apply(self.ledger, record, self.latest_s)
        self.latest_s = max(self.latest_s, getattr(record, "at_s", 0.0))
        match record:
            case Promised() | Replied():
                self._keep(record)
            case Revoked():
                self.answered.pop(record.id)
            case Passed():
                for id in [id for id, kept in self.answered if kept.until_s <= record.at_s]:
                    self.answered.pop(id)
            case Marked():
                self._mark = record
        return died

    def _keep(self, record: Promised | Replied) -> None:
        kept = KeptReply(record.reply, record.keep_until_s)
        self.answered.add(record.id, record.uid, kept, len(record.reply))
        while excess := self.answered.excess(record.uid):
            self.answered.pop(self.answered.oldest(excess.uid))


def _frames_of(records: Iterable[Record]) -> Iterator[bytes]:
    """Payloads of about `SNAPSHOT_FRAME_BYTES`."""
    encoder = msgspec.msgpack.Encoder()
    part: list[msgspec.Raw] = []
    size = 0
    for record in records:
        part.append(msgspec.Raw(encoder.encode(record)))
        size += len(bytes(part[-1]))
        if size >= SNAPSHOT_FRAME_BYTES:
            yield encoder.encode(part)
            part, size = [], 0
    if part:
        yield encoder.encode(part)
