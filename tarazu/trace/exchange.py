"""Histories in formats that are read elsewhere: CSV, JSON, Parquet (`docs/formats.md`, "Exported history")."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from tarazu.errors import TarazuError, TraceError
from tarazu.trace.flat import (
    FILE_COLUMNS,
    RUN_COLUMNS,
    Kept,
    file_cells,
    rows,
    run_cells,
    run_of,
    runs,
    with_files,
)
from tarazu.trace.table import csv_writer

FORMATS = ("csv", "parquet", "json")
RUNS, FILES = "runs", "files"
"""Base names of the two tables in a directory."""
_OF_FILES = {"run_id": "string", **FILE_COLUMNS}
_BATCH = 50_000
"""Rows of a row group."""
_LONGEST_CELL = 1 << 24

Row = Mapping[str, Any]


def write_text(kept: Iterable[Kept], format: str, out: TextIO) -> None:
    """All runs to one stream opened with `newline=""`: tidy CSV, or JSON."""
    if format == "csv":
        _write_csv((row for one in kept for row in rows(one)), {**RUN_COLUMNS, **FILE_COLUMNS}, out)
    else:
        _write_json(kept, out)


def write_file(kept: Iterable[Kept], format: str, path: Path) -> None:
    """One file, whole or not at all. Raises TarazuError where it cannot be written."""
    with _whole(path) as part:
        if format == "parquet":
            _write_parquet((row for one in kept for row in rows(one)), {**RUN_COLUMNS, **FILE_COLUMNS}, part)
        else:
            with open(part, "w", encoding="utf-8", newline="") as out:
                write_text(kept, format, out)


def write_tables(kept: Iterable[Kept], format: str, directory: Path) -> None:
    """Two tables in a directory, `runs` and `files`, which `run_id` joins; JSON is one file of runs."""
    if format == "json":
        write_file(kept, format, directory / f"{RUNS}.json")
        return
    write: Callable[[Iterable[Row], dict[str, str], Path], None]
    write = _write_parquet if format == "parquet" else _write_csv_file
    of_runs: list[Row] = []

    def files() -> Iterator[Row]:
        for one in kept:
            of_runs.append(run_cells(one))
            yield from ({"run_id": one.run_id, **file_cells(file)} for file in one.run.files)

    with _whole(directory / f"{FILES}.{format}") as part, _whole(directory / f"{RUNS}.{format}") as beside:
        write(files(), _OF_FILES, part)
        write(of_runs, RUN_COLUMNS, beside)


def read(path: Path) -> Iterator[Kept]:
    """What any of these has written: a file, or a directory of two tables. Raises TraceError."""
    where = os.fspath(path)
    with _readable(where):
        if path.is_dir():
            yield from _read_tables(path)
        elif path.suffix == ".json":
            yield from _read_json(path)
        else:
            seen = set[str]()
            for kept in runs(_read_rows(path), where):
                if kept.run_id in seen:
                    raise TraceError(where, "the rows of each run one after another", kept.run_id)
                seen.add(kept.run_id)
                yield kept


def is_exported(path: Path) -> bool:
    """By its name: a table of a history, or a directory of two."""
    if path.is_dir():
        return any((path / f"{RUNS}.{kind}").is_file() for kind in FORMATS)
    return path.suffix[1:] in FORMATS


def _read_tables(directory: Path) -> Iterator[Kept]:
    kind = next((k for k in FORMATS if (directory / f"{RUNS}.{k}").is_file()), "csv")
    if kind == "json":
        yield from _read_json(directory / f"{RUNS}.json")
        return
    of_runs, of_files = directory / f"{RUNS}.{kind}", directory / f"{FILES}.{kind}"
    bare: dict[str, Any] = {}
    for number, cells in enumerate(_read_rows(of_runs), 1):
        bare[str(cells.get("run_id"))] = run_of(cells, f"{of_runs}, row {number}")
    lines: dict[str, list[tuple[int, Row]]] = {run_id: [] for run_id in bare}
    for number, cells in enumerate(_read_rows(of_files), 1):
        run_id = str(cells.get("run_id"))
        if run_id not in lines:
            raise TraceError(f"{of_files}, row {number}", f"a run_id of {of_runs.name}", run_id)
        lines[run_id].append((number, cells))
    for run_id, run in bare.items():
        yield Kept(run_id, with_files(run, lines.pop(run_id), str(of_files)))


def _read_rows(path: Path) -> Iterator[Row]:
    return _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)


def _write_csv(table: Iterable[Row], columns: Mapping[str, str], out: TextIO) -> None:
    write = csv_writer(out)
    write(list(columns))
    for row in table:
        write([_csv_cell(row[name]) for name in columns])


def _csv_cell(value: Any) -> object:
    if isinstance(value, float):
        return repr(value)
    return "" if value is None else int(value) if isinstance(value, bool) else value


def _write_csv_file(table: Iterable[Row], columns: Mapping[str, str], path: Path) -> None:
    with open(path, "w", encoding="utf-8", newline="") as out:
        _write_csv(table, columns, out)


def _read_csv(path: Path) -> Iterator[Row]:
    usual = csv.field_size_limit(_LONGEST_CELL)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file, strict=True):
                if None in row or None in row.values():
                    raise TraceError(
                        str(path), "as many cells in each row as there are columns", list(row.values())[:3]
                    )
                yield row
    finally:
        csv.field_size_limit(usual)


def _write_json(kept: Iterable[Kept], out: TextIO) -> None:
    """One document, one run a line."""
    before = "[\n"
    for one in kept:
        files = [file_cells(file) for file in one.run.files]
        out.write(
            before + json.dumps({**run_cells(one), "files": files}, ensure_ascii=False, allow_nan=False)
        )
        before = ",\n"
    out.write("[]\n" if before == "[\n" else "\n]\n")


def _read_json(path: Path) -> Iterator[Kept]:
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if not isinstance(document, list):
        raise TraceError(str(path), "a list of runs", type(document).__name__)
    for number, cells in enumerate(document, 1):
        where = f"{path}, run {number}"
        files = cells.get("files") if isinstance(cells, dict) else None
        if not isinstance(files, list) or not all(isinstance(row, dict) for row in files):
            raise TraceError(where, "an object with a list `files` of objects", str(cells)[:60])
        yield Kept(
            str(cells.get("run_id", "")), with_files(run_of(cells, where), list(enumerate(files, 1)), where)
        )


def _write_parquet(table: Iterable[Row], columns: Mapping[str, str], path: Path) -> None:
    arrow, parquet = _arrow()
    kinds = {"string": arrow.string(), "bool": arrow.bool_(), "float64": arrow.float64()}
    kinds |= {"int64": arrow.int64(), "uint64": arrow.uint64(), "uint32": arrow.uint32()}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        batch: list[Row] = []
        for row in table:
            batch.append(row)
            if len(batch) == _BATCH:
                writer.write_table(arrow.Table.from_pylist(batch, schema))
                batch = []
        writer.write_table(arrow.Table.from_pylist(batch, schema))


def _read_parquet(path: Path) -> Iterator[Row]:
    arrow, parquet = _arrow()
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH):
                yield from batch.to_pylist()
    except arrow.ArrowException as error:
        raise TraceError(str(path), "a Parquet file", str(error)) from None


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise TarazuError(f"Parquet: expected pyarrow to be installed (tarazu[parquet]): {error}") from None
    return pyarrow, parquet


@contextlib.contextmanager
def _readable(where: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        raise TraceError(where, "an exported history", str(error)) from None


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; it becomes `path` when all is well, with the rights of any new file."""
    part = Path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as directory:
            part = Path(directory) / path.name
            yield part
            part.replace(path)
    except OSError as error:
        raise TarazuError(f"{path}: expected a place to write to, found {error.strerror or error}") from None
