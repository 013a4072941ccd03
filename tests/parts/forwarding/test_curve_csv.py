"""A site's own curves are read from CSV, and errors name the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.forwarding import curve_csv
from tarazu.parts.forwarding.curve import CurveSet, NamedCurve, curve

ROWS = "application,resources,bytes_per_s\n"
NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1).filter(
    lambda name: name[0] != "#"
)


def test_repeated_rows_are_repetitions(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("# measured in May\n" + ROWS + "ior,4,3e9\nior,1,1e9\n\nhacc,1,5e8\nior,4,2e9\n")
    read = curve_csv.read(path)
    assert read.note == str(path)
    assert [c.application for c in read.curves] == ["ior", "hacc"]
    assert read.curves[0].curve == curve([(1, 1e9), (4, 2e9), (4, 3e9)])
    assert read.curves[0].curve.origin == "measured"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"c\.csv:1: expected the columns application,resources,bytes_per_s, found ''"),
        (ROWS, r"c\.csv: expected rows of application,resources,bytes_per_s, found 'none'"),
        ("app,n,b\n", r"c\.csv:1: expected the columns application,resources,bytes_per_s, found 'app,n,b'"),
        ("application,application\n", r"c\.csv:1: expected each column once"),
        (ROWS + "ior,1\n", r"c\.csv:2: expected 3 columns, found 'ior,1'"),
        (ROWS + "ior,1,1e9,x\n", r"c\.csv:2: expected 3 columns"),
        (ROWS + ",1,1e9\n", r"c\.csv:2: application: expected text that is not empty, found ''"),
        (
            ROWS + "ior,0,1e9\n",
            r"c\.csv:2: resources: expected a whole number, 1 to 1000000, found '0'",
        ),
        (ROWS + "ior,1.5,1e9\n", r"c\.csv:2: .*found '1\.5'"),
        (ROWS + "ior,1_0,1e9\n", r"c\.csv:2: .*found '1_0'"),
        (
            ROWS + "ior,1,1e9\nior,2,nan\n",
            r"c\.csv:3: bytes_per_s: expected a number, 0\.001 to 1e\+18, found 'nan'",
        ),
        (ROWS + "ior,1,inf\n", r"c\.csv:2: bytes_per_s: expected"),
        (ROWS + "ior,1,-5\n", r"c\.csv:2: bytes_per_s: expected"),
        (ROWS + "ior,1,fast\n", r"c\.csv:2: bytes_per_s: expected a number.* found 'fast'"),
        (ROWS + 'ior,1,"1e9\n', r"c\.csv:2: expected a row of CSV"),
    ],
)
def test_one_line_says_what_is_wrong_and_where(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        curve_csv.parse(text, "c.csv")
    assert "\n" not in str(error.value)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.csv: expected a CSV .*No such file"):
        curve_csv.read(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"\xfc\n")
    with pytest.raises(BadInput, match="UTF-8"):
        curve_csv.read(tmp_path / "latin.csv")


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    points=st.dictionaries(
        NAMES,
        st.lists(st.tuples(st.integers(1, 1000), st.floats(1e-3, 1e18)), min_size=1, max_size=8),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read(points: dict[str, list[tuple[int, float]]]) -> None:
    made = CurveSet("c.csv", tuple(NamedCurve(name, curve(rows)) for name, rows in points.items()))
    assert curve_csv.parse(curve_csv.text(made), "c.csv") == made


@settings(max_examples=40, deadline=None, derandomize=True)
@given(text=st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        curve_csv.parse(ROWS + text, "c.csv")
    except BadInput as error:
        assert str(error).startswith("c.csv")
