"""When two mdsds meet that have both answered alone: what the one that steps down hands over, and what the other takes.

Both may have promised the same request, when its client moved on before the first answer came. Which answer it took
nobody knows for certain: who has heard of the later term takes none of the earlier one any more. So the later one's
stays under the request's id, with its reply: in one term a request has one answer. The other one counts beside it until
the step ends or falls silent, or it expires. Of a request whose files are all closed nothing is promised any more; its
answer is handed over alone, for who asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from tarazu.allocate.ledger import OPEN
from tarazu.allocate.records import BESIDE, Died, Held, Record, Replied, held, packed
from tarazu.daemons.mdsd.book import Book
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
        if id in book.alone or book.alone.is_recent(id):
            records: list[Record] = [held(id, promise)]
            if kept := book.answered.get(id):
                records.append(Replied(id, promise.uid, kept.data, kept.until_s))
            yield Handed(id, tuple(map(_encoder.encode, records)), book.ledger.heard_s(id))


def _told(book: Book) -> Iterator[bytes]:
    yield from map(_encoder.encode, book.alone.told())
    for id, uid, kept in book.answered.owned():
        if id in book.alone and book.ledger.get(id) is None:
            yield _encoder.encode(Replied(id, uid, kept.data, kept.until_s))


def take_over(book: Book, follows: Sequence[Follow]) -> None:
    """Enter what the other one promised and heard alone.

    Raises msgspec.DecodeError or ValueError for records that are none.
    """
    taken = twice = 0
    for follow in follows:
        for item in follow.handed:
            records = [_decoder.decode(data) for data in item.records]
            theirs = records[0] if records else None
            if not isinstance(theirs, Held) or any(not isinstance(r, Held | Replied) for r in records):
                raise ValueError("expected a promise and its reply")
            ours = book.ledger.get(item.id)
            if ours is None:
                taken += item.id not in book.ledger
                for record in records if item.id not in book.ledger else ():
                    book.note(record)
            elif OPEN in ours.release_s and packed(ours.stripes) != (
                theirs.osts,
                theirs.sizes,
                theirs.starts,
            ):
                # Of a step that has ended, or has closed all its files, nobody would end it.
                twice += 1
                book.note(msgspec.structs.replace(theirs, id=BESIDE + item.id, alive_s=0.0))
                if ours.dead:
                    book.note(Died((item.id,), book.clock.now()))  # what lies beside it, too
        for data in follow.told:
            record = _decoder.decode(data)
            if not (isinstance(record, Replied) and record.id in book.answered):
                book.note(record)
    if taken or twice or any(follow.told for follow in follows):
        log.info("%d promises of the other mdsd taken over, %d were made by both", taken, twice)
