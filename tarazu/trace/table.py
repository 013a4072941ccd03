"""Files of a run as CSV (the paper's readable form of a trace) and back."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import msgspec

from tarazu import ranges
from tarazu.errors import TraceError
from tarazu.table import Csv, Table, placed, write_csv
from tarazu.trace.records import FileRecord

TABLE = Table(FileRecord, TraceError)
COLUMNS = TABLE.columns
"""Ranks are folded (`0-3,7`), rank −1 is any rank, flags are 0 or 1, the layout is hexadecimal.

In a run file the layout is a number in the header's list, from 1; empty for none.
"""

MOST_UNFOLDED = 1 << 21
"""Ranks that the creators of one run's files may name in all; equal lists count once."""
LONGEST_NAME = 4096
"""PATH_MAX."""
MOST = 2**64 - 1
_UNSIGNED = tuple(name for name, kind in TABLE.arrow_types.items() if kind == "uint64")


def to_csv(files: Iterable[FileRecord], layout_text: Callable[[bytes], str] = bytes.hex) -> str:
    """Header line, then one row per file."""
    out = io.StringIO(newline="")
    write_csv(out, COLUMNS, (plain(cells(file, layout_text).values()) for file in files))
    return out.getvalue()


def cells(file: FileRecord, layout_text: Callable[[bytes], str] = bytes.hex) -> dict[str, Any]:
    """The cells of one file, as COLUMNS says."""
    row = msgspec.structs.asdict(file)
    row["creators"] = ranges.fold(file.creators)
    row["layout"] = layout_text(file.layout)
    return row


def plain(row: Iterable[object]) -> list[object]:
    """Cells of a row with flags as 0 and 1."""
    return [int(cell) if isinstance(cell, bool) else cell for cell in row]


def read_rows(
    stream: TextIO, where: str, first_line: int = 1, layouts: Sequence[bytes] | None = None
) -> Iterator[FileRecord]:
    """The inverse of `to_csv`, of a stream opened with `newline=""`. `layouts`: the list that the rows number.

    Raises TraceError naming `where:line`, counted from `first_line`, and the column.
    """
    rows = Csv(stream, where, COLUMNS, error=TraceError, first_line=first_line)
    file = row_reader(layouts)
    for row in rows:
        yield file(dict(zip(COLUMNS, row, strict=True)), rows.place)


def row_reader(
    layouts: Sequence[bytes] | None = None,
) -> Callable[[Mapping[str, Any], str], FileRecord]:
    """Makes files of the cells of one run's rows, and where they stand. Raises TraceError naming the column."""
    creators: dict[str, tuple[int, ...]] = {"": ()}
    names: dict[str, str] = {}
    unfolded = 0

    def ranks(text: str) -> tuple[int, ...]:
        nonlocal unfolded
        if text not in creators:
            creators[text] = ranges.unfold(text, MOST_UNFOLDED - unfolded)
            unfolded += len(creators[text])
        return creators[text]

    def layout(text: str) -> bytes:
        if layouts is None:
            return bytes.fromhex(text)
        number = int(text or 0) if len(text) <= 24 else -1
        if not 0 <= number <= len(layouts):
            raise ValueError(f"{text[:24]} is none of {len(layouts)} layouts")
        return layouts[number - 1] if number else b""

    def file(cells: Mapping[str, Any], where: str) -> FileRecord:
        row = dict(cells)
        for name, decode in (("creators", ranks), ("layout", layout)):
            try:
                row[name] = decode(row[name])
            except ValueError as error:
                raise TraceError(placed(where, [name]), "a file of a run", str(error)) from None
        for name in ("precise", "loose"):
            row[name] = names.setdefault(row[name], row[name])
        record = TABLE.row(row, where)
        for name in _UNSIGNED:
            if getattr(record, name) > MOST:
                raise TraceError(placed(where, [name]), f"a whole number, 0 to {MOST}", row[name])
        return record

    return file
