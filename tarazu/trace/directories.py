"""The directories of a run as CSV in one text, which the header of its file holds (`docs/formats.md`, "Run")."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tarazu import ranges
from tarazu.errors import TraceError
from tarazu.table import Csv, Table, csv_writer, placed
from tarazu.trace.records import DirectoryRecord, PastDirectory
from tarazu.trace.table import LONGEST_NAME, MOST, MOST_UNFOLDED, plain

TABLE = Table(DirectoryRecord, TraceError)
COLUMNS = TABLE.columns
"""Written as a file's columns are (`tarazu.trace.table`)."""
MOST_BYTES = 1 << 20
"""Of the text of one run, as JSON: some 5,000 directories."""
MOST_NTH = 0xFFFFFFFF
_UNSIGNED = tuple(name for name, kind in TABLE.arrow_types.items() if kind == "uint64")


def to_text(directories: Sequence[DirectoryRecord], most_bytes: int = MOST_BYTES) -> tuple[str, int]:
    """Header line and rows, and how many directories were left out: of too many, those with the fewest creates."""
    if not directories:
        return "", 0
    header, *lines = map(_line, (COLUMNS, *(plain(cells(d).values()) for d in directories)))
    left_bytes = most_bytes - len(json.dumps(header))
    kept: list[int] = []
    for at in sorted(range(len(lines)), key=lambda i: -directories[i].creates):
        left_bytes -= len(json.dumps(lines[at]))
        if left_bytes < 0:
            break
        kept.append(at)
    return header + "".join(lines[at] for at in sorted(kept)), len(lines) - len(kept)


def read(text: str, where: str) -> tuple[DirectoryRecord, ...]:
    """The inverse of `to_text`. Raises TraceError naming the column."""
    make = row_reader()
    return tuple(make(row, place) for row, place in _rows(text, where))


def read_past(text: str, where: str) -> tuple[PastDirectory, ...]:
    """What a forecast needs of them; lists of ranks are never unfolded. Raises TraceError."""
    past = []
    for row, place in _rows(text, where):
        spans = _spans(row["creators"], place)
        first = str(spans[0][0]) if spans else ""
        record = TABLE.row({**row, "creators": (first,) if first else ()}, place)
        _check(record, place)
        past.append(
            PastDirectory(
                record.key,
                record.precise,
                record.loose,
                record.rank,
                record.creator,
                sum(last - low + 1 for low, last in spans),
                record.nth_precise,
                record.nth_loose,
                record.at_s,
                record.creates,
                record.existed,
                record.outcome,
                record.errno,
            )
        )
    return tuple(past)


def cells(directory: DirectoryRecord) -> dict[str, Any]:
    """The cells of one directory, as COLUMNS says."""
    return msgspec.structs.asdict(directory) | {"creators": ranges.fold(directory.creators)}


def row_reader() -> Callable[[Mapping[str, Any], str], DirectoryRecord]:
    """Makes directories of the cells of one run's rows, and where they stand. Raises TraceError naming the column."""
    creators: dict[str, tuple[int, ...]] = {"": ()}
    unfolded = 0

    def make(row: Mapping[str, Any], where: str) -> DirectoryRecord:
        nonlocal unfolded
        text = str(row["creators"] or "")
        if text not in creators:
            try:
                creators[text] = ranges.unfold(text, MOST_UNFOLDED - unfolded)
            except ValueError as error:
                raise TraceError(placed(where, ["creators"]), "a directory of a run", str(error)) from None
            unfolded += len(creators[text])
        record = TABLE.row({**row, "creators": creators[text]}, where)
        _check(record, where)
        return record

    return make


def _rows(text: str, where: str) -> Iterator[tuple[dict[str, str], str]]:
    """Cells by their column, and where they stand."""
    if not text:
        return
    rows = Csv(io.StringIO(text, newline=""), f"{where}: directories", COLUMNS, error=TraceError)
    for row in rows:
        yield dict(zip(COLUMNS, row, strict=True)), rows.place


def _spans(text: str, where: str) -> list[tuple[int, int]]:
    try:
        return ranges.spans(text)
    except ValueError as error:
        raise TraceError(placed(where, ["creators"]), "a directory of a run", str(error)) from None


def _check(record: DirectoryRecord, where: str) -> None:
    """What the types do not say."""
    for name in _UNSIGNED:
        most = MOST_NTH if name.startswith("nth") else MOST
        if getattr(record, name) > most:
            raise TraceError(placed(where, [name]), f"a whole number, 0 to {most}", getattr(record, name))
    longest = max(len(record.key), len(record.precise), len(record.loose))
    if longest > LONGEST_NAME:
        raise TraceError(where, f"names of at most {LONGEST_NAME} characters", longest)


def _line(row: Sequence[object]) -> str:
    out = io.StringIO(newline="")
    csv_writer(out)(row)
    return out.getvalue()
