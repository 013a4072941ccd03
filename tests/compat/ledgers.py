"""Ledgers as every version writes them: one of a log alone, one of a snapshot and a log; and what is in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tarazu.allocate.ledger import pack
from tarazu.allocate.records import (
    Closed,
    Died,
    Ended,
    Heard,
    Passed,
    Promised,
    Record,
    Replied,
    Revoked,
    packed,
)
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.ledger_clock import LedgerClock, Sources

MIB = 1 << 20
START_S = 1_700_000_000.0
USERS, FILE_SYSTEMS = (1000, 1001), ("lustre", "scratch-ü")


def clock() -> LedgerClock:
    return LedgerClock(
        Sources(lambda: 1000.0, lambda: START_S, lambda: "11111111-2222-3333-4444-555555555555")
    )


def _promised(id: str, uid: int, fs_name: str, files: list[dict[int, int]], alive_s: float = 0.0) -> Promised:
    stripes = packed(pack(files))
    reply = f"reply to {id}".encode()
    return Promised(id, fs_name, uid, START_S, START_S + 86_400, alive_s, *stripes, reply, START_S + 86_400)


def before() -> list[Record]:
    """One of every kind, what comes of them in `facts`."""
    return [
        _promised("open", 1000, "lustre", [{0: 8 * MIB, 7: 8 * MIB}, {65_535: 3}, {}]),
        _promised("closing", 1001, "lustre", [{1: 6 * MIB, 2: 6 * MIB}, {1: MIB}]),
        Closed("closing", START_S + 1, START_S + 500, ((0, 6 * MIB),)),
        _promised("released", 1001, "lustre", [{3: MIB}, {4: MIB}]),
        Closed("released", START_S + 1, START_S + 10, ((1, MIB),)),
        _promised("ended", 1000, "lustre", [{5: MIB}]),
        Ended("ended", START_S + 2),
        _promised("never left", 1000, "lustre", [{6: MIB}]),
        Revoked("never left"),
        _promised("dead", 1000, "lustre", [{8: 5 * MIB}], alive_s=2.0),
        _promised("revived", 1000, "scratch-ü", [{0: 7}], alive_s=3600.0),
        Died(("dead", "revived"), START_S + 20),
        Heard("revived", START_S + 21),
        Replied("later", 1001, b"\x00later\xff", START_S + 86_400),
        Passed(START_S + 30),
    ]


def after() -> list[Record]:
    """What follows a snapshot."""
    return [
        _promised("new", 1001, "scratch-ü", [{3: 9 * MIB}]),
        Ended("open", START_S + 40),
        Closed("new", START_S + 41, START_S + 600, ((0, 4 * MIB),)),
    ]


def later() -> list[Record]:
    """What a later version adds to it."""
    return [_promised("added", 1000, "lustre", [{9: MIB}]), Ended("closing", START_S + 50)]


PARTS = ("log", "snapshot")
"""A log alone; a snapshot and a log behind it."""


def write(directory: Path) -> None:
    """Both, and `facts.json`."""
    logged = Book.open(directory / "log", clock())
    for record in before():
        logged.note(record)
        logged.commit()
    taken = Book.open(directory / "snapshot", clock())
    taken.restore(logged.snapshot())
    taken.commit()
    for record in after():
        taken.note(record)
    taken.commit()
    found = {"log": facts(logged), "snapshot": facts(taken)}
    (directory / "facts.json").write_text(json.dumps(found, indent=1) + "\n")
    logged.close()
    taken.close()


def facts(book: Book) -> dict[str, Any]:
    """What a version has to find in it, as JSON holds it."""
    ledger = book.ledger
    return {
        "promised": {
            fs: {str(ost): size for ost, size in ledger.promised(fs).items()} for fs in FILE_SYSTEMS
        },
        "written": {fs: {str(ost): size for ost, size in ledger.written(fs).items()} for fs in FILE_SYSTEMS},
        "held": [[uid, fs, ledger.held_bytes(uid, fs)] for uid in USERS for fs in FILE_SYSTEMS],
        "numbers": list(ledger.numbers()),
        "known": [
            id for id in ("open", "closing", "ended", "never left", "dead", "revived", "new") if id in ledger
        ],
        "replies": {id: kept.data.hex() for id, kept in sorted(book.answered)},
    }
