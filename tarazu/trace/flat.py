"""Runs as flat rows that can be read elsewhere (`docs/formats.md`, "Exported history"), and back.

One row for each file of a run, with the run's own columns in front; a run without files is one row whose file columns
are empty. Names are text in any encoding (`tarazu.names`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from tarazu.errors import TraceError
from tarazu.model import JobStep
from tarazu.names import from_text, to_text
from tarazu.trace import table
from tarazu.trace.records import FileRecord, RunRecord, why_absurd
from tarazu.trace.runfile import encode_run
from tarazu.trace.table import TABLE, row_reader

LATEST_S = 253_402_300_799.0
"""The end of the year 9999."""

RUN_COLUMNS: dict[str, str] = {
    "run_id": "string",
    "fs_name": "string",
    "application": "string",
    "uid": "uint32",
    "job_id": "string",
    "array_job": "string",
    "array_index": "int64",
    "ranks": "int64",
    "nodes": "int64",
    "numbers": "string",
    "asked_s": "float64",
    "start_s": "float64",
    "duration_s": "float64",
    "mode": "string",
    "ranks_seen": "int64",
    "ranks_expected": "int64",
    "processes": "int64",
    "unended": "int64",
    "dropped_records": "int64",
    "lost_bytes": "int64",
    "partial": "bool",
    "passed_over": "int64",
    "exit_status": "int64",
    "source": "string",
}
"""Column of a run → its type, as Arrow names it."""
FILE_COLUMNS = TABLE.arrow_types
"""Column of a file → its type; in the order of `table.COLUMNS`."""

_OF_STEP = ("fs_name", "application", "uid", "job_id", "array_job", "array_index", "ranks", "nodes")
_TEXTS = ("fs_name", "application", "job_id", "array_job", "source")
_NAMES = ("key", "precise", "loose")
_ID = re.compile(r"[0-9A-Za-z.]{1,64}-([0-9A-Za-z][0-9A-Za-z_+.%~-]{3,127})")
"""Start and id, which has a process's number or a host's name in it where `tarazu run` made it."""


class NamedRun(NamedTuple):
    """A run and the name of its file in a history, without the suffix."""

    run_id: str
    run: RunRecord

    @property
    def id(self) -> str:
        """The part of `run_id` that is not the time; of a run that has no such name a digest of what it holds."""
        match = _ID.fullmatch(self.run_id)
        return match[1] if match else hashlib.sha256(encode_run(self.run)).hexdigest()[:16]


def run_cells(kept: NamedRun) -> dict[str, Any]:
    """A run's own columns; None for no array index."""
    run, step = kept.run, kept.run.step
    own = {name: getattr(run, name) for name in RUN_COLUMNS if name in RunRecord.__struct_fields__}
    cells = {
        "run_id": kept.run_id,
        **{name: getattr(step, name) for name in _OF_STEP},
        "numbers": " ".join(map(repr, step.numbers)),
        "asked_s": step.start_s,
        **own,
    }
    return {name: to_text(cells[name]) if name in _TEXTS else cells[name] for name in RUN_COLUMNS}


def file_cells(file: FileRecord) -> dict[str, Any]:
    """A file's columns."""
    return table.cells(file) | {name: to_text(getattr(file, name)) for name in _NAMES}


def rows(kept: NamedRun) -> Iterator[dict[str, Any]]:
    """The tidy rows of a run."""
    of_run = run_cells(kept)
    if not kept.run.files:
        yield {**of_run, **dict.fromkeys(FILE_COLUMNS)}
    for file in kept.run.files:
        yield {**of_run, **file_cells(file)}


def runs(of: Iterable[Mapping[str, Any]], where: str) -> Iterator[NamedRun]:
    """The inverse of `rows`: runs whose rows follow one another. Cells may be text, as of a CSV.

    Raises TraceError naming `where`, the row and what is wrong with it.
    """
    numbered = enumerate(of, 1)
    for _, group in groupby(numbered, lambda item: item[1].get("run_id")):
        lines = list(group)
        number, first = lines[0]
        run = run_of(first, f"{where}, row {number}")
        of_files = () if _empty(first.get("key")) else once(lines)
        yield NamedRun(str(first.get("run_id") or ""), with_files(run, of_files, where))


def run_of(cells: Mapping[str, Any], where: str) -> RunRecord:
    """A run of its own columns, without its files. Raises TraceError."""
    missing = [name for name in RUN_COLUMNS if name not in cells]
    if missing:
        raise TraceError(where, f"the columns of an exported run ({', '.join(missing)} too)", list(cells)[:8])
    values = {name: cells[name] for name in RUN_COLUMNS if not _empty(cells[name]) or name in _TEXTS}
    values |= {name: from_text(str(values[name] or "")) for name in _TEXTS}
    try:
        numbers = tuple(float(word) for word in str(values.get("numbers", "")).split())
        step = {name: values[name] for name in _OF_STEP if name in values}
        step |= {"numbers": numbers, "start_s": values.get("asked_s", 0.0)}
        own = {name: values[name] for name in RunRecord.__struct_fields__ if name in values}
        run = msgspec.convert(
            {**own, "step": msgspec.convert(step, JobStep, strict=False), "files": ()},
            RunRecord,
            strict=False,
            from_attributes=True,
        )
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        raise TraceError(where, "a run", str(error)) from None
    absurd = why_absurd(run.step)
    times = (run.start_s, run.duration_s, run.step.start_s)
    if not all(0 <= s <= LATEST_S for s in times):
        absurd = f"expected times from 0 to {LATEST_S:.0f}, found {times}"
    if absurd:
        raise TraceError(where, "a run", absurd)
    return run


def with_files(run: RunRecord, lines: Sequence[tuple[int, Mapping[str, Any]]], where: str) -> RunRecord:
    """The run with the files of (number, row). Raises TraceError."""
    read, files = row_reader(), []
    for number, cells in lines:
        place = f"{where}, row {number}"
        try:
            row = {name: _cell(name, kind, cells[name]) for name, kind in FILE_COLUMNS.items()}
        except KeyError as error:
            raise TraceError(place, f"the column {error} of an exported run", list(cells)[:8]) from None
        files.append(read(row, place))
    return msgspec.structs.replace(run, files=tuple(files))


def once(lines: Sequence[tuple[int, Mapping[str, Any]]]) -> Sequence[tuple[int, Mapping[str, Any]]]:
    """The rows of a run that is there several times, as where exports were put together, as those of one."""
    again = next((at for at, line in enumerate(lines) if at and line[1] == lines[0][1]), len(lines))
    if again == len(lines) or len(lines) % again:
        return lines
    same = all(line[1] == lines[at % again][1] for at, line in enumerate(lines))
    return lines[:again] if same else lines


def alike(one: RunRecord, other: RunRecord) -> bool:
    """Whether an export says the same of both, but for the user."""
    runs = [run_cells(NamedRun("", run)) | {"uid": 0} for run in (one, other)]
    if runs[0] != runs[1] or len(one.files) != len(other.files):
        return False
    return all(file_cells(a) == file_cells(b) for a, b in zip(one.files, other.files, strict=True))


def _cell(name: str, kind: str, value: Any) -> Any:
    """As a run file has it."""
    if name in _NAMES:
        return from_text(str(value))
    return str(value or "") if kind == "string" else value


def _empty(value: object) -> bool:
    return value is None or value == ""
