"""Damaged and forged ledgers: mdsd's book opens them and says what it left out, or refuses them in one line."""

from __future__ import annotations

import logging
import random
import shutil
import tempfile
from pathlib import Path

import msgspec

from tarazu.allocate.ledger import pack
from tarazu.allocate.records import Closed, Died, Ended, Passed, Promised, Record, Replied, packed
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.ledger_clock import LedgerClock, Sources
from tarazu.errors import StoreError
from tarazu.store import frames
from tarazu.store.frames import Frame

NUMBERS = (0, -1, 1, 2**31, 2**32, 2**63 - 1, 2**64 - 1, -(2**63))
TIMES = (0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e300, 2.0**41)
OTHERS = (None, True, "", "x" * 300, b"", b"\xff" * 7, [], {}, [[]] * 50)


def write_ledger(directory: Path, seed: int = 0, turns: int = 6) -> str:
    """A small ledger with a snapshot and a log: always the same bytes for a seed. Its digest."""
    chosen = random.Random(seed)
    clock = LedgerClock(Sources(lambda: 1000.0, lambda: 1.7e9, lambda: "a-boot"))
    book = Book.open(directory, clock)
    now = clock.now()
    for turn in range(turns):
        for number in range(3):
            id = f"step-{turn}-{number}"
            files = [{chosen.randrange(3600): 1 << 20 for _ in range(4)} for _ in range(3)]
            parts = packed(pack(files))
            book.note(
                Promised(
                    id,
                    "scratch",
                    1000 + number,
                    now,
                    now + 900.0,
                    60.0,
                    *parts,
                    b"reply " + id.encode(),
                    now + 600,
                )
            )
        book.note(Replied(f"no-{turn}", 1000, b"declined", now + 600.0))
        records: tuple[Record, ...] = (
            Closed(f"step-{turn}-0", now, now + 120.0, ((0, 1 << 10), (1, 1 << 30))),
            Died((f"step-{turn}-1",), now),
            Ended(f"step-{turn - 1}-2", now),
            Passed(now),
        )
        for record in records:
            book.note(record)
        book.commit()
        if turn == turns // 2:
            assert book._journal
            book._rewrite(book._journal)
    digest = book.digest()
    book.close()
    return digest


def mutate_ledger(n: int, seed: int = 0) -> dict[str, int]:
    """Open `n` mutated ledgers; how many were whole, damaged and refused. Anything else but that raises."""
    chosen = random.Random(seed)
    counts = {"whole": 0, "damaged": 0, "refused": 0}
    logging.getLogger("tarazu").setLevel(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory() as name:
            model = Path(name) / "model"
            write_ledger(model, seed)
            for number in range(n):
                directory = Path(name) / f"{number}"
                shutil.copytree(model, directory)
                _mutate(directory, chosen)
                counts[_open_twice(directory)] += 1
                shutil.rmtree(directory)
    finally:
        logging.getLogger("tarazu").setLevel(logging.NOTSET)
    return counts


def _open_twice(directory: Path) -> str:
    try:
        book = Book.open(directory)
    except StoreError as error:
        assert "\n" not in str(error)
        return "refused"
    was_damaged = bool(book.damages)
    book.note(Replied("after", 1, b"x", book.clock.now() + 600))
    book.pass_time(book.clock.now(), listening=True)
    book.commit()
    digest, trouble = book.digest(), book.trouble
    book.close()
    assert not trouble, trouble
    again = Book.open(directory)
    assert not again.damages and again.digest() == digest, "what was repaired is whole"
    again.close()
    return "damaged" if was_damaged else "whole"


def _mutate(directory: Path, chosen: random.Random) -> None:
    path = chosen.choice(sorted(directory.iterdir()))
    data = bytearray(path.read_bytes())
    kind = chosen.randrange(8)
    if kind == 0:
        for _ in range(chosen.randint(1, 20)):
            data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
    elif kind == 1:
        del data[chosen.randrange(len(data)) :]
    elif kind == 2:
        begin = chosen.randrange(len(data))
        del data[begin : begin + chosen.randint(1, 200)]
    elif kind == 3:
        begin = chosen.randrange(len(data))
        data[begin:begin] = data[chosen.randrange(len(data)) :][: chosen.randint(1, 500)]
    elif kind == 4:
        begin = chosen.randrange(len(data))
        data[begin : begin + chosen.randint(1, 4096)] = bytes(chosen.randint(1, 4096))
    elif kind == 5:
        data = bytearray(chosen.randbytes(chosen.randint(0, 2000)))
    else:
        data = bytearray(_forged(path, chosen))
    path.write_bytes(data)


def _forged(path: Path, chosen: random.Random) -> bytes:
    """The same frames with other values in their records, and with checksums that are right."""
    parts = [part for part in frames.read(path) if isinstance(part, Frame)]
    whole = [path.read_bytes()[: frames.HEADER_BYTES]]
    victim = chosen.randrange(len(parts)) if parts else 0
    if len(parts) > 1 and chosen.random() < 0.2:
        chosen.shuffle(parts)
    for number, part in enumerate(parts):
        first, payload = part.first, part.payload
        if number == victim:
            tree = msgspec.msgpack.decode(payload)
            for _ in range(chosen.randint(1, 3)):
                _change(tree, chosen)
            payload = msgspec.msgpack.encode(tree)
            if chosen.random() < 0.2:
                first = chosen.choice((0, 1, first + 1, first + 10**6, 2**63, 2**64 - 1))
        whole.append(frames.frame(first, payload))
    return b"".join(whole)


def _change(tree: list[object], chosen: random.Random) -> None:
    record = chosen.choice(tree)
    if not isinstance(record, list) or not record:
        return
    place = chosen.randrange(len(record))
    before = record[place]
    if isinstance(before, bytes) and before and chosen.random() < 0.7:
        record[place] = chosen.choice(
            (before[:-1], before * 2, chosen.randbytes(len(before)), b"\xff" * len(before))
        )
    elif isinstance(before, float) and chosen.random() < 0.7:
        record[place] = chosen.choice(TIMES)
    elif isinstance(before, int) and chosen.random() < 0.7:
        record[place] = chosen.choice(NUMBERS)
    else:
        record[place] = chosen.choice((*NUMBERS, *TIMES, *OTHERS))


def run(number: int, seed: int) -> str:
    counts = mutate_ledger(number, seed)
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())
