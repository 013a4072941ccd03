"""What mdsd's ledger on disk costs: restart, commits and compaction at a million promised stripes.

Run: python -m tests.benchmarks.daemons.ledger
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tarazu.allocate.ledger import pack
from tarazu.allocate.records import Closed, Promised, packed
from tarazu.daemons import book as books
from tarazu.daemons.book import Book
from tarazu.daemons.ledger_clock import LedgerClock
from tarazu.wire.messages import AllocationReply, encode

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


def case(directory: Path, allocations: int, stripes: int) -> None:
    books.COMPACT_BYTES = 1 << 40
    book = Book.open(directory, LedgerClock())
    book._limit_bytes = books.COMPACT_BYTES
    fill(book, allocations, stripes)
    digest = book.digest()
    book.close()
    log_bytes = sum(file.stat().st_size for file in directory.iterdir())
    from_log_ms, book = opened(directory)
    assert book.digest() == digest
    # A snapshot is written while the loop goes on with one small commit a turn.
    book._limit_bytes = 0
    turns, number = [], 0
    assert book._journal
    begin = time.perf_counter()
    while number < COMMITS or book._journal.compacting:
        now = book.clock.now()
        book.note(Closed(f"step-{number % allocations}", now, now + 120.0, ((0, 1 << 20),)))
        turns.append(timed_ms(book.commit))
        number += 1
        book._limit_bytes = books.COMPACT_BYTES
        if not book._journal.compacting and number == 1:
            break
    compacted_ms = (time.perf_counter() - begin) * 1e3
    digest = book.digest()
    book.close()
    snapshot_bytes = sum(file.stat().st_size for file in directory.glob("snapshot-*"))
    from_snapshot_ms, book = opened(directory)
    assert book.digest() == digest and not book.damages
    held = book.ledger.numbers()
    book.close()
    ordinary = sorted(turns)[len(turns) // 2]
    print(
        f"| {allocations:,} × {stripes:,} | {held[1]:,} | {log_bytes / 1e6:.1f} MB | {from_log_ms / 1e3:.2f} s "
        f"| {snapshot_bytes / 1e6:.1f} MB | {from_snapshot_ms / 1e3:.2f} s | {ordinary:.2f} ms | {max(turns):.0f} ms "
        f"| {compacted_ms:.0f} ms |",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--stripes", type=int, default=1_000_000, help="promised in all")
    options.add_argument("--directory", help="on the disk that is measured (default: a temporary one)")
    chosen = options.parse_args()
    print(
        "| allocations × stripes | promised | log | restart from the log | snapshot | restart from it "
        "| a commit | longest while it is written | all of that |"
    )
    print("|---" * 9 + "|")
    for allocations in (1_000, 20_000):
        directory = Path(tempfile.mkdtemp(dir=chosen.directory, prefix="ledger-"))
        try:
            case(directory, allocations, chosen.stripes // allocations // FILE_STRIPES * FILE_STRIPES)
        finally:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
