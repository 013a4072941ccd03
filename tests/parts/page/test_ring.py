"""Imbalance over time: means of hours, bounded, and nothing that lies in the file costs more than a picture."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.errors import StoreError
from tarazu.parts.page.ring import FILE_SYSTEMS, KEPT_S, Moment, Ring

HOUR = 1_763_798_400
ONE = Moment(HOUR, 0.5, 0.7, 1.4, None, 1e9, 100, 0)


def moment(at_s: int, fill: float = 1.0, load: float | None = None, amiss: int = 0) -> Moment:
    return msgspec.structs.replace(ONE, at_s=at_s, fill_imbalance=fill, load_imbalance=load, amiss=amiss)


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    return Ring(tmp_path / "imbalance.db")


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.floats(1, 9), st.none() | st.floats(1, 9), st.integers(0, 5)), min_size=1, max_size=20
    )
)
def test_an_hour_is_the_mean_of_its_minutes(
    tmp_path: Path, minutes: list[tuple[float, float | None, int]]
) -> None:
    (tmp_path / "h.db").unlink(missing_ok=True)
    ring = Ring(tmp_path / "h.db")
    for number, (fill, load, amiss) in enumerate(minutes):
        ring.add({"fs": moment(HOUR + 60 * number, fill, load, amiss)})
        ring.add({"fs": moment(HOUR + 60 * number + 30, 99.0)})  # the minute is noted already
    (hour,) = ring.read("fs", 3600, 0)
    ring_minutes = ring.read("fs", 60, 0)
    ring.close()
    assert [m.fill_imbalance for m in ring_minutes] == [fill for fill, _, _ in minutes]
    assert hour.fill_imbalance == pytest.approx(sum(fill for fill, _, _ in minutes) / len(minutes))
    assert hour.amiss == max(amiss for _, _, amiss in minutes)
    loads = [load for _, load, _ in minutes if load is not None]
    assert (hour.load_imbalance is None) == (not loads)
    if loads:
        assert min(loads) - 1e-9 <= (hour.load_imbalance or 0) <= max(loads) + 1e-9


def test_what_is_old_goes_and_so_does_what_lies_in_the_future(ring: Ring) -> None:
    for back in (500 * 86400, 300 * 86400, 86400, -6 * 3600):
        ring.add({"fs": moment(HOUR - back)})
    ring.add({"fs": moment(HOUR)})
    assert [HOUR - m.at_s for m in ring.read("fs", 3600, 0)] == [300 * 86400, 86400, 0]
    assert [HOUR - m.at_s for m in ring.read("fs", 60, 0)] == [86400, 0]
    ring.close()


def test_a_clock_that_was_a_year_ahead_for_two_minutes_leaves_the_history(ring: Ring) -> None:
    for number in range(60):
        ring.add({"fs": moment(HOUR + 60 * number)})
    for number in range(2):
        ring.add({"fs": moment(HOUR + 500 * 86400 + 60 * number)})
    ring.add({"fs": moment(HOUR + 3600)})
    assert len(ring.read("fs", 60, 0)) >= 60 + 1 - 4
    assert max(m.at_s for m in ring.read("fs", 60, 0)) == HOUR + 3600
    ring.close()


def test_all_that_is_kept_of_a_file_system_takes_what_the_documentation_says(tmp_path: Path) -> None:
    Ring(tmp_path / "imbalance.db").close()
    row = (1, 0.512345678901, 0.712345678901, 1.412345678901, 1.912345678901, 123456789.123456, 10**13, 12)
    with sqlite3.connect(tmp_path / "imbalance.db") as rows:
        for span_s, kept_s in KEPT_S.items():
            times = range(HOUR - kept_s, HOUR + span_s, span_s)
            rows.executemany(
                f"insert into imbalance values (?, 'scratch', {', '.join('?' * 9)})",
                [(span_s, row[0], at_s, *row[1:]) for at_s in times],
            )
    rows.close()
    assert "less than 1.5 MB a file system" in (Path(__file__).parents[3] / "docs/page.md").read_text()
    assert (tmp_path / "imbalance.db").stat().st_size < 1.5e6


def test_names_without_end_do_not_fill_it(ring: Ring) -> None:
    ring.add({f"fs{number}": ONE for number in range(FILE_SYSTEMS + 40)})
    ring.add({f"other{number}": moment(HOUR + 60) for number in range(40)})
    assert len(ring.names()) == FILE_SYSTEMS
    ring.close()


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, b"", "newer"], ids=["garbage", "empty", "newer"]
)
def test_a_file_that_cannot_be_read_is_put_aside(tmp_path: Path, content: bytes | str) -> None:
    file = tmp_path / "imbalance.db"
    if isinstance(content, str):
        with sqlite3.connect(file) as rows:
            rows.execute("pragma user_version = 7")
        rows.close()
    else:
        file.write_bytes(content)
    ring = Ring(file)
    ring.add({"fs": ONE})
    assert ring.read("fs", 60, 0) == [msgspec.structs.replace(ONE, at_s=HOUR)]
    assert file.with_name("imbalance.db.unreadable").exists() == bool(content)
    ring.close()
    with pytest.raises(StoreError):
        ring.read("fs", 60, 0)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="can be written"):
        Ring(tmp_path / "file" / "imbalance.db")


def test_a_file_that_another_one_has_locked_is_not_put_aside(tmp_path: Path, ring: Ring) -> None:
    ring.add({"fs": ONE})
    ring.close()
    file = tmp_path / "imbalance.db"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with pytest.raises(StoreError, match="locked"):
            Ring(file)
    assert [path.name for path in tmp_path.iterdir()] == ["imbalance.db"]
    again = Ring(file)
    assert again.names() == ["fs"]
    again.close()
