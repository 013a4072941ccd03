"""When two mdsds meet that have both answered alone: what the one that steps down hands over, and what the other takes.

Both may have promised the same request, when its client moved on before the first answer came. The promise is kept
whose job step was heard of last: that is the side whose answer its leader got, and talks to since. The other one ends
as if it had not been made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from tarazu.allocate.records import Held, Record, Replied, Revoked, held
from tarazu.daemons.book import Book
from tarazu.wire.replication import PART_BYTES, Follow, Handed

log = logging.getLogger("tarazu.mdsd")

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def own_term(term: int, second: bool) -> bool:
    """Whether this was a term of ours: the first mdsd's are even, the second's odd, so that no two are equal."""
    return term > 0 and term % 2 == int(second)


def hand_over(book: Book, session: str, second: bool) -> Iterator[Follow]:
    """The question for the active one's book, with all that it cannot know, in messages of bounded size."""
    now_s = book.clock.now()
    alone = book.alone.alone and own_term(book.alone.term, second)
    handed: list[Handed] = []
    told: list[bytes] = []
    number = size = 0
    items: Iterable[Handed | bytes] = chain(_promised(book), _told(book)) if alone else ()
    for item in items:
        if isinstance(item, Handed):
            handed.append(item)
            size += sum(map(len, item.records))
        else:
            told.append(item)
            size += len(item)
        if size > PART_BYTES:
            yield Follow(session, number, False, now_s, tuple(handed), tuple(told))
            handed, told, size = [], [], 0
            number += 1
    yield Follow(session, number, True, now_s, tuple(handed), tuple(told))


def _promised(book: Book) -> Iterator[Handed]:
    for id, promise in book.ledger.promises():
        if id in book.alone:
            records: list[Record] = [held(id, promise)]
            if kept := book.answered.get(id):
                records.append(Replied(id, promise.uid, kept.data, kept.until_s))
            yield Handed(id, tuple(map(_encoder.encode, records)), book.ledger.heard_s(id))


def _told(book: Book) -> Iterator[bytes]:
    return map(_encoder.encode, book.alone.told())


def take_over(book: Book, follows: Sequence[Follow]) -> None:
    """Enter what the other one promised and heard alone.

    Raises msgspec.DecodeError or ValueError for records that are none.
    """
    taken = known = 0
    for follow in follows:
        late_s = book.clock.now() - follow.now_s
        for item in follow.handed:
            if item.id in book.ledger and item.heard_s + late_s <= book.ledger.heard_s(item.id):
                known += 1
                continue
            if item.id in book.ledger:
                book.note(Revoked(item.id))
            taken += 1
            for data in item.records:
                record = _decoder.decode(data)
                if isinstance(record, Held | Replied) and record.id == item.id:
                    book.note(record)
        for data in follow.told:
            book.note(_decoder.decode(data))
    if taken or known or any(follow.told for follow in follows):
        log.info("%d promises of the other mdsd taken over, %d were known here", taken, known)
