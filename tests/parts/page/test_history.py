"""What was before, as points of OSTs: bounded, and quick to read."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tarazu.errors import StoreError
from tarazu.parts.page import history
from tarazu.parts.page.history import SPANS_S, History
from tarazu.wire.overview import Target
from tests.parts.page import sample

NOW_S = 1_763_800_200.0  # the begin of ten minutes
DAY_S = 86400.0


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[History]:
    history = History(tmp_path / "history.db")
    yield history
    history.close()


def target(**of: object) -> Target:
    (found, *_) = sample.system(1, 1).overview.targets  # type: ignore[union-attr]
    return msgspec.structs.replace(found, **of)


def test_ten_minutes_are_one_point_and_four_hours_another(kept: History) -> None:
    for minute, moved in enumerate((100.0, 200.0, None, 300.0)):
        one = target(writing_bytes_per_s=moved, reading_bytes_per_s=0.0, latency_s=0.002 if minute else None)
        kept.add(NOW_S + 60 * minute, [one, target(index=1, stale=True)])
    (point,) = kept.moments("scratch", [0, 1], 600, NOW_S - 600, NOW_S + 240)
    assert (point.at_s, point.latency_s) == (NOW_S, pytest.approx(0.002)) and 150 < point.moved < 250
    assert point.used == pytest.approx(target().fill, abs=0.001)
    (point,) = kept.moments("scratch", [0], 4 * 3600, NOW_S - 86400, NOW_S + 600)
    assert point.at_s == NOW_S // 14400 * 14400


def test_several_osts_together_are_a_sum_a_mean_and_an_imbalance(kept: History) -> None:
    osts = [
        target(
            index=index, writing_bytes_per_s=moved, reading_bytes_per_s=0.0, latency_s=moved and moved / 1e5
        )
        for index, moved in ((0, 100.0), (1, 300.0), (2, None))
    ]
    kept.add(NOW_S, osts)
    for which in (None, [0, 1, 2]):
        (point,) = kept.moments("scratch", which, 600, NOW_S, NOW_S)
        assert (point.moved, point.latency_s) == (400, pytest.approx(0.002))
        assert point.gravest == osts[0].verdict.weight
        assert (point.load_imbalance, point.fill_imbalance) == (1.5, pytest.approx(1))


def test_points_that_are_old_go_and_so_does_what_lies_in_the_future(kept: History) -> None:
    for back_s in (40 * DAY_S, 20 * DAY_S, 3600.0, -7200.0, 0.0):
        kept.add(NOW_S - back_s, [target()])
    short = [m.at_s - NOW_S for m in kept.moments("scratch", [0], 600, 0, NOW_S + 9000)]
    assert short[-2:] == [-3600, 0] and min(short) > -2 * DAY_S
    long = [m.at_s for m in kept.moments("scratch", [0], 14400, NOW_S - 50 * DAY_S, NOW_S + 9000)]
    assert len(long) == 2 + (NOW_S // 14400 != (NOW_S - 3600) // 14400) and long[0] < NOW_S - 19 * DAY_S


def test_all_osts_histories_take_what_the_documentation_says_and_one_is_read_at_once(tmp_path: Path) -> None:
    osts = 100
    kept = History(tmp_path / "history.db")
    rows = [
        (span_s, at_s, "scratch", ost, 987, 1_234_567_890, 12_345, 11)
        for span_s, kept_s in SPANS_S.items()
        for at_s in range(int(NOW_S - kept_s) // span_s * span_s, int(NOW_S), span_s)
        for ost in range(osts)
    ]
    with kept._rows:
        kept._rows.executemany(history._ADD, rows)
    began = time.process_time()
    assert len(kept.moments("scratch", [7], 600, NOW_S - DAY_S, NOW_S)) == 144
    assert time.process_time() - began < 0.2
    kept.close()
    size = (tmp_path / "history.db").stat().st_size
    assert size / osts < 20_000
    assert "20 KB an OST" in (Path(__file__).parents[3] / "docs/page.md").read_text()


def test_absurd_figures_are_kept_as_what_fits(kept: History) -> None:
    worst = target(
        writing_bytes_per_s=1e308,
        reading_bytes_per_s=1e308,
        latency_s=1e300,
        total_bytes=1,
        free_bytes=-(2**60),
    )
    kept.add(NOW_S, [worst])
    assert len(kept.moments("scratch", [0], 600, NOW_S, NOW_S)) == 1


@pytest.mark.parametrize("damage", ["noise", "version"])
def test_a_file_that_cannot_be_read_is_put_aside(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "history.db"
    file.write_bytes(b"no database" * 1000)
    if damage == "version":
        file.unlink()
        rows = sqlite3.connect(file)
        rows.execute("pragma user_version = 7")
        rows.close()
    kept = History(file)
    kept.add(NOW_S, [target()])
    kept.close()
    assert (tmp_path / "history.db.unreadable").exists()


def test_a_file_that_another_one_has_stays(tmp_path: Path) -> None:
    file = tmp_path / "history.db"
    History(file).close()
    with sqlite3.connect(file, isolation_level=None) as rows:
        rows.execute("begin exclusive")
        with pytest.raises(StoreError, match=r"history\.db"):
            History(file)
    rows.close()
    assert not (tmp_path / "history.db.unreadable").exists()


def test_a_closed_file_is_an_error_of_the_house(tmp_path: Path) -> None:
    kept = History(tmp_path / "history.db")
    kept.close()
    with pytest.raises(StoreError):
        kept.moments("scratch", None, 600, 0, NOW_S)
    with pytest.raises(StoreError):
        kept.add(NOW_S, [target()])
