"""The directories of plans in the interaction database: what was expected, the MDT that it got, what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import fields

from tarazu.model import DirectoryForecast
from tarazu.names import from_text, to_text
from tarazu.store.connection import DatabaseConnection, as_written, insert, update
from tarazu.store.rows import ExpectedDirectory
from tarazu.trace.records import DirectoryRecord

LEFT = "left"
"""Outcome of a directory that was expected and got no MDT: Lustre's own balance chose."""
DIRECTORY_BYTES = 150
"""What a row counts for, beside its texts."""
_COLUMNS = {"key": "dir_key", "rank": "mpi_rank"}
"""Field → column, where SQL has other meanings for the field's name."""
_ALL = tuple(_COLUMNS.get(f.name, f.name) for f in fields(ExpectedDirectory))
_SELECT = f"SELECT {', '.join(_ALL)} FROM directories"
_INSERT = insert("directories", "id", "plan_id", "dir_key", "mpi_rank", "creates", "at_s")


def add(db: DatabaseConnection, plan_id: int, first_id: int, expected: Sequence[DirectoryForecast]) -> int:
    """Rows from `first_id` on for directories of a plan; about how many bytes they take."""
    rows = [
        (row_id, plan_id, to_text(f.name.key), f.name.rank, f.creates, f.at_s)
        for row_id, f in enumerate(expected, first_id)
    ]
    db.many(_INSERT, rows)
    return sum(DIRECTORY_BYTES + 2 * len(row[2]) for row in rows)


def place(db: DatabaseConnection, plan_id: int, mdts: Mapping[int, int]) -> None:
    """Row id → the MDT that it gets."""
    of_rows = ((mdt, row_id, plan_id) for row_id, mdt in mdts.items())
    db.many(f"{update('directories', 'mdt')} AND plan_id=?", of_rows)


def end(db: DatabaseConnection, plan_id: int, made: Iterable[DirectoryRecord]) -> int:
    """What became of a plan's directories; how many the run made. One belongs to the row that the placement library
    found, else to the row of its key.
    """
    rows = db.query("SELECT id, dir_key, mdt FROM directories WHERE plan_id=? ORDER BY id", (plan_id,))
    ids = {row_id: mdt for row_id, _, mdt in rows}
    by_key = {from_text(key): row_id for row_id, key, _ in reversed(rows)}
    outcomes: dict[int, DirectoryRecord] = {}
    for record in made:
        row_id = record.row_id if record.row_id in ids else by_key.get(record.key)
        if row_id is not None and (row_id not in outcomes or record.row_id == row_id):
            outcomes[row_id] = record
    changed = update("directories", "outcome", "actual_key", "actual_mdt", "actual_creates", "error")
    db.many(changed, [(*_became(outcomes.get(row_id), mdt), row_id) for row_id, mdt in ids.items()])
    return len(outcomes)


def _became(record: DirectoryRecord | None, mdt: int) -> tuple[Any, ...]:
    """`mdt`: that of its row."""
    if record is None:
        return "unseen", "", -1, 0, 0
    # The library knows no name that the map does not hold: what was left to Lustre looks unexpected to it.
    outcome = LEFT if record.outcome == "miss" and mdt < 0 else record.outcome
    return outcome, to_text(record.key), record.mdt, record.creates, record.errno


def read(
    db: DatabaseConnection, condition: str, values: Sequence[Any], order: str
) -> list[ExpectedDirectory]:
    """The directories for which a condition holds."""
    found = []
    with as_written(db.where):
        for row in db.query(f"{_SELECT} WHERE {condition} ORDER BY {order}", values):
            of = dict(zip(ExpectedDirectory.__struct_fields__, row, strict=True))
            of |= {"key": from_text(of["key"]), "actual_key": from_text(of["actual_key"])}
            found.append(ExpectedDirectory(**of))
    return found


def counts(db: DatabaseConnection, plan_id: int) -> dict[str, Any]:
    """A plan's directories in a few numbers: how many, their creates as forecast, how many got an MDT, and outcome →
    how many; nothing for a plan that expected none.
    """
    select = (
        "SELECT outcome, COUNT(*), SUM(creates), SUM(CASE WHEN mdt >= 0 THEN 1 ELSE 0 END) FROM directories"
    )
    rows = db.query(f"{select} WHERE plan_id=? GROUP BY outcome ORDER BY outcome", (plan_id,))
    if not rows:
        return {}
    return {
        "directories": sum(int(row[1]) for row in rows),
        "creates": sum(int(row[2] or 0) for row in rows),
        "on_mdts": sum(int(row[3] or 0) for row in rows),
        "directory_outcomes": {row[0] or "not yet": int(row[1]) for row in rows},
    }
