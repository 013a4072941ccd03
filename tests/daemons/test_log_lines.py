"""The daemons' log: one line a record, whatever a peer has sent, in the form that its reader takes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.daemons.service_manager import LineFormatter, to_the_journal
from tarazu.names import one_line

HOSTILE = "scratch\n<0>kernel: panic \x1b[2J\r\u2028\x9b\u202e\udc80\0"


def record(level: int, text: str) -> logging.LogRecord:
    return logging.LogRecord("tarazu", level, "", 0, "%s", (text,), None)


def test_nothing_that_a_peer_sends_ends_a_line_or_reaches_a_terminal_raw() -> None:
    for journal in (False, True):
        line = LineFormatter("tarazu-mdsd", journal=journal).format(record(logging.WARNING, HOSTILE))
        assert line.isprintable() and len(line.splitlines()) == 1
        assert "scratch\\n<0>kernel: panic \\x1b[2J\\r\\u2028" in line
    assert one_line("größer 7 % ∑") == "größer 7 % ∑"


@pytest.mark.parametrize(
    ("level", "priority"),
    [("DEBUG", 7), ("INFO", 6), ("WARNING", 4), ("ERROR", 3), ("CRITICAL", 2)],
)
def test_the_journal_gets_priorities_and_no_program(level: str, priority: int) -> None:
    line = LineFormatter("tarazu-mdsd", journal=True).format(record(getattr(logging, level), "it is so"))
    assert line == f"<{priority}>it is so"


def test_a_traceback_is_one_line_too() -> None:
    try:
        raise ValueError("seven")
    except ValueError:
        failed = logging.LogRecord("tarazu", logging.ERROR, "", 0, "it failed", (), sys.exc_info())
    line = LineFormatter("tarazu-mdsd", journal=False).format(failed)
    assert line.startswith("tarazu-mdsd: ERROR: it failed\\nTraceback") and "ValueError: seven" in line
    assert len(line.splitlines()) == 1


def test_the_journal_is_known_by_its_stream(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream:
        found = os.fstat(stream.fileno())
        mine = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        assert to_the_journal(mine, stream.fileno())
        assert not to_the_journal({"JOURNAL_STREAM": "1:2"}, stream.fileno())
        assert not to_the_journal({}, stream.fileno())


@pytest.mark.parametrize("journal", [False, True])
def test_a_daemon_that_cannot_start_says_one_line(tmp_path: Path, journal: bool) -> None:
    (tmp_path / "site.toml").write_text("[ossd]\ninterval_s = -1\n")
    with (tmp_path / "log").open("w") as log:
        found = os.fstat(log.fileno())
        stream = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"} if journal else {}
        command = [
            sys.executable,
            "-m",
            "tarazu.daemons.ossd.service",
            "--config",
            str(tmp_path / "site.toml"),
        ]
        done = subprocess.run(command, stderr=log, env={**os.environ, **stream}, check=False)
    expected = f"{tmp_path}/site.toml:2: [ossd] interval_s: expected a number above 0, found -1"
    line = (tmp_path / "log").read_text()
    assert done.returncode != 0
    assert line == (f"<2>{expected}" if journal else f"tarazu-ossd: {expected}") + "\n"
