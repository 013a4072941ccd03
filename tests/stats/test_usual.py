"""What is usual for an OST: learned, forgotten, bounded, kept."""

from __future__ import annotations

import math
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import StoreError
from tarazu.stats.evidence import Evidence
from tarazu.stats.usual import CELLS, HALF_LIFE_H, OST_BYTES, Usual, cell_of
from tarazu.units import KIB, MIB

KEY = ("lustre", 3, True)


def interval(
    at_s: float, one_s: float = 0.02, size: float = MIB, ios: int = 200, flight: float = 1.0
) -> Evidence:
    return Evidence(at_s - 60, at_s, "brw_stats", ios, int(ios * size), ios * one_s, flight)


def learn(
    usual: Usual, hours: float, one_s: float = 0.02, weight: float = 1.0, begin_s: float = 0.0
) -> float:
    now = begin_s
    for _ in range(int(hours * 60)):
        now += 60
        usual.pass_time(now)
        usual.learn(KEY, interval(now, one_s), weight)
    return now


def test_what_was_seen_for_an_hour_is_usual() -> None:
    usual = Usual()
    assert usual.expected(KEY, interval(60)) is None
    now = learn(usual, 2)
    known = usual.expected(KEY, interval(now))
    assert known and 1 / known.rates[1] == pytest.approx(0.02, rel=0.01)
    assert known.mean_bytes == pytest.approx(MIB, rel=0.01) and known.hours == pytest.approx(2, abs=0.1)
    assert usual.expected(KEY, interval(now, flight=30)) == known, "the nearest number in flight"
    assert usual.expected(KEY, interval(now, size=4 * KIB)) is None, "nothing like it was seen"


def test_a_disk_that_is_slow_for_a_week_is_not_usual_and_a_new_one_is_after_months() -> None:
    usual = Usual()
    now = learn(usual, 14 * 24)
    now = learn(usual, 7 * 24, one_s=0.2, weight=0.05, begin_s=now)
    known = usual.expected(KEY, interval(now))
    assert known and 1 / known.rates[1] < 0.03
    learn(usual, 4 * HALF_LIFE_H, one_s=0.2, begin_s=now)
    known = usual.expected(KEY, interval(now))
    assert known and 1 / known.rates[1] == pytest.approx(0.2, rel=0.2)


def test_one_odd_interval_moves_little() -> None:
    usual = Usual()
    now = learn(usual, 24)
    usual.learn(KEY, interval(now + 60, 200.0))
    known = usual.expected(KEY, interval(now))
    assert known and 1 / known.rates[1] == pytest.approx(0.02, rel=0.1)


def test_another_source_begins_anew_and_a_source_without_queue_is_not_learned() -> None:
    usual = Usual()
    now = learn(usual, 2)
    usual.learn(KEY, interval(now)._replace(source="diskstats"))
    assert usual.expected(KEY, interval(now)) is None
    usual.learn(("lustre", 4, True), interval(now)._replace(source="obdfilter"))
    assert len(usual) == 1


def test_it_is_bounded_and_comes_back_as_it_was() -> None:
    usual, chance = Usual(), random.Random(1)
    for osts in (range(20),):
        for _ in range(300):
            for index in osts:
                for writes in (False, True):
                    size, flight = 2.0 ** chance.uniform(12, 23), chance.uniform(1, 40)
                    usual.pass_time(now := chance.uniform(0, 1e6))
                    e = interval(now, chance.uniform(0.001, 1), size, flight=flight)
                    usual.learn(("lustre", index, writes), e)
        usual.learn(("lustre", "oss1", True), interval(1.0))
    data = usual.dump()
    assert len(data) < 20 * OST_BYTES, "with every cell in use"
    again = Usual()
    again.load(data, "usual.msgpack")
    assert again.dump() == data and len(again) == len(usual) == 41


@pytest.mark.parametrize(
    "content",
    [b"", b"\x81", b"\xff" * 100, b"\x81\xa7version\x01", b"\x81\xa7version\x02", Usual().dump()[:-3]],
)
def test_a_file_that_is_none_is_refused_and_changes_nothing(content: bytes) -> None:
    usual = Usual()
    learn(usual, 2)
    before = usual.dump()
    with pytest.raises(StoreError, match=r"^usual\.msgpack: expected usual times of I/Os, version 1, found"):
        usual.load(content, "usual.msgpack")
    assert usual.dump() == before


def test_a_cell_with_a_value_that_is_no_number_is_refused() -> None:
    usual = Usual()
    learn(usual, 1)
    data = usual.dump()
    at = data.index(struct.pack("<f", math.log(MIB)))  # mean log of bytes
    with pytest.raises(StoreError, match="impossible values in cell"):
        Usual().load(data[:at] + struct.pack("<f", math.nan) + data[at + 4 :], "here")


def test_a_file_of_many_file_systems_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Usual()
    for index in range(12):
        usual.learn((f"fs{index}", 0, True), interval(60))
    monkeypatch.setattr("tarazu.stats.usual.MOST_OSTS", 3)
    again = Usual()
    again.load(usual.dump(), "here")
    assert len(again) == 6


@given(st.binary(max_size=60), st.integers(0, 200))
def test_a_damaged_file_is_read_or_refused(noise: bytes, at: int) -> None:
    usual = Usual()
    learn(usual, 1)
    data = usual.dump()
    damaged = data[: at % len(data)] + noise + data[at % len(data) + len(noise) :]
    again = Usual()
    try:
        again.load(damaged, "here")
    except StoreError:
        assert len(again) == 0
    else:
        known = again.expected(KEY, interval(3600))
        assert known is None or all(math.isfinite(r) and r > 0 for r in known.rates)


def test_cells_hold_sizes_and_queues_apart() -> None:
    cells = {
        cell_of(interval(1, size=size, flight=flight))
        for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
        for flight in (1, 2, 8, 16, 64)
    }
    assert cells == set(range(CELLS))
