"""Histories in formats that are read elsewhere: CSV, JSON, Parquet (`docs/formats.md`, "Exported history")."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from tarazu.errors import TarazuError, TraceError
from tarazu.table import Csv, read_parquet, write_csv, write_parquet
from tarazu.trace.flat import (
    FILE_COLUMNS,
    RUN_COLUMNS,
    NamedRun,
    file_cells,
    once,
    rows,
    run_cells,
    run_of,
    runs,
    with_files,
)
from tarazu.trace.runfile import encode_run
from tarazu.trace.table import plain

FORMATS = ("csv", "parquet", "json")
RUNS, FILES = "runs", "files"
"""Base names of the tables in a directory."""
_OF_FILES = {"run_id": "string", **FILE_COLUMNS}
_LONGEST_CELL = 1 << 24

Row = Mapping[str, Any]


def write_text(kept: Iterable[NamedRun], format: str, out: TextIO) -> None:
    """All runs to one stream opened with `newline=""`: tidy CSV, or JSON."""
    if format == "csv":
        _write_csv((row for one in kept for row in rows(one)), {**RUN_COLUMNS, **FILE_COLUMNS}, out)
    else:
        _write_json(kept, out)


def write_file(kept: Iterable[NamedRun], format: str, path: Path) -> None:
    """One file, whole or not at all. Raises TarazuError where it cannot be written."""
    with _whole(path) as part:
        if format == "parquet":
            write_parquet(part, (row for one in kept for row in rows(one)), {**RUN_COLUMNS, **FILE_COLUMNS})
        else:
            with open(part, "w", encoding="utf-8", newline="") as out:
                write_text(kept, format, out)


def write_tables(kept: Iterable[NamedRun], format: str, directory: Path) -> None:
    """Tables in a directory, `runs` and `files`, which `run_id` joins; JSON is one file of runs."""
    if format == "json":
        write_file(kept, format, directory / f"{RUNS}.json")
        return
    write = write_parquet if format == "parquet" else _write_csv_file
    of_runs: list[Row] = []

    def files() -> Iterator[Row]:
        for one in kept:
            of_runs.append(run_cells(one))
            yield from ({"run_id": one.run_id, **file_cells(file)} for file in one.run.files)

    with (
        _whole(directory / f"{FILES}.{format}") as part,
        _whole(directory / f"{RUNS}.{format}") as beside,
    ):
        write(part, files(), _OF_FILES)
        write(beside, of_runs, RUN_COLUMNS)


def read(path: Path) -> Iterator[NamedRun]:
    """What any of these has written: a file, or a directory of tables. Raises TraceError."""
    where = os.fspath(path)
    with _readable(where):
        if path.is_dir():
            yield from _read_tables(path)
        elif path.suffix == ".json":
            yield from _read_json(path)
        else:
            seen: dict[str, bytes] = {}
            for kept in runs(_read_rows(path), where):
                content = hashlib.sha256(encode_run(kept.run)).digest()
                if seen.setdefault(kept.run_id, content) != content:
                    raise TraceError(where, "the rows of each run one after another", kept.run_id)
                yield kept


def is_exported(path: Path) -> bool:
    """By its name: a table of a history, or a directory of them."""
    if path.is_dir():
        return any((path / f"{RUNS}.{kind}").is_file() for kind in FORMATS)
    return path.suffix[1:] in FORMATS


def _read_tables(directory: Path) -> Iterator[NamedRun]:
    kind = next((k for k in FORMATS if (directory / f"{RUNS}.{k}").is_file()), "csv")
    if kind == "json":
        yield from _read_json(directory / f"{RUNS}.json")
        return
    of_runs = directory / f"{RUNS}.{kind}"
    bare: dict[str, Any] = {}
    for number, cells in enumerate(_read_rows(of_runs), 1):
        bare[str(cells.get("run_id"))] = run_of(cells, f"{of_runs}, row {number}")
    of_files = directory / f"{FILES}.{kind}"
    files = _by_run(of_files, bare, of_runs.name)
    for run_id, run in bare.items():
        yield NamedRun(run_id, with_files(run, once(files.pop(run_id, ())), str(of_files)))


def _by_run(path: Path, run_ids: Iterable[str], of_runs: str) -> dict[str, list[tuple[int, Row]]]:
    lines: dict[str, list[tuple[int, Row]]] = {run_id: [] for run_id in run_ids}
    for number, cells in enumerate(_read_rows(path), 1):
        run_id = str(cells.get("run_id"))
        if run_id not in lines:
            raise TraceError(f"{path}, row {number}", f"a run_id of {of_runs}", run_id)
        lines[run_id].append((number, cells))
    return lines


def _read_rows(path: Path) -> Iterator[Row]:
    return (
        read_parquet(path, "an exported history", TraceError)
        if path.suffix == ".parquet"
        else _read_csv(path)
    )


def _write_csv(table: Iterable[Row], columns: Mapping[str, str], out: TextIO) -> None:
    write_csv(out, columns, (plain(row[name] for name in columns) for row in table))


def _write_csv_file(path: Path, table: Iterable[Row], columns: Mapping[str, str]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as out:
        _write_csv(table, columns, out)


def _read_csv(path: Path) -> Iterator[Row]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        table = Csv(file, str(path), error=TraceError, any_order=True, longest_cell=_LONGEST_CELL)
        for row in table:
            if list(row) != list(table.columns):  # one export behind another
                yield dict(zip(table.columns, row, strict=True))


def _write_json(kept: Iterable[NamedRun], out: TextIO) -> None:
    """One document, one run a line."""
    before = "[\n"
    for one in kept:
        run = {**run_cells(one), FILES: [file_cells(file) for file in one.run.files]}
        out.write(before + json.dumps(run, ensure_ascii=False, allow_nan=False))
        before = ",\n"
    out.write("[]\n" if before == "[\n" else "\n]\n")


def _read_json(path: Path) -> Iterator[NamedRun]:
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if not isinstance(document, list):
        raise TraceError(str(path), "a list of runs", type(document).__name__)
    for number, cells in enumerate(document, 1):
        where = f"{path}, run {number}"
        files = cells.get(FILES) if isinstance(cells, dict) else None
        if not isinstance(files, list) or not all(isinstance(row, dict) for row in files):
            raise TraceError(where, "an object with a list `files` of objects", str(cells)[:60])
        run = with_files(run_of(cells, where), list(enumerate(files, 1)), where)
        yield NamedRun(str(cells.get("run_id", "")), run)


@contextlib.contextmanager
def _readable(where: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
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
