"""The benchmark database: what goes in comes out; what is none is one line."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Measurement, load
from tarazu.parts.forwarding.estimate.database import COLUMNS, decode, encode, save
from tests.parts.forwarding.strategies import PATTERNS
from tests.test_locks import library, without_locks  # noqa: F401

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), max_size=40)
MEASUREMENTS = st.builds(
    Measurement,
    PATTERNS,
    st.integers(1, 65_535),
    st.floats(1e-6, 1e15),
    TEXT,
    TEXT,
    TEXT.filter(bool),
)
PATTERN = BenchmarkPattern("ost", "write", "POSIX", "shared", "contiguous", 1 << 20, 1 << 26, 64, 8)


def measured(resources: int, rate: float, id: str, pattern: BenchmarkPattern = PATTERN) -> Measurement:
    return Measurement(pattern, resources, rate, "ior-4.0.0", "yesterday", id)


@settings(max_examples=10)
@given(st.lists(MEASUREMENTS, max_size=2))
def test_round_trip(measurements: list[Measurement]) -> None:
    benchmarks = Benchmarks(measurements)
    assert decode(encode(benchmarks)).measurements == benchmarks.measurements


def test_the_same_measurement_counts_once() -> None:
    assert len(Benchmarks([measured(1, 5.0, "a"), measured(1, 5.0, "a")]).measurements) == 1


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.csv"
    save(Benchmarks([measured(1, 5.0, "a")]), path)
    before = path.stat().st_ino
    save(Benchmarks([measured(1, 5.0, "a"), measured(2, 5.0, "b")]), path)
    assert len(load(path).measurements) == 2
    assert path.stat().st_ino != before and os.listdir(tmp_path) == ["benchmarks.csv"]
    with path.open(newline="") as file:
        assert [row["resources"] for row in csv.DictReader(file)] == ["1", "2"]


def test_columns_may_stand_in_any_order_beside_others() -> None:
    rows = list(csv.reader(encode(Benchmarks([measured(1, 5.0, "a")])).splitlines()))
    turned = "\n".join(",".join([*reversed(row), "x"]) for row in rows)
    assert decode(turned).measurements == (measured(1, 5.0, "a"),)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("version", "2", "expected benchmarks of version 1"),
        ("operation", "append", "operation: expected one of read, write, found 'append'"),
        ("nodes", "0", "nodes: expected a whole number"),
        ("resources", "65536", "resources: expected a whole number, 1 to 65535"),
        ("bytes_per_s", "nan", "bytes_per_s: expected"),
        ("id", "", "id: expected text of 1 to 100 characters"),
        ("origin", "x" * 101, "origin: expected text of 0 to 100 characters"),
        ("measured", "\x07", "expected origin, measured and id of printable characters"),
    ],
)
def test_a_bad_value_is_one_line_that_says_where(column: str, value: str, said: str) -> None:
    header, row = encode(Benchmarks([measured(1, 5.0, "a")])).splitlines()
    cells = row.split(",")
    cells[COLUMNS.index(column)] = value
    with pytest.raises(BadInput, match=f"here:2: {said}"):
        decode(f"{header}\n{','.join(cells)}\n", "here")


def test_a_missing_file_is_none_only_where_that_is_said(tmp_path: Path) -> None:
    assert not len(load(tmp_path / "none", missing_ok=True))
    with pytest.raises(BadInput, match="expected a file of benchmarks, found 'nothing there'"):
        load(tmp_path / "none")


def test_benchmarks_are_changed_where_there_are_no_locks(
    without_locks: dict[str, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from pathlib import Path; from tarazu.parts.forwarding.estimate.database import changing\n"
        "with changing(Path(sys.argv[1])): pass"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "benchmarks.csv"], env=without_locks, check=True)
