"""The files of plans and their OSTs in the interaction database: the tables `files` and `extents`.

A column has the name of the field that it holds (of FileName, Forecast, FileRow), but for those in NAMED: from the
fields come the statements, the values and, read back, the structs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tarazu.errors import StoreError
from tarazu.model import FileName, FilePlacement, Forecast, Layout
from tarazu.store.connection import Connection, insert, update
from tarazu.store.rows import CreatedFile, FileRow, NewFile, from_text, to_text

FILE_BYTES = 200
"""What a file's row and its entries in indexes count for, beside its texts."""
EXTENT_BYTES = 24
MOST_REASON_CHARACTERS = 180
NAMED = {"key": "file_key", "volatile": "is_volatile", "rank": "mpi_rank"}
"""Field → column, where SQL has other meanings for the field's name."""
NEW = {
    "request_id": "",
    "request_index": -1,
    "outcome": "",
    "found": "no",
    "actual_key": "",
    "actual_layout": "",
}
"""What the row of a new file holds of what is not known yet."""

_BATCH = 500
"""Values per `IN (…)`."""


def columns(struct: type[msgspec.Struct], *without: str) -> tuple[str, ...]:
    """The columns of a struct's fields, in their order."""
    return tuple(NAMED.get(field, field) for field in struct.__struct_fields__ if field not in without)


_NAME, _FORECAST = columns(FileName), columns(Forecast, "name")
_INSERT = insert("files", "id", "plan_id", *_NAME, *_FORECAST, "layout_id", "left_because", *NEW)
_READ = (*_NAME, *_FORECAST, *columns(FileRow, "forecast", "placement"))
_LAYOUT = "(SELECT layout FROM layouts WHERE layouts.id = layout_id)"
_SELECT = f"SELECT {', '.join(_LAYOUT if column == 'layout' else column for column in _READ)} FROM files"


def add(
    db: Connection, plan_id: int, first_id: int, files: Sequence[NewFile], layouts: Mapping[Layout, int]
) -> int:
    """Rows from `first_id` on for files of a plan, whose layouts are in these rows; about how many bytes they take."""
    total = 0

    def rows() -> Iterator[tuple[Any, ...]]:
        nonlocal total
        for row_id, file in enumerate(files, first_id):
            name = [
                to_text(v) if v.__class__ is str else v for v in msgspec.structs.astuple(file.forecast.name)
            ]
            _, *forecast = msgspec.structs.astuple(file.forecast)
            layout_id = layouts[file.layout] if file.layout else None
            left = file.left_because[:MOST_REASON_CHARACTERS]
            total += FILE_BYTES + 2 * len(name[0]) + len(name[1]) + len(name[2]) + len(left)
            yield (row_id, plan_id, *name, *forecast, layout_id, left, *NEW.values())

    db.many(_INSERT, rows())
    return total


def place(
    db: Connection,
    plan_id: int,
    request_id: str,
    placements: Mapping[int, FilePlacement],
    left: Mapping[int, str],
) -> int:
    """The OSTs of files of a plan (row id → OSTs, in the order of the request), instead of those they may have; and
    why files are left to Lustre. About how many bytes they take. Raises StoreError for a row of another plan.
    """
    known = {row[0] for row in db.query("SELECT id FROM files WHERE plan_id=?", (plan_id,))}
    foreign = next((row_id for row_id in placements if row_id not in known), None)
    if foreign is not None:
        raise StoreError(db.where, f"rows of plan {plan_id}", f"row {foreign}")
    of_request = ((request_id, index, row_id) for index, row_id in enumerate(placements))
    db.many(update("files", "request_id", "request_index"), of_request)
    db.many("DELETE FROM extents WHERE file_id=?", ((row_id,) for row_id in placements))
    total = 0

    def extents() -> Iterator[tuple[int, int, str]]:
        nonlocal total
        for row_id, placement in placements.items():
            for number, osts in enumerate(placement.osts, 1):
                text = " ".join(map(str, osts))
                total += EXTENT_BYTES + len(text)
                yield row_id, number, text

    db.many(insert("extents", "file_id", "extent_id", "ost_list"), extents())
    reasons = ((why[:MOST_REASON_CHARACTERS], row_id, plan_id) for row_id, why in left.items())
    db.many(f"{update('files', 'left_because')} AND plan_id=?", reasons)
    return total


def end(db: Connection, created: Mapping[int, CreatedFile], unseen: Sequence[int]) -> int:
    """What became of files: those that a run created, by row id, and the rows of those it did not. About how many
    bytes that takes.
    """
    total = 0

    def outcomes() -> Iterator[tuple[Any, ...]]:
        nonlocal total
        for row_id, file in created.items():
            size = file.size_bytes if file.closed else None
            key, layout = to_text(file.key), file.layout.hex()
            total += 2 * len(key) + len(layout)
            yield file.outcome, file.found, key, size, layout, row_id
        for row_id in unseen:
            yield "unseen", "no", "", None, "", row_id

    changed = update("files", "outcome", "found", "actual_key", "actual_bytes", "actual_layout")
    db.many(changed, outcomes())
    return total


def read(db: Connection, condition: str, values: Sequence[Any], order: str) -> list[FileRow]:
    """The files for which a condition holds."""
    found = db.query(f"{_SELECT} WHERE {condition} ORDER BY {order}", values)
    rows = [dict(zip(_READ, row, strict=True)) for row in found]
    placements = _placements(db, [row["id"] for row in rows])
    texts = {row["layout"] for row in rows if row["layout"]}
    layouts = {text: msgspec.json.decode(text, type=Layout) for text in texts}
    return [_file(row, layouts.get(row["layout"]), placements.get(row["id"])) for row in rows]


def _file(row: dict[str, Any], layout: Layout | None, placement: FilePlacement | None) -> FileRow:
    row = {column: from_text(v) if v.__class__ is str else v for column, v in row.items()}
    row |= {"layout": layout, "placement": placement, "actual_layout": bytes.fromhex(row["actual_layout"])}
    row["forecast"] = {**row, "name": [row[column] for column in _NAME]}
    # Not strict: in SQL truth is 0 or 1.
    return msgspec.convert(row, FileRow, strict=False)


def delete(db: Connection, plan_ids: Sequence[int]) -> None:
    """The files of these plans, and their OSTs."""
    ids = [(plan_id,) for plan_id in plan_ids]
    db.many("DELETE FROM extents WHERE file_id IN (SELECT id FROM files WHERE plan_id=?)", ids)
    db.many("DELETE FROM files WHERE plan_id=?", ids)


def _placements(db: Connection, ids: Sequence[int]) -> dict[int, FilePlacement]:
    lists: dict[int, list[tuple[int, ...]]] = {}
    for at in range(0, len(ids), _BATCH):
        batch = ids[at : at + _BATCH]
        marks = ",".join("?" * len(batch))
        where = f"WHERE file_id IN ({marks}) ORDER BY file_id, extent_id"
        for file_id, osts in db.query(f"SELECT file_id, ost_list FROM extents {where}", batch):
            lists.setdefault(file_id, []).append(tuple(map(int, osts.split())))
    return {file_id: FilePlacement(tuple(osts)) for file_id, osts in lists.items()}
