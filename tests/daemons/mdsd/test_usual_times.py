"""What mdsd has learned of its OSTs survives it; a file that cannot be used is set aside."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest

from tarazu.daemons.mdsd.usual_times import UsualTimes
from tests.stats.test_usual import KEY, interval, learn


def test_what_was_learned_is_there_after_a_restart(tmp_path: Path) -> None:
    times = UsualTimes(str(tmp_path))
    now = learn(times.usual, 2)
    times.close()
    again = UsualTimes(str(tmp_path))
    assert again.usual.expected(KEY, interval(now)) == times.usual.expected(KEY, interval(now))
    assert (tmp_path / "usual.msgpack").stat().st_mode & 0o777 == 0o600


def test_it_is_written_when_due(tmp_path: Path) -> None:
    times = UsualTimes(str(tmp_path), write_s=60.0)
    learn(times.usual, 2)
    times.look(time.monotonic() + 10)
    assert not list(tmp_path.iterdir())
    times.look(time.monotonic() + 61)
    deadline = time.monotonic() + 120
    while not (tmp_path / "usual.msgpack").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(UsualTimes(str(tmp_path)).usual) == 1


@pytest.mark.parametrize("content", [b"", b"nothing of ours", b"\x81\xa7version\x09"])
def test_a_file_of_another_kind_is_set_aside_in_one_line(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "usual.msgpack").write_bytes(content)
    with caplog.at_level(logging.ERROR):
        times = UsualTimes(str(tmp_path))
    assert len(caplog.messages) == 1 and "set aside" in caplog.text and "usual.msgpack" in caplog.text
    assert (tmp_path / "usual.msgpack.unreadable").read_bytes() == content
    learn(times.usual, 2)
    times.close()
    assert len(UsualTimes(str(tmp_path)).usual) == 1


def test_a_fifo_in_its_place_does_not_keep_mdsd_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "usual.msgpack")
    times = UsualTimes(str(tmp_path))
    learn(times.usual, 2)
    times.close()
    assert len(UsualTimes(str(tmp_path)).usual) == 1


def test_without_a_directory_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    times = UsualTimes("")
    learn(times.usual, 2)
    times.look(time.monotonic() + 1e6)
    times.close()
    assert not list(tmp_path.iterdir())
