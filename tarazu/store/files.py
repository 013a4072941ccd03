"""The files of plans, their OSTs and layouts in the interaction database: `files`, `extents`, `layouts`, `components`.

A column has the name of the field that it holds (of FileName, Forecast, FileRow), but for those in NAMED: from the
fields come the statements, the values and, read back, the structs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import astuple, fields

from tarazu.lustre import EOF
from tarazu.model import FileName, FilePlacement, Forecast, Layout
from tarazu.names import from_text, to_text
from tarazu.store.connection import DatabaseConnection, as_written, insert, insert_row, update
from tarazu.store.rows import FileRow, NewFile
from tarazu.trace.records import FileRecord

FILE_BYTES = 200
"""What a file's row and its entries in indexes count for, beside its texts."""
EXTENT_BYTES = 24
MOST_REASON_CHARACTERS = 180
NAMED = {"key": "file_key", "volatile": "is_volatile", "rank": "mpi_rank"}
"""Field → column, where SQL has other meanings for the field's name."""

_BATCH = 500
"""Values per `IN (…)`."""


def columns(struct: type[msgspec.Struct], *without: str) -> dict[str, object]:
    """Column → type of the field that it holds."""
    return {NAMED.get(f.name, f.name): f.type for f in fields(struct) if f.name not in without}


_NAME, _FORECAST = columns(FileName), columns(Forecast, "name", "until_s")
_LATER = columns(FileRow, "id", "plan_id", "forecast", "layout", "placement", "left_because")
_NOT_YET = tuple("" if f.default == b"" else f.default for f in fields(FileRow) if f.name in _LATER)
"""What the row of a new file holds of these."""
_READ = {
    "id": int,
    "plan_id": int,
    **_NAME,
    **_FORECAST,
    "(SELECT layout FROM layouts WHERE layouts.id = layout_id)": Layout,
    **_LATER,
    "left_because": str,
}
"""In the order of the fields of FileRow; its placement is read from `extents`."""
_FROM_SQL: dict[object, Callable[[Any], Any]] = {str: from_text, bool: bool, bytes: bytes.fromhex}
_CONVERTED = [(at, _FROM_SQL[of]) for at, of in enumerate(_READ.values()) if of in _FROM_SQL]
_SELECT = f"SELECT {', '.join(_READ)} FROM files"
_INSERT = insert("files", "id", "plan_id", *_NAME, *_FORECAST, "layout_id", "left_because", *_LATER)


def add(
    db: DatabaseConnection,
    plan_id: int,
    first_id: int,
    files: Sequence[NewFile],
    layouts: Mapping[Layout, int],
) -> int:
    """Rows from `first_id` on for files of a plan, whose layouts are in these rows; about how many bytes they take."""
    total = 0

    def rows() -> Iterator[tuple[Any, ...]]:
        nonlocal total
        for row_id, file in enumerate(files, first_id):
            name, forecast = astuple(file.forecast.name), astuple(file.forecast)[: 1 + len(_FORECAST)]
            key, precise, loose = map(to_text, name[:3])
            layout_id = layouts[file.layout] if file.layout else None
            left = file.left_because[:MOST_REASON_CHARACTERS]
            total += FILE_BYTES + 2 * len(key) + len(precise) + len(loose) + len(left)
            yield (row_id, plan_id, key, precise, loose, *name[3:], *forecast[1:], layout_id, left, *_NOT_YET)

    db.many(_INSERT, rows())
    return total


def place(
    db: DatabaseConnection,
    plan_id: int,
    request_id: str,
    first: int,
    placements: Sequence[tuple[int, FilePlacement]],
    left: Mapping[int, str],
) -> int:
    """The OSTs of files of a plan ((row id, OSTs), from place `first` in the request on), instead of those they may
    have; and why files are left to Lustre. About how many bytes they take.
    """
    of_request = ((request_id, index, row_id, plan_id) for index, (row_id, _) in enumerate(placements, first))
    db.many(f"{update('files', 'request_id', 'request_index')} AND plan_id=?", of_request)
    db.many("DELETE FROM extents WHERE file_id=?", ((row_id,) for row_id, _ in placements))
    total = 0

    def extents() -> Iterator[tuple[int, int, str]]:
        nonlocal total
        for row_id, placement in placements:
            for number, osts in enumerate(placement.osts, 1):
                text = " ".join(map(str, osts))
                total += EXTENT_BYTES + len(text)
                yield row_id, number, text

    db.many(insert("extents", "file_id", "extent_id", "ost_list"), extents())
    reasons = ((why[:MOST_REASON_CHARACTERS], row_id, plan_id) for row_id, why in left.items())
    db.many(f"{update('files', 'left_because')} AND plan_id=?", reasons)
    return total


def end(db: DatabaseConnection, files: Sequence[tuple[int, FileRecord | None]]) -> int:
    """What became of files: (row id, what a run created; None: it did not). About how many bytes that takes."""
    total = 0

    def outcomes() -> Iterator[tuple[Any, ...]]:
        nonlocal total
        for row_id, file in files:
            if file is None:
                yield "unseen", "no", "", None, "", row_id
                continue
            size = file.size_bytes if file.closed else None
            key, layout = to_text(file.key), file.layout.hex()
            total += 2 * len(key) + len(layout)
            yield file.outcome, file.found, key, size, layout, row_id

    changed = update("files", "outcome", "found", "actual_key", "actual_bytes", "actual_layout")
    db.many(changed, outcomes())
    return total


def read(db: DatabaseConnection, condition: str, values: Sequence[Any], order: str) -> list[FileRow]:
    """The files for which a condition holds."""
    rows = db.query(f"{_SELECT} WHERE {condition} ORDER BY {order}", values)
    with as_written(db.where):
        return _read(db, rows)


def _read(db: DatabaseConnection, rows: Sequence[tuple[Any, ...]]) -> list[FileRow]:
    placements = _placements(db, [row_id for row_id, *_ in rows])
    layouts: dict[str | None, Layout | None] = {None: None}
    files = []
    for row in rows:
        of_row = list(row)
        for at, convert in _CONVERTED:
            of_row[at] = convert(row[at])
        rest = iter(of_row)
        row_id, plan_id = next(rest), next(rest)
        forecast = Forecast(FileName(*islice(rest, len(_NAME))), *islice(rest, len(_FORECAST)))
        text = next(rest)
        if text not in layouts:
            layouts[text] = msgspec.json.decode(text, type=Layout)
        files.append(FileRow(row_id, plan_id, forecast, layouts[text], placements.get(row_id), *rest))
    return files


def delete(db: DatabaseConnection, plan_id: int, most: int) -> int:
    """So many files of a plan at most, and their OSTs; how many went."""
    rows = db.query(f"SELECT id FROM files WHERE plan_id=? ORDER BY id LIMIT {int(most)}", (plan_id,))
    db.many("DELETE FROM extents WHERE file_id=?", rows)
    db.many("DELETE FROM files WHERE id=?", rows)
    return len(rows)


def _placements(db: DatabaseConnection, ids: Sequence[int]) -> dict[int, FilePlacement]:
    lists: dict[int, list[tuple[int, ...]]] = {}
    for at in range(0, len(ids), _BATCH):
        batch = ids[at : at + _BATCH]
        marks = ",".join("?" * len(batch))
        where = f"WHERE file_id IN ({marks}) ORDER BY file_id, extent_id"
        for file_id, osts in db.query(f"SELECT file_id, ost_list FROM extents {where}", batch):
            lists.setdefault(file_id, []).append(tuple(map(int, osts.split())))
    return {file_id: FilePlacement(tuple(osts)) for file_id, osts in lists.items()}


def use_layouts(db: DatabaseConnection, plan_id: int, layouts: Iterable[Layout]) -> dict[Layout, int]:
    """The row of each layout, made where there is none yet; notes that the plan uses them."""
    ids = {layout: _layout_row(db, layout) for layout in dict.fromkeys(layouts)}
    known = _layouts_of(db, plan_id)
    db.many(
        insert("plan_layouts", "plan_id", "layout_id"),
        [(plan_id, i) for i in sorted({*ids.values()} - known)],
    )
    return ids


def drop_layouts(db: DatabaseConnection, plan_ids: Sequence[int]) -> None:
    """Of plans that go; layouts that no other plan uses are deleted."""
    used = set().union(*(_layouts_of(db, plan_id) for plan_id in plan_ids))
    db.many("DELETE FROM plan_layouts WHERE plan_id=?", [(plan_id,) for plan_id in plan_ids])
    still = "SELECT 1 FROM plan_layouts WHERE layout_id=? LIMIT 1"
    unused = [(i,) for i in used if not db.query(still, (i,))]
    db.many("DELETE FROM components WHERE layout_id=?", unused)
    db.many("DELETE FROM layouts WHERE id=?", unused)


def _layouts_of(db: DatabaseConnection, plan_id: int) -> set[int]:
    return {row[0] for row in db.query("SELECT layout_id FROM plan_layouts WHERE plan_id=?", (plan_id,))}


def _layout_row(db: DatabaseConnection, layout: Layout) -> int:
    text = msgspec.json.encode(layout).decode()
    digest = hashlib.sha256(text.encode()).hexdigest()
    rows = db.query("SELECT id FROM layouts WHERE digest=?", (digest,))
    if rows:
        with as_written(db.where):
            return int(rows[0][0])
    layout_id = insert_row(db, "layouts", digest=digest, layout=text)
    for number, c in enumerate(layout.components, 1):
        insert_row(
            db,
            "components",
            layout_id=layout_id,
            extent_id=number,
            start_bytes=c.start_bytes,
            end_bytes=-1 if c.end_bytes == EOF else c.end_bytes,  # 2⁶⁴−1 is no signed integer
            stripe_size_bytes=c.stripe_size_bytes,
            stripe_count=c.stripe_count,
        )
    return layout_id
