"""Logs of a user: bounded, and no line is lost that was promised."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tarazu.cli.job import own
from tarazu.config import RunSettings, Settings
from tarazu.run import problems


def test_logs_of_jobs_do_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "MOST_LOG_BYTES", 1000)
    log = tmp_path / "state" / "jobs.log"
    for number in range(100):
        problems.append_line(
            log, f"2026-11-22T10:00:00Z run{number} app=ior mode=place job=4711 files={number}"
        )
    assert sorted(path.name for path in log.parent.iterdir()) == ["jobs.log", "jobs.log.1"]
    assert sum(path.stat().st_size for path in log.parent.iterdir()) < 2 * (1000 + 100)
    assert log.stat().st_mode & 0o777 == problems.before(log).stat().st_mode & 0o777 == 0o600
    # What is read of them is one log.
    lines = own.lines(Settings(run=RunSettings(state_dir=str(log.parent))), "4711")
    numbers = [int(line.run.removeprefix("run")) for line in lines]
    assert numbers == list(range(numbers[0], 100)) and len(numbers) > 11


def test_a_log_of_before_goes_when_it_is_old(tmp_path: Path) -> None:
    log = tmp_path / "jobs.log"
    problems.before(log).write_text("a year ago\n")
    os.utime(problems.before(log), (0, 0))
    problems.append_line(log, "now")
    assert not problems.before(log).exists() and log.read_text() == "now\n"


def test_a_line_that_is_written_while_a_log_is_put_aside_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of several jobs: each line of theirs is in the log, or in the one before."""
    monkeypatch.setattr(problems, "MOST_LOG_BYTES", 12_000)
    log = tmp_path / "jobs.log"

    def write(who: int) -> None:
        for number in range(100):
            problems.append_line(log, f"{who}-{number} {'x' * 20}")

    writers = [threading.Thread(target=write, args=(who,)) for who in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = (problems.before(log).read_text() + log.read_text()).split("\n")
    assert {f"{who}-{number} {'x' * 20}" for who in range(6) for number in range(100)} <= set(found)


def test_a_line_in_a_log_that_is_gone_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "jobs.log"
    opened = os.open

    def open_and_lose(path: Path, *args: int) -> int:
        monkeypatch.setattr(os, "open", opened)
        descriptor = opened(path, *args)
        log.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose)
    problems.append_line(log, "promised")
    assert log.read_text() == "promised\n"
