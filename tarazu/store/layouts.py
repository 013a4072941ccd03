"""The layouts in the interaction database: each distinct one is one row, and goes with the last plan that uses it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from tarazu.lustre import EOF
from tarazu.model import Layout
from tarazu.store.connection import Connection, as_written, insert, insert_row


def add(db: Connection, plan_id: int, layouts: Iterable[Layout]) -> dict[Layout, int]:
    """The row of each layout, a new one for one that is not there yet; notes that the plan uses them."""
    ids = {layout: _row(db, layout) for layout in dict.fromkeys(layouts)}
    known = _used_by(db, plan_id)
    db.many(
        insert("plan_layouts", "plan_id", "layout_id"),
        [(plan_id, i) for i in sorted({*ids.values()} - known)],
    )
    return ids


def delete(db: Connection, plan_ids: Sequence[int]) -> None:
    """Plans that go use their layouts no more; those that no other plan uses go too."""
    used = set().union(*(_used_by(db, plan_id) for plan_id in plan_ids))
    db.many("DELETE FROM plan_layouts WHERE plan_id=?", [(plan_id,) for plan_id in plan_ids])
    still = "SELECT 1 FROM plan_layouts WHERE layout_id=? LIMIT 1"
    unused = [(i,) for i in used if not db.query(still, (i,))]
    db.many("DELETE FROM components WHERE layout_id=?", unused)
    db.many("DELETE FROM layouts WHERE id=?", unused)


def _used_by(db: Connection, plan_id: int) -> set[int]:
    return {row[0] for row in db.query("SELECT layout_id FROM plan_layouts WHERE plan_id=?", (plan_id,))}


def _row(db: Connection, layout: Layout) -> int:
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
