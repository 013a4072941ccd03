"""What names that others chose may do to a terminal: nothing."""

from __future__ import annotations

import io
import sys

import pytest

from tarazu import cli
from tarazu.cli.output import Terminal, print_table, say
from tarazu.names import shown

EVIL = "oss1\x1b[2J\r\nmdsd: all is well\u202e\x9b31m"
WRITTEN_OUT = r"oss1\x1b[2J\r\nmdsd: all is well\u202e\x9b31m"


def test_tables_and_lines_write_control_characters_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("OSS", "x"), [(EVIL, 1)])
    say(EVIL)
    table, line = capsys.readouterr().out.splitlines()[1:]
    assert table == WRITTEN_OUT + "  1"
    assert line == WRITTEN_OUT


def test_names_that_are_no_utf_8_come_out_as_they_are() -> None:
    assert shown("caf\udce9\x07") == "caf\udce9\\x07"


def test_a_terminal_gets_lines_and_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape")
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", stream)
    cli.main(["--version"])
    assert isinstance(sys.stdout, Terminal)
    print("a\x1b[31m", "b\udce9", sep="\n", flush=True)
    assert raw.getvalue().endswith(b"a\\x1b[31m\nb\xe9\n")


def test_an_error_is_one_line_whatever_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ledger", "check", "/nowhere/" + EVIL]) != 0
    assert capsys.readouterr().err.count("\n") == 1
