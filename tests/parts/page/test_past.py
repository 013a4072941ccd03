"""What was before: points of OSTs, and what became of OSTs, servers and mdsd; bounded, and quick to read."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tarazu.errors import StoreError
from tarazu.parts.page import past
from tarazu.parts.page.past import GONE, HEARD, MDSD, OST, SERVER, SILENT, SPANS_S, WELL, State
from tarazu.parts.page.ring import Ring
from tarazu.wire.overview import Target
from tests.parts.page import sample

NOW_S = 1_763_800_200.0  # the begin of ten minutes
DAY_S = 86400.0
SLOW = State("slow", None, "0.7 of its peers' speed")


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Ring]:
    ring = Ring(tmp_path / "imbalance.db")
    yield ring
    ring.close()


def target(**of: object) -> Target:
    (found, *_) = sample.system(1, 1).overview.targets  # type: ignore[union-attr]
    return msgspec.structs.replace(found, **of)


def test_ten_minutes_are_one_point_and_four_hours_another(ring: Ring) -> None:
    kept = ring.past
    for minute, moved in enumerate((100.0, 200.0, None, 300.0)):
        one = target(writing_bytes_per_s=moved, reading_bytes_per_s=0.0, latency_s=0.002 if minute else None)
        kept.add(NOW_S + 60 * minute, [one, target(index=1, stale=True)])
    assert kept.moments("scratch", [0], 600, NOW_S - 600, NOW_S + 240) == []
    assert kept.next_s(NOW_S + 240) == NOW_S + 600
    kept.add(NOW_S + 600, [target()])
    (point,) = kept.moments("scratch", [0, 1], 600, NOW_S - 600, NOW_S + 600)
    used = target().fill
    assert (point.at_s, point.moved_bytes_per_s, point.latency_s) == (NOW_S, 200, pytest.approx(0.002))
    assert point.used == pytest.approx(used, abs=0.001)
    (point,) = kept.moments("scratch", [0], 4 * 3600, NOW_S - 86400, NOW_S + 600)
    assert point.at_s == NOW_S // 14400 * 14400 and point.moved_bytes_per_s == 200


def test_several_osts_together_are_a_sum_and_a_mean(ring: Ring) -> None:
    for index, moved in ((0, 100.0), (1, 300.0)):
        one = target(index=index, writing_bytes_per_s=moved, reading_bytes_per_s=0.0, latency_s=moved / 1e5)
        ring.past.add(NOW_S, [one])
    ring.past.write(NOW_S + 1)
    (point,) = ring.past.moments("scratch", [0, 1], 600, NOW_S, NOW_S)
    assert (point.moved_bytes_per_s, point.latency_s) == (400, pytest.approx(0.002))


def test_points_that_are_old_go_and_so_does_what_lies_in_the_future(ring: Ring) -> None:
    for back_s in (40 * DAY_S, 20 * DAY_S, 3600.0, -7200.0, 0.0):
        ring.past.add(NOW_S - back_s, [target()])
    ring.past.write(NOW_S)
    ring.past.add(NOW_S + 600, [target()])
    ring.past.write(NOW_S + 600)
    assert [m.at_s - NOW_S for m in ring.past.moments("scratch", [0], 600, 0, NOW_S + 9000)][-3:] == [
        -3600,
        0,
        600,
    ]
    long = [m.at_s for m in ring.past.moments("scratch", [0], 14400, NOW_S - 50 * DAY_S, NOW_S + 9000)]
    assert len(long) == 2 + (NOW_S // 14400 != (NOW_S - 3600) // 14400) and long[0] < NOW_S - 19 * DAY_S


def test_all_osts_histories_take_what_the_documentation_says_and_one_is_read_at_once(tmp_path: Path) -> None:
    osts = 100
    ring = Ring(tmp_path / "imbalance.db")
    rows = [
        (span_s, at_s, "scratch", ost, 10, 987, 1_234_567_890, 12_345)
        for span_s, kept_s in SPANS_S.items()
        for at_s in range(int(NOW_S - kept_s) // span_s * span_s, int(NOW_S), span_s)
        for ost in range(osts)
    ]
    ring.past._change([(past._ADD, rows)])
    began = time.process_time()
    assert len(ring.past.moments("scratch", [7], 600, NOW_S - DAY_S, NOW_S)) == 144
    assert time.process_time() - began < 0.2
    ring.close()
    size = (tmp_path / "imbalance.db").stat().st_size
    assert size / osts < 20_000
    assert "20 KB an OST" in (Path(__file__).parents[3] / "docs/page.md").read_text()


def test_absurd_figures_are_kept_as_what_fits(ring: Ring) -> None:
    worst = target(
        writing_bytes_per_s=1e308,
        reading_bytes_per_s=1e308,
        latency_s=1e300,
        total_bytes=1,
        free_bytes=-(2**60),
    )
    ring.past.add(NOW_S, [worst])
    ring.past.write(NOW_S)
    assert len(ring.past.moments("scratch", [0], 600, NOW_S, NOW_S)) == 1


def test_what_became_of_each_is_noted_once_with_the_time_that_mdsd_says(ring: Ring) -> None:
    kept = ring.past
    well = {(OST, "a"): State(WELL), (SERVER, "oss1"): State(HEARD), (MDSD, MDSD): State("answers")}
    kept.notice(well, NOW_S)
    assert kept.since(0) == [], "what is there when the history begins has not changed"
    slow = well | {(OST, "a"): State("slow", NOW_S + 3000, "0.7 of its peers' speed")}
    for at_s in (NOW_S + 3600, NOW_S + 3660):
        kept.notice(slow, at_s)
    (event,) = kept.since(0)
    assert (event.at_s, event.was, event.now) == (NOW_S + 3000, WELL, "slow") and past.is_worse(event)
    kept.notice(well | {(OST, "b"): State(WELL)}, NOW_S + 7200)
    assert [(e.name, e.was, e.now) for e in kept.since(NOW_S + 3600)] == [
        ("a", "slow", WELL),
        ("b", "", WELL),
    ]
    kept.notice({(MDSD, MDSD): State(SILENT, NOW_S + 7300, "timeout")}, NOW_S + 7310)
    assert kept.of(MDSD, MDSD)[0].why == "timeout"


def test_a_restart_of_the_page_is_no_news(tmp_path: Path) -> None:
    now = {(OST, "a"): SLOW, (SERVER, "oss1"): State(HEARD)}
    for at_s in (NOW_S, NOW_S + 4000):
        ring = Ring(tmp_path / "imbalance.db")
        ring.past.notice(now, at_s)
        assert ring.past.since(0) == [] and ring.past.begun_s == NOW_S
        ring.close()


def test_servers_that_a_new_mdsd_has_not_heard_yet_are_not_gone(ring: Ring) -> None:
    ring.past.notice({(SERVER, "oss1"): State(HEARD)}, NOW_S)
    ring.past.notice({}, NOW_S + 60, mdsd_runs_s=30.0)
    assert ring.past.since(0) == []
    ring.past.notice({}, NOW_S + 600, mdsd_runs_s=570.0)
    assert [e.now for e in ring.past.since(0)] == [GONE]


def test_an_ost_that_comes_and_goes_fills_no_disk(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "EVENTS", 50)
    for number in range(400):
        ring.past.notice(
            {(OST, "a"): SLOW if number % 2 else State(WELL), (OST, "b"): SLOW}, NOW_S + 60 * number
        )
    count = ring._rows.execute("select count(*) from events").fetchone()[0]
    assert count <= 60 and ring.past.of(OST, "b")


def test_a_file_of_the_version_before_goes_on(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "imbalance.db")
    ring.close()
    with sqlite3.connect(tmp_path / "imbalance.db") as rows:
        rows.execute("drop table osts")
        rows.execute("drop table events")
    rows.close()
    ring = Ring(tmp_path / "imbalance.db")
    ring.past.notice({(OST, "a"): SLOW}, NOW_S)
    ring.close()
    assert not (tmp_path / "imbalance.db.unreadable").exists()


def test_a_closed_file_is_an_error_of_the_house(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "imbalance.db")
    ring.close()
    with pytest.raises(StoreError):
        ring.past.since(0)
    with pytest.raises(StoreError):
        ring.past.notice({(OST, "a"): SLOW}, NOW_S)
