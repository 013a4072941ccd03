"""A site's own curves are read from CSV, and errors name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.errors import BadInput
from tarazu.parts.forwarding import curve_csv
from tarazu.parts.forwarding.curve import curve

ROWS = "application,resources,bytes_per_s\n"


def test_repeated_rows_are_repetitions(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("# measured in May\n" + ROWS + "ior,4,3e9\nior,1,1e9\n\nhacc,1,5e8\nior,4,2e9\n")
    read = curve_csv.read(path)
    assert read == {"ior": curve([(1, 1e9), (4, 2e9), (4, 3e9)]), "hacc": curve([(1, 5e8)])}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"c\.csv:1: expected the columns application,resources,bytes_per_s, found ''"),
        (ROWS, r"c\.csv: expected rows of application,resources,bytes_per_s, found 'none'"),
        (ROWS + ",1,1e9\n", r"c\.csv:2: application: expected text that is not empty, found ''"),
        (
            ROWS + "ior,0,1e9\n",
            r"c\.csv:2: resources: expected a whole number, 1 to 1000000, found '0'",
        ),
        (
            ROWS + "ior,1,1e9\nior,2,nan\n",
            r"c\.csv:3: bytes_per_s: expected a number, 0\.001 to 1e\+18, found 'nan'",
        ),
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
