"""Files of a run as CSV (the paper's readable form of a trace) and back."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO, TypeVar

from tarazu.errors import TraceError
from tarazu.trace.records import (
    FOUND,
    LARGEST_BYTES,
    LATEST_S,
    MOST_RANKS,
    OUTCOMES,
    FileRecord,
    fold_ranks,
    unfold_ranks,
)

Row = TypeVar("Row")

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
"""Ranks are folded (`0-3,7`), rank −1 is any rank, flags are 0 or 1, the layout is hexadecimal.

In a run file of version 2 the layout is a number in the header's list, from 1; empty for none.
"""

MOST_UNFOLDED = 1 << 21
"""Ranks that the creators of one run's files may name in all; equal lists count once."""
LONGEST_NAME = 4096
"""PATH_MAX."""
MOST = 2**64 - 1


def to_csv(files: Iterable[FileRecord], layout_text: Callable[[bytes], str] = bytes.hex) -> str:
    """Header line, then one row per file."""
    out = io.StringIO(newline="")
    write = csv_writer(out)
    write(COLUMNS)
    for file in files:
        write(to_row(file, layout_text))
    return out.getvalue()


def csv_writer(out: TextIO) -> Callable[[Sequence[object]], object]:
    """Writes one row of CSV that reads back as it was, to a stream opened with `newline=""`."""
    plain = csv.writer(out, lineterminator="\n")
    quoting = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)

    def write(row: Sequence[object]) -> None:
        # The writer quotes a line feed in a name, but not a lone carriage return.
        odd = any("\r" in cell for cell in row if isinstance(cell, str))
        (quoting if odd else plain).writerow(row)

    return write


def read_rows(
    stream: TextIO, where: str, first_line: int = 1, layouts: Sequence[bytes] | None = None
) -> Iterator[FileRecord]:
    """The inverse of `to_csv`, of a stream opened with `newline=""`. `layouts`: the list that the rows number.

    Raises TraceError naming `where:line`, counted from `first_line`.
    """
    return convert_rows(stream, where, row_reader(layouts), first_line)


def row_reader(layouts: Sequence[bytes] | None = None) -> Callable[[Sequence[str]], FileRecord]:
    """Makes files of the rows of one run, which are as COLUMNS says. Raises ValueError."""
    creators: dict[str, tuple[int, ...]] = {"": ()}
    names: dict[str, str] = {}
    unfolded = 0

    def file(row: Sequence[str]) -> FileRecord:
        nonlocal unfolded
        if row[4] not in creators:
            creators[row[4]] = unfold_ranks(row[4], MOST_UNFOLDED - unfolded)
            unfolded += len(creators[row[4]])
        return _file(row, creators[row[4]], layouts, names)

    return file


def convert_rows(
    stream: TextIO, where: str, convert: Callable[[list[str]], Row], first_line: int = 1
) -> Iterator[Row]:
    """`convert` of each row; its ValueError or KeyError becomes a TraceError that names the line."""
    reader = csv.reader(stream, strict=True)
    columns = len(COLUMNS)

    def place() -> str:
        return f"{where}:{first_line + max(reader.line_num, 1) - 1}"

    try:
        header = next(reader, None)
        if header is None or tuple(header) != COLUMNS:
            raise TraceError(place(), f"the columns {','.join(COLUMNS)}", ",".join(header or ()))
        for row in reader:
            if len(row) != columns:
                raise TraceError(place(), f"{columns} columns", len(row))
            yield convert(row)
    except csv.Error as error:
        raise TraceError(place(), "CSV", str(error)) from None
    except (ValueError, KeyError) as error:
        raise TraceError(place(), "a file of a run", str(error)) from None


def to_row(f: FileRecord, layout_text: Callable[[bytes], str] = bytes.hex) -> tuple[object, ...]:
    """The cells of one file, as COLUMNS says."""
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
        layout_text(f.layout),
    )


def _file(
    row: Sequence[str], creators: tuple[int, ...], layouts: Sequence[bytes] | None, names: dict[str, str]
) -> FileRecord:
    """Raises ValueError saying what is wrong with the row."""
    if not row[0].startswith("/"):
        raise ValueError(f"key {row[0]!r} does not start with /")
    at_s = float(row[7])
    if not 0 <= at_s <= LATEST_S:
        raise ValueError(f"at_s {row[7]!r} is no time")
    if layouts is None:
        layout = bytes.fromhex(row[20])
    else:
        layout = layouts[_integer(row[20], 1, len(layouts)) - 1] if row[20] else b""
    return FileRecord(
        key=row[0],
        precise=names.setdefault(row[1], row[1]),
        loose=names.setdefault(row[2], row[2]),
        rank=_integer(row[3], -1, MOST_RANKS),
        creators=creators,
        nth_precise=_integer(row[5]),
        nth_loose=_integer(row[6]),
        at_s=at_s,
        size_bytes=_integer(row[8], 0, LARGEST_BYTES),
        written_bytes=_integer(row[9], 0, LARGEST_BYTES),
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
        layout=layout,
    )


def _integer(text: str, lowest: int = 0, highest: int = MOST) -> int:
    value = int(text) if len(text) <= 24 else highest + 1
    if not lowest <= value <= highest:
        raise ValueError(f"{text[:24]} is not between {lowest} and {highest}")
    return value


def _flag(text: str) -> bool:
    return _one_of(text, ("0", "1")) == "1"


def _one_of(text: str, allowed: Sequence[str]) -> str:
    if text not in allowed:
        raise ValueError(f"{text!r} is none of {', '.join(allowed)}")
    return text
