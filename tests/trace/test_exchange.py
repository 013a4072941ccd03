"""Exported histories: whatever a run holds comes back, in each format; and others can read it."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

import msgspec
import pandas
import pytest
from hypothesis import given, settings

from tarazu.errors import TarazuError, TraceError
from tarazu.names import from_text
from tarazu.trace import exchange
from tarazu.trace.exchange import read, write_file, write_tables
from tarazu.trace.flat import FILE_COLUMNS, RUN_COLUMNS, NamedRun
from tarazu.trace.records import RunRecord
from tarazu.trace.table import COLUMNS
from tests.trace.test_history import RUNS, sample

ODD = '/a\udcff\udcfe/b,"c"\nd\re ü {rank}\u2028.0'


@settings(deadline=None, max_examples=40, derandomize=True)
@given(RUNS, RUNS)
def test_any_run_comes_back_from_any_format(one: RunRecord, other: RunRecord) -> None:
    kept = [
        NamedRun("20261120T090823.900772-d1b8f4c52d940704", one),
        NamedRun("20010909T014640.000000-00000001", other),
    ]
    with tempfile.TemporaryDirectory() as directory:
        for format in exchange.FORMATS:
            path = Path(directory, f"all.{format}")
            write_file(kept, format, path)
            assert list(read(path)) == kept, format
            write_tables(kept, format, Path(directory, format))
            assert list(read(Path(directory, format))) == kept, format


def test_every_column_has_a_type_and_is_documented() -> None:
    assert tuple(FILE_COLUMNS) == COLUMNS
    text = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    section = text[text.index("## Exported history") :].split("\n## ")[0]
    missing = [name for name in {**RUN_COLUMNS, **FILE_COLUMNS} if f"`{name}`" not in section]
    assert not missing


def odd_run() -> RunRecord:
    run = sample(application='c,"x"\n')
    odd = msgspec.structs.replace(
        run.files[0], key=ODD, precise=ODD, loose=ODD, creators=(0, 1, 2, 9), rank=-1
    )
    return msgspec.structs.replace(run, files=(*run.files, odd))


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_pandas_reads_one_row_for_each_file_with_the_runs_columns(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"x.{format}"
    kept = [NamedRun("a-0001", odd_run()), NamedRun("b-0002", sample(2e9))]
    write_file(kept, format, path)
    frame = pandas.read_csv(path) if format == "csv" else pandas.read_parquet(path)
    assert list(frame.columns) == [*RUN_COLUMNS, *FILE_COLUMNS] and len(frame) == 3
    assert frame["size_bytes"].sum() == 3 * 4096 and frame["start_s"].tolist() == [1e9, 1e9, 2e9]
    assert from_text(frame["key"][1]) == ODD and frame["creators"][1] == "0-2,9"
    assert frame["application"].tolist() == ['c,"x"\n'] * 2 + ["ior"]
    assert frame.groupby("run_id")["size_bytes"].sum().to_dict() == {"a-0001": 8192, "b-0002": 4096}


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_tables_join_by_run_id(tmp_path: Path, format: str) -> None:
    write_tables([NamedRun("a-0001", odd_run()), NamedRun("b-0002", sample(2e9))], format, tmp_path)
    load = pandas.read_csv if format == "csv" else pandas.read_parquet
    runs, files = load(tmp_path / f"runs.{format}"), load(tmp_path / f"files.{format}")
    joined = files.merge(runs, on="run_id")
    assert len(runs) == 2 and len(joined) == len(files) == 3
    assert joined["application"].tolist() == ['c,"x"\n'] * 2 + ["ior"]


def test_json_is_one_document_with_a_run_a_line(tmp_path: Path) -> None:
    write_file([NamedRun("a-0001", odd_run())], "json", tmp_path / "x.json")
    text = (tmp_path / "x.json").read_text()
    (run,) = json.loads(text)
    assert len(text.splitlines()) >= 3 and [f["size_bytes"] for f in run["files"]] == [4096, 4096]
    write_file([], "json", tmp_path / "none.json")
    assert list(read(tmp_path / "none.json")) == []


def as_text(**changes: object) -> str:
    out = io.StringIO(newline="")
    exchange.write_text([NamedRun("a-0001", sample())], "csv", out)
    (row,) = csv.DictReader(io.StringIO(out.getvalue(), newline=""))
    again = io.StringIO(newline="")
    writer = csv.DictWriter(again, row | changes)
    writer.writeheader()
    writer.writerow(row | changes)
    return again.getvalue()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (as_text(size_bytes="-1"), r"x\.csv, row 1: size_bytes: expected a whole number, 0 to"),
        (as_text(ranks="many"), r"x\.csv, row 1: expected a run, found .*int"),
        (as_text(start_s="1e300"), r"x\.csv, row 1: expected a run, found .*times"),
        (as_text(mode="wild"), r"x\.csv, row 1: expected a run"),
        (as_text(ranks="99999999999"), r"x\.csv, row 1: expected a run"),
        (as_text(creators="0-99999999999"), r"x\.csv, row 1: creators: expected a file of a run"),
        (as_text().replace("outcome", "result"), r"x\.csv, row 1: expected the column 'outcome'"),
        (as_text().replace("application", "program"), r"x\.csv, row 1: expected the columns"),
        (as_text() + "1,2\n", r"x\.csv:3: expected 46 columns, found '1,2'"),
        (
            as_text()
            + as_text(run_id="b-1").splitlines()[1]
            + "\n"
            + as_text(size_bytes="5").splitlines()[1],
            "one after another",
        ),
        ("\0\0", "expected"),
    ],
)
def test_a_changed_table_is_refused_in_one_line(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text, newline="")
    with pytest.raises(TraceError, match=expected) as caught:
        assert list(read(path)) == []
        raise TraceError("x", "expected nothing")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.json", "x.parquet", "x.csv"])
@pytest.mark.parametrize("content", [b"", b"[1]", b"{}", b'[{"files": [1]}]', b"PAR1nonsense", b"\xff\xfe\n"])
def test_any_nonsense_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    try:
        assert list(read(path)) == []
    except TraceError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    write_file([NamedRun("a-0001", sample())], "csv", path)
    before = path.read_bytes()

    def broken() -> object:
        yield NamedRun("a-0001", sample())
        raise TraceError("b.run", "a run")

    with pytest.raises(TraceError):
        write_file(broken(), "csv", path)  # type: ignore[arg-type]
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["x.csv"]
    with pytest.raises(TarazuError, match="a place to write to"):
        write_file([], "csv", path / "below" / "y.csv")
