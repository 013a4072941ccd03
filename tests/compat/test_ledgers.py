"""Ledgers of earlier versions, and of this one, say what they said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tarazu.daemons.mdsd.book import Book
from tarazu.store.journal import Content
from tests.compat import ledgers
from tests.compat.old_tree import versions

WRITTEN = [version / "ledger" for version in versions("ledger")]


@pytest.fixture(params=["today", *WRITTEN], ids=lambda p: p if isinstance(p, str) else p.parent.name)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory that may be changed, with what a version wrote."""
    copy = tmp_path / "ledger"
    if request.param == "today":
        write(copy)
    else:
        shutil.copytree(request.param, copy)
    return copy


def write(directory: Path) -> None:
    directory.mkdir()
    ledgers.write(directory)


def expected(directory: Path, part: str) -> dict[str, Any]:
    return json.loads((directory / "facts.json").read_text())[part]


@pytest.mark.parametrize("part", ledgers.PARTS)
def test_a_ledger_is_replayed_to_what_it_said(ledger: Path, part: str) -> None:
    book = Book(ledgers.clock())
    book.replay(Content(ledger / part))
    assert not book.damages
    assert ledgers.facts(book) == expected(ledger, part)


@pytest.mark.parametrize("part", ledgers.PARTS)
def test_a_ledger_is_gone_on_with(ledger: Path, part: str) -> None:
    book = Book.open(ledger / part, ledgers.clock())
    assert not book.damages and not book.trouble and ledgers.facts(book) == expected(ledger, part)
    for record in ledgers.later():
        book.note(record)
    book.commit()
    digest, sequence = book.digest(), book.sequence
    book.close()
    again = Book.open(ledger / part, ledgers.clock())
    assert (again.digest(), again.sequence, again.damages) == (digest, sequence, [])
    again.close()


def test_the_records_mean_what_is_written_down_here(ledger: Path) -> None:
    """By hand, once: else a version could agree with itself only."""
    log = expected(ledger, "log")
    mib = ledgers.MIB
    open_bytes = {"0": 8 * mib, "7": 8 * mib, "65535": 3}
    assert log["promised"] == {
        "lustre": open_bytes | {"1": 4 * mib, "2": 3 * mib, "3": mib},
        "scratch-ü": {"0": 7},
    }
    assert log["written"] == {"lustre": {"1": 3 * mib, "2": 3 * mib}, "scratch-ü": {}}
    assert log["known"] == ["open", "closing", "ended", "dead", "revived"]
    assert sorted(log["replies"]) == sorted(
        ["open", "closing", "released", "ended", "dead", "revived", "later"]
    )
    snapshot = expected(ledger, "snapshot")
    assert snapshot["promised"] == {
        "lustre": {"1": 4 * mib, "2": 3 * mib, "3": mib},
        "scratch-ü": {"0": 7, "3": 4 * mib},
    }
    assert set(snapshot["replies"]) == {*log["replies"], "new"}
