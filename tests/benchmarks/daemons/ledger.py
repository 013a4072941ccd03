"""What mdsd's ledger on disk costs: restart, commits and compaction at a million promised stripes.

Run: python -m tests.benchmarks.daemons --only ledger
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tarazu.allocate.ledger import pack
from tarazu.allocate.records import Closed, Promised, packed
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.ledger_clock import LedgerClock
from tarazu.wire.messages import AllocationReply, encode
from tests.benchmarks.figure import Figure

STRIPES = 1_000_000
OSTS = 3_600
FILE_STRIPES = 8
COMMITS = 200


def timed_ms(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def promise(number: int, stripes: int, now: float) -> Promised:
    """An allocation of files of `FILE_STRIPES`, with its reply."""
    files = [
        [(number * 7 + file * FILE_STRIPES + k) % OSTS for k in range(FILE_STRIPES)]
        for file in range(stripes // FILE_STRIPES)
    ]
    reply = AllocationReply(f"step-{number}", "allocated", osts=tuple((tuple(osts),) for osts in files))
    parts = packed(pack(dict.fromkeys(osts, 1 << 28) for osts in files))
    return Promised(
        reply.id, "scratch", 1000 + number % 50, now, now + 1e5, 120.0, *parts, encode(reply), now + 1e5
    )


def fill(book: Book, allocations: int, stripes: int) -> None:
    now = book.clock.now()
    for number in range(allocations):
        book.note(promise(number, stripes, now))
        if number % 50 == 49:
            book.commit()
    book.commit()


def opened(directory: Path) -> tuple[float, Book]:
    """Milliseconds, and the book."""
    begin = time.perf_counter()
    book = Book.open(directory, LedgerClock())
    return (time.perf_counter() - begin) * 1e3, book


def case(directory: Path, allocations: int, stripes: int) -> list[Figure]:
    book = Book.open(directory, LedgerClock())
    book.limit_bytes = 1 << 40
    fill(book, allocations, stripes)
    digest = book.digest()
    book.close()
    log_bytes = sum(file.stat().st_size for file in directory.iterdir())
    from_log_ms, book = opened(directory)
    assert book.digest() == digest
    # A snapshot is written while the loop goes on with one small commit a turn.
    book.limit_bytes = 0
    turns: list[float] = []
    while len(turns) < COMMITS:
        now = book.clock.now()
        book.note(Closed(f"step-{len(turns) % allocations}", now, now + 120.0, ((0, 1 << 20),)))
        turns.append(timed_ms(book.commit))
        book.limit_bytes = 1 << 40
    digest = book.digest()
    book.close()
    snapshot_bytes = sum(file.stat().st_size for file in directory.glob("snapshot-*"))
    assert snapshot_bytes, "no snapshot was written"
    from_snapshot_ms, book = opened(directory)
    assert book.digest() == digest and not book.damages
    held = book.ledger.numbers()[1]
    book.close()
    what = f"{allocations:,} allocations of {stripes:,} stripes:"
    return [
        Figure(f"{what} promised", held, "stripes"),
        Figure(f"{what} log", log_bytes / 1e6, "MB"),
        Figure(f"{what} restart from the log", from_log_ms / 1e3, "s", 5.0),
        Figure(f"{what} snapshot", snapshot_bytes / 1e6, "MB"),
        Figure(f"{what} restart from snapshot and log", from_snapshot_ms / 1e3, "s", 5.0),
        Figure(f"{what} commit of one record, median", sorted(turns)[len(turns) // 2], "ms"),
        Figure(f"{what} longest commit while a snapshot is written", max(turns), "ms", 300.0),
    ]


def measure(short: bool) -> list[Figure]:
    """`short`: a tenth of the stripes."""
    stripes = STRIPES // 10 if short else STRIPES
    figures: list[Figure] = []
    for allocations in (1_000, 20_000):
        with tempfile.TemporaryDirectory(prefix="ledger-") as name:
            of_each = max(1, stripes // allocations // FILE_STRIPES) * FILE_STRIPES
            figures += case(Path(name), allocations, of_each)
    return figures
