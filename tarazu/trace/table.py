"""Files of a run as CSV (the paper's readable form of a trace) and back."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from tarazu.errors import TraceError
from tarazu.trace.records import FOUND, OUTCOMES, FileRecord, fold_ranks, unfold_ranks

COLUMNS = (
    "key",
    "precise",
    "loose",
    "rank",
    "creators",
    "nth_precise",
    "nth_loose",
    "at_s",
    "size_bytes",
    "written_bytes",
    "writers",
    "contiguous",
    "counted",
    "closed",
    "existed",
    "outcome",
    "found",
    "errno",
    "row_id",
    "generation",
    "layout",
)
"""Ranks are folded (`0-3,7`), rank −1 is any rank, flags are 0 or 1, the layout is hexadecimal."""


def to_csv(files: Iterable[FileRecord]) -> str:
    """Header line, then one row per file."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    quoting = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for file in files:
        # The writer quotes a line feed in a name, but not a lone carriage return.
        odd = "\r" in file.key or "\r" in file.precise or "\r" in file.loose
        (quoting if odd else writer).writerow(_row(file))
    return out.getvalue()


def from_csv(text: str, where: str = "CSV", first_line: int = 1) -> tuple[FileRecord, ...]:
    """The inverse of `to_csv`. Raises TraceError naming `where:line`, counted from `first_line`."""
    return tuple(read_rows(io.StringIO(text, newline=""), where, first_line))


def read_rows(stream: TextIO, where: str, first_line: int = 1) -> Iterator[FileRecord]:
    """Rows of a stream opened with `newline=""`, header line first."""
    reader = csv.reader(stream, strict=True)

    def place() -> str:
        return f"{where}:{first_line + max(reader.line_num, 1) - 1}"

    try:
        header = next(reader, None)
        if header is None or tuple(header) != COLUMNS:
            raise TraceError(place(), f"the columns {','.join(COLUMNS)}", ",".join(header or ()))
        for row in reader:
            if len(row) != len(COLUMNS):
                raise TraceError(place(), f"{len(COLUMNS)} columns", len(row))
            try:
                yield _file(row)
            except ValueError as error:
                raise TraceError(place(), "a file of a run", str(error)) from None
    except csv.Error as error:
        raise TraceError(place(), "CSV", str(error)) from None


def _row(f: FileRecord) -> tuple[object, ...]:
    return (
        f.key,
        f.precise,
        f.loose,
        f.rank,
        fold_ranks(f.creators),
        f.nth_precise,
        f.nth_loose,
        repr(f.at_s),
        f.size_bytes,
        f.written_bytes,
        f.writers,
        int(f.contiguous),
        int(f.counted),
        int(f.closed),
        int(f.existed),
        f.outcome,
        f.found,
        f.errno,
        f.row_id,
        f.generation,
        f.layout.hex(),
    )


def _file(row: Sequence[str]) -> FileRecord:
    """Raises ValueError saying what is wrong with the row."""
    if not row[0].startswith("/"):
        raise ValueError(f"key {row[0]!r} does not start with /")
    at_s = float(row[7])
    if not 0 <= at_s < float("inf"):
        raise ValueError(f"at_s {row[7]!r} is no time")
    return FileRecord(
        key=row[0],
        precise=row[1],
        loose=row[2],
        rank=_integer(row[3], lowest=-1),
        creators=unfold_ranks(row[4]),
        nth_precise=_integer(row[5]),
        nth_loose=_integer(row[6]),
        at_s=at_s,
        size_bytes=_integer(row[8]),
        written_bytes=_integer(row[9]),
        writers=_integer(row[10]),
        contiguous=_flag(row[11]),
        counted=_flag(row[12]),
        closed=_flag(row[13]),
        existed=_flag(row[14]),
        outcome=_one_of(row[15], OUTCOMES),
        found=_one_of(row[16], FOUND),
        errno=_integer(row[17]),
        row_id=_integer(row[18]),
        generation=_integer(row[19]),
        layout=bytes.fromhex(row[20]),
    )


def _integer(text: str, lowest: int = 0) -> int:
    value = int(text)
    if value < lowest:
        raise ValueError(f"{value} is below {lowest}")
    return value


def _flag(text: str) -> bool:
    return _one_of(text, ("0", "1")) == "1"


def _one_of(text: str, allowed: Sequence[str]) -> str:
    if text not in allowed:
        raise ValueError(f"{text!r} is none of {', '.join(allowed)}")
    return text
