"""`tarazu doctor ledger` reads what mdsd left, and says what is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tarazu.allocate.ledger import pack
from tarazu.allocate.records import Closed, Promised, packed
from tarazu.cli import main
from tarazu.daemons.mdsd.book import Book


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    book = Book.open(tmp_path / "ledger")
    for uid, id in enumerate(("a", "b"), 1000):
        parts = packed(pack([{0: 1 << 20, 7: 1 << 20}]))
        book.note(Promised(id, "scratch", uid, 10.0, 610.0, 0.0, *parts, b"secret reply", 700.0))
        book.commit()
    book.note(Closed("a", 10.0, 130.0, ((0, 1 << 20),)))
    book.commit()
    book.close()
    return tmp_path / "ledger"


def test_promises_are_shown_by_file_system_user_and_ost(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "show", "--json", str(ledger)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["file_systems"] == {"scratch": 3 << 20} and found["kept_replies"] == 2
    assert found["osts"][1] == {"fs": "scratch", "ost": 7, "bytes": 3 << 19, "closed_bytes": 1 << 19}
    assert found["users"][0] == {"fs": "scratch", "uid": 1000, "promises": 1, "bytes": 1 << 20}
    assert [promise["id"] for promise in found["promises"]] == ["a", "b"]
    assert main(["ledger", "show", "--promises", str(ledger)]) == 0
    text = capsys.readouterr().out
    assert "scratch: 3.0 MiB promised" in text and "secret" not in text
    assert main(["ledger", "check", str(ledger)]) == 0
    assert "the ledger can be read as a whole" in capsys.readouterr().out


def test_damage_is_named_and_is_the_exit_status(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log,) = ledger.glob("log-*")
    data = bytearray(log.read_bytes())
    data[150] ^= 1
    log.write_bytes(data)
    assert main(["ledger", "check", str(ledger)]) == 1
    out = capsys.readouterr().out
    assert f"{log}: byte 32: expected a frame of" in out and "the ledger is damaged" in out
    assert log.read_bytes() == data


def test_what_is_no_ledger_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show", str(tmp_path / "none")]) == 2
    assert main(["ledger", "check", str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert "expected a ledger's directory, found 'No such file or directory'" in lines[0]
    assert "expected a ledger: files log-… and snapshot-…" in lines[1]
