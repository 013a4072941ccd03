"""What mdsd has learned of its OSTs survives it; a file that cannot be used is set aside."""

from __future__ import annotations

import logging
import math
import os
import random
import struct
import time
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.daemons.mdsd.usual_times import UsualTimes, dump, load
from tarazu.errors import StoreError
from tarazu.stats.usual import OST_BYTES, Usual
from tarazu.units import MIB
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


def test_it_is_bounded_and_comes_back_as_it_was() -> None:
    usual, chance = Usual(), random.Random(1)
    for _ in range(300):
        for index, writes in product(range(20), (False, True)):
            size, flight = 2.0 ** chance.uniform(12, 23), chance.uniform(1, 40)
            usual.pass_time(now := chance.uniform(0, 1e6))
            e = interval(now, chance.uniform(0.001, 1), size, flight=flight)
            usual.learn(("lustre", index, writes), e)
    usual.learn(("lustre", "oss1", True), interval(1.0))
    data = dump(usual)
    assert len(data) < 20 * OST_BYTES, "with every cell in use"
    again = Usual()
    load(again, data, "usual.msgpack")
    assert dump(again) == data and len(again) == len(usual) == 41


@pytest.mark.parametrize(
    "content",
    [b"", b"\x81", b"\xff" * 100, b"\x81\xa7version\x02", b"\x81\xa7version\x03", dump(Usual())[:-3]],
)
def test_a_file_that_is_none_is_refused_and_changes_nothing(content: bytes) -> None:
    usual = Usual()
    learn(usual, 2)
    before = dump(usual)
    with pytest.raises(StoreError, match=r"^usual\.msgpack: expected usual times of I/Os, version 2, found"):
        load(usual, content, "usual.msgpack")
    assert dump(usual) == before


def test_a_cell_with_a_value_that_is_no_number_is_refused() -> None:
    usual = Usual()
    learn(usual, 1)
    data = dump(usual)
    at = data.index(struct.pack("<f", math.log(MIB)))  # mean log of bytes
    with pytest.raises(StoreError, match="impossible values in cell"):
        load(Usual(), data[:at] + struct.pack("<f", math.nan) + data[at + 4 :], "here")


def test_a_file_of_many_file_systems_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Usual()
    for index in range(12):
        usual.learn((f"fs{index}", 0, True), interval(60))
    monkeypatch.setattr("tarazu.daemons.mdsd.usual_times.MOST_OSTS", 3)
    again = Usual()
    load(again, dump(usual), "here")
    assert len(again) == 6


@given(st.binary(max_size=60), st.integers(0, 200))
def test_a_damaged_file_is_read_or_refused(noise: bytes, at: int) -> None:
    usual = Usual()
    learn(usual, 1)
    data = dump(usual)
    damaged = data[: at % len(data)] + noise + data[at % len(data) + len(noise) :]
    again = Usual()
    try:
        load(again, damaged, "here")
    except StoreError:
        assert len(again) == 0
    else:
        known = again.expected(KEY, interval(3600))
        assert known is None or all(math.isfinite(r) and r > 0 for r in known.rates)
