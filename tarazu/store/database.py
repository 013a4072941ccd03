"""The interaction database (paper, section 5.5.3): plans, expected files, their OSTs and what became of them.

SQLite is the default; MySQL or MariaDB shares everything but the connection (`tarazu.store.mysql`).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Protocol

import msgspec

from tarazu.errors import StoreError
from tarazu.lustre import EOF
from tarazu.model import FilePlacement, Forecast, JobStep, Layout
from tarazu.store.rows import (
    CreatedFile,
    Explained,
    FileRow,
    FinishedRun,
    NewFile,
    PlanRow,
    from_text,
    to_text,
)
from tarazu.store.schema import TABLES, Dialect, insert

_BATCH = 500
"""Values per `IN (…)`."""

PLAN_BYTES = 4096
"""What a plan without files counts for in its user's share."""
FILE_BYTES = 200
"""What a file's row and its entries in indexes count for, beside its texts."""
EXTENT_BYTES = 24
MOST_REASON_CHARACTERS = 180

_PLAN = (
    "id, created_s, policy, status, reason, step, request_id, ost_cost, ost_cost_bound, elapsed_s, ended_s"
)
_FILE = (
    "f.id, f.plan_id, f.file_key, f.precise, f.loose, f.is_volatile, f.mpi_rank, f.nth_precise, f.nth_loose, "
    "f.size_bytes, f.at_s, f.writers, f.contiguous, f.method, l.layout, f.request_id, f.request_index, "
    "f.outcome, f.found, f.actual_key, f.actual_bytes, f.actual_layout, f.left_because"
)

_INSERT_PLAN = insert(
    "plans",
    "fs_name uid application job_id created_s policy status reason step "
    "ost_cost ost_cost_bound elapsed_s request_id bytes",
)
_INSERT_REQUEST = insert(
    "requests", "plan_id request_id status reason policy ost_cost ost_cost_bound elapsed_s answered_s"
)
_INSERT_FILE = insert(
    "files",
    "id plan_id file_key precise loose is_volatile mpi_rank nth_precise nth_loose size_bytes at_s writers "
    "contiguous method layout_id request_id request_index outcome found actual_key actual_layout left_because",
)
_INSERT_COMPONENT = insert(
    "components", "layout_id extent_id start_bytes end_bytes stripe_size_bytes stripe_count"
)
_INSERT_EXTENT = insert("extents", "file_id extent_id ost_list")
_UPDATE_PLAN = (
    "UPDATE plans SET status=?, reason=?, policy=?, ost_cost=?, ost_cost_bound=?, elapsed_s=?, request_id=? "
    "WHERE id=?"
)
_UPDATE_OUTCOME = (
    "UPDATE files SET outcome=?, found=?, actual_key=?, actual_bytes=?, actual_layout=? WHERE id=?"
)


class Connection(Protocol):
    """What a database gives: transactions and statements. One method per need, no cursor outside."""

    dialect: Dialect
    where: str

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Rows touched."""

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        """Number that the database gave the new row."""

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None: ...
    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...
    def close(self) -> None: ...


def open_database(location: str | os.PathLike[str]) -> InteractionDatabase:
    """Open or create the database at a path, or at `mysql://user:password@host:port/name`.

    Raises StoreError for a file that is no interaction database, a newer schema, or an unusable one.
    """
    text = os.fspath(location)
    if text.startswith("mysql://"):
        from tarazu.store.mysql import connect as connect_mysql

        return InteractionDatabase(connect_mysql(text))
    if "://" in text:
        raise StoreError(
            "database", "a path or mysql://user:password@host/name", text.split("://")[0] + "://"
        )
    from tarazu.store.sqlite import connect as connect_sqlite

    return InteractionDatabase(connect_sqlite(text))


class InteractionDatabase:
    """One open database. Every method that writes is one transaction: wholly done or not at all."""

    def __init__(self, connection: Connection) -> None:
        self._db = connection
        self._layout_ids: dict[Layout, int] = {}

    def __enter__(self) -> InteractionDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def new_plan(self, step: JobStep, *, policy: str = "", created_s: float | None = None) -> int:
        """Begin a plan; its id."""
        created = time.time() if created_s is None else created_s
        with self._transaction():
            return self._db.insert(
                self._sql(_INSERT_PLAN),
                (
                    to_text(step.fs_name),
                    step.uid,
                    to_text(step.application),
                    to_text(step.job_id),
                    created,
                    policy,
                    "new",
                    "",
                    _encode_step(step),
                    0.0,
                    0.0,
                    0.0,
                    "",
                    PLAN_BYTES,
                ),
            )

    def add_files(self, plan_id: int, files: Iterable[NewFile]) -> list[int]:
        """Add expected files to a plan; their row ids, in order. Raises StoreError for an unknown plan."""
        rows = list(files)
        with self._transaction():
            # First of all: who else writes waits here, and what is read from now on is what he wrote.
            first = self._reserve_ids(len(rows))
            self._plan_or_raise(plan_id)
            self._layout_ids.clear()  # one may have gone with its last plan
            layout_ids = [self._layout_id(row.layout) for row in rows]
            empty = ("", -1, "", "no", "", "")
            total = 0

            def values() -> Iterator[tuple[Any, ...]]:
                nonlocal total
                for i, (row, layout_id) in enumerate(zip(rows, layout_ids, strict=True)):
                    texts = _file_values(row.forecast)
                    total += FILE_BYTES + 2 * len(texts[0]) + len(texts[1]) + len(texts[2])
                    left = row.left_because[:MOST_REASON_CHARACTERS]
                    total += len(left)
                    yield (first + i, plan_id, *texts, layout_id, *empty, left)

            self._use_layouts(plan_id, {i for i in layout_ids if i is not None})
            self._db.many(self._sql(_INSERT_FILE), values())
            self._grow(plan_id, total)
            return list(range(first, first + len(rows)))

    def set_allocation(
        self,
        plan_id: int,
        *,
        status: str,
        request_id: str = "",
        reason: str = "",
        policy: str = "",
        ost_cost: float = 0.0,
        ost_cost_bound: float = 0.0,
        elapsed_s: float = 0.0,
        placements: Mapping[int, FilePlacement] | None = None,
        left: Mapping[int, str] | None = None,
        answered_s: float | None = None,
    ) -> None:
        """The answer to one allocation request. `placements`: row id → OSTs, in the order of the request;
        `left`: row id → why the file is left to Lustre although it has a layout.

        A later answer of the same plan (the horizon rolls) replaces status and costs and adds its files.
        """
        answered = time.time() if answered_s is None else answered_s
        with self._transaction():
            self._lock()
            self._plan_or_raise(plan_id)
            costs = (ost_cost, ost_cost_bound, elapsed_s)
            self._db.execute(self._sql(_UPDATE_PLAN), (status, reason, policy, *costs, request_id, plan_id))
            self._db.insert(
                self._sql(_INSERT_REQUEST), (plan_id, request_id, status, reason, policy, *costs, answered)
            )
            self._place(plan_id, request_id, placements or {})
            self._db.many(
                self._sql("UPDATE files SET left_because=? WHERE id=? AND plan_id=?"),
                ((why[:MOST_REASON_CHARACTERS], row_id, plan_id) for row_id, why in (left or {}).items()),
            )

    def record_outcomes(self, plan_id: int, run: FinishedRun) -> int:
        """Write down what became of the plan's files; how many of them the run created.

        A created file belongs to the row that the placement library found, else to the row of its key.
        """
        with self._transaction():
            self._lock()
            self._plan_or_raise(plan_id)
            rows = self._db.query(
                self._sql("SELECT id, file_key FROM files WHERE plan_id=? ORDER BY id"), (plan_id,)
            )
            values: dict[int, tuple[Any, ...]] = {}
            total = 0
            for row_id, file in _created(rows, run).items():
                size = file.size_bytes if file.closed else None
                key = to_text(file.key)
                total += 2 * len(key) + 2 * len(file.layout)
                values[row_id] = (file.outcome, file.found, key, size, file.layout.hex(), row_id)
            unseen = [("unseen", "no", "", None, "", row_id) for row_id, _ in rows if row_id not in values]
            self._db.many(self._sql(_UPDATE_OUTCOME), chain(values.values(), unseen))
            self._grow(plan_id, total)
            self._db.execute(
                self._sql("UPDATE plans SET ended_s=? WHERE id=?"), (run.start_s + run.duration_s, plan_id)
            )
        return len(values)

    def plan(self, plan_id: int) -> PlanRow | None:
        rows = self._db.query(self._sql(f"SELECT {_PLAN} FROM plans WHERE id=?"), (plan_id,))
        return _plan(rows[0]) if rows else None

    def plans(self, last: int | None = None) -> list[PlanRow]:
        """Plans, newest first."""
        limit = "" if last is None else f" LIMIT {int(last)}"
        return [_plan(r) for r in self._db.query(f"SELECT {_PLAN} FROM plans ORDER BY id DESC{limit}")]

    def latest_plan(self, fs_name: str, uid: int, application: str) -> PlanRow | None:
        rows = self._db.query(
            self._sql(
                f"SELECT {_PLAN} FROM plans WHERE fs_name=? AND uid=? AND application=? "
                "ORDER BY id DESC LIMIT 1"
            ),
            (to_text(fs_name), uid, to_text(application)),
        )
        return _plan(rows[0]) if rows else None

    def files(self, plan_id: int, *, first: int | None = None) -> list[FileRow]:
        """Files of a plan (the first so many), in the order in which they were added."""
        limit = "" if first is None else f" LIMIT {int(first)}"
        return self._files("f.plan_id=?", (plan_id,), f"f.id{limit}")

    def file_count(self, plan_id: int) -> int:
        return int(self._db.query(self._sql("SELECT COUNT(*) FROM files WHERE plan_id=?"), (plan_id,))[0][0])

    def closed_files(self, plan_id: int, run: FinishedRun) -> dict[str, list[tuple[int, int]]]:
        """Request id → (place in that request, real size) of the plan's files that the run closed.

        Requests of which no file was closed have an empty list. Nothing is written: nobody is waited for.
        """
        rows = self._db.query(
            self._sql(
                "SELECT id, file_key, request_id, request_index FROM files "
                "WHERE plan_id=? AND request_id<>'' ORDER BY id"
            ),
            (plan_id,),
        )
        created = _created([(row_id, key) for row_id, key, _, _ in rows], run)
        closed: dict[str, list[tuple[int, int]]] = {}
        for row_id, _, request_id, index in rows:
            files = closed.setdefault(request_id, [])
            if (file := created.get(row_id)) and file.closed:
                files.append((index, file.size_bytes))
        return closed

    def explain(self, key: str, *, fs_name: str | None = None, last: int = 10) -> list[Explained]:
        """Plans in which a file of that key was expected, or became that file; newest first."""
        text = to_text(key)
        rows = self._files("f.file_key=? OR f.actual_key=?", (text, text), f"f.id DESC LIMIT {int(last)}")
        explained = []
        for row in rows:
            plan = self.plan(row.plan_id)
            if plan is not None and fs_name in (None, plan.step.fs_name):
                explained.append(Explained(plan, row))
        return explained

    def prune(self, step: JobStep, *, keep: int, user_bytes: int, in_vain: int = 0) -> int:
        """Delete old plans of the step's user; how many went. Other users' plans are never touched.

        `in_vain`: one that was never allocated goes before all others. All but the newest `keep` of the step's
        application on its file system go, then the user's oldest until the rest takes `user_bytes` at most.
        """
        with self._transaction():
            self._lock()
            key = (to_text(step.fs_name), step.uid, to_text(step.application))
            nothing = "SELECT id FROM plans WHERE id=? AND uid=? AND status NOT IN ('new', 'allocated')"
            vain = {row[0] for row in self._db.query(self._sql(nothing), (in_vain, step.uid))}
            self._delete(sorted(vain))
            newest = self._db.query(
                self._sql(
                    "SELECT id FROM plans WHERE fs_name=? AND uid=? AND application=? "
                    f"ORDER BY id DESC LIMIT 1 OFFSET {max(int(keep), 0)}"
                ),
                key,
            )
            old: set[int] = set()
            if newest:
                where = "WHERE fs_name=? AND uid=? AND application=? AND id<=?"
                rows = self._db.query(self._sql(f"SELECT id FROM plans {where}"), (*key, newest[0][0]))
                old = {row[0] for row in rows}
            rows = self._db.query(
                self._sql("SELECT id, bytes FROM plans WHERE uid=? ORDER BY id DESC"), (step.uid,)
            )
            used = 0
            for plan_id, size in rows:
                used += 0 if plan_id in old else size
                if used > user_bytes:
                    old.add(plan_id)
            self._delete(sorted(old))
        return len(old | vain)

    def _delete(self, plans: Sequence[int]) -> None:
        """Plans with all that belongs to them, and the layouts that no other plan uses."""
        if not plans:
            return
        ids = [(plan_id,) for plan_id in plans]
        layouts: set[int] = set()
        for (plan_id,) in ids:
            statement = "SELECT layout_id FROM plan_layouts WHERE plan_id=?"
            layouts.update(r[0] for r in self._db.query(self._sql(statement), (plan_id,)))
        self._db.many(
            self._sql("DELETE FROM extents WHERE file_id IN (SELECT id FROM files WHERE plan_id=?)"), ids
        )
        for table in ("files", "requests", "plan_layouts"):
            self._db.many(self._sql(f"DELETE FROM {table} WHERE plan_id=?"), ids)
        self._db.many(self._sql("DELETE FROM plans WHERE id=?"), ids)
        unused = [
            (i,)
            for i in layouts
            if not self._db.query(self._sql("SELECT 1 FROM plan_layouts WHERE layout_id=? LIMIT 1"), (i,))
        ]
        self._db.many(self._sql("DELETE FROM components WHERE layout_id=?"), unused)
        self._db.many(self._sql("DELETE FROM layouts WHERE id=?"), unused)

    def counts(self) -> dict[str, int]:
        """Rows per table."""
        return {t: int(self._db.query(f"SELECT COUNT(*) FROM {t}")[0][0]) for t in TABLES}

    def interaction(self, plan_id: int) -> list[tuple[Any, ...]]:
        """The view: name, size, extent id, start, end, stripe size (the paper's), count, rank, OST list."""
        return self._db.query(
            self._sql(
                "SELECT file_name, file_size, extent_id, extent_start, extent_end, stripe_size, "
                "stripe_count, mpi_rank, ost_list FROM interaction WHERE plan_id=? "
                "ORDER BY file_id, extent_id"
            ),
            (plan_id,),
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.begin()
        try:
            yield
        except BaseException:
            self._db.rollback()
            self._layout_ids.clear()
            raise
        self._db.commit()

    def _sql(self, statement: str) -> str:
        mark = self._db.dialect.placeholder
        return statement if mark == "?" else statement.replace("?", mark)

    def _plan_or_raise(self, plan_id: int) -> None:
        if not self._db.query(self._sql("SELECT id FROM plans WHERE id=?"), (plan_id,)):
            raise StoreError(self._db.where, "a plan that exists", plan_id)

    def _lock(self) -> None:
        """Nobody else writes until the transaction is over; two that delete and insert would block each other."""
        self._db.query(f"SELECT last_file_id FROM tarazu_schema{self._db.dialect.for_update}")

    def _grow(self, plan_id: int, size_bytes: int) -> None:
        self._db.execute(self._sql("UPDATE plans SET bytes = bytes + ? WHERE id=?"), (size_bytes, plan_id))

    def _use_layouts(self, plan_id: int, layout_ids: set[int]) -> None:
        statement = self._sql("SELECT layout_id FROM plan_layouts WHERE plan_id=?")
        known = {row[0] for row in self._db.query(statement, (plan_id,))}
        self._db.many(
            self._sql(insert("plan_layouts", "plan_id layout_id")),
            [(plan_id, i) for i in sorted(layout_ids - known)],
        )

    def _reserve_ids(self, count: int) -> int:
        """The first of `count` new row ids, from 1; never used twice, as an older map may still be in use."""
        self._db.execute(self._sql("UPDATE tarazu_schema SET last_file_id = last_file_id + ?"), (count,))
        last = int(self._db.query("SELECT last_file_id FROM tarazu_schema")[0][0])
        if last >= 2**32:
            raise StoreError(self._db.where, "row ids below 2^32; start a new database", last)
        return last - count + 1

    def _layout_id(self, layout: Layout | None) -> int | None:
        """Row of the layout; a new one when the database does not have it yet."""
        if layout is None:
            return None
        known = self._layout_ids.get(layout)
        if known is not None:
            return known
        text = msgspec.json.encode(layout).decode()
        digest = hashlib.sha256(text.encode()).hexdigest()
        rows = self._db.query(self._sql("SELECT id FROM layouts WHERE digest=?"), (digest,))
        if rows:
            layout_id = int(rows[0][0])
        else:
            layout_id = self._db.insert(self._sql(insert("layouts", "digest layout")), (digest, text))
            self._db.many(
                self._sql(_INSERT_COMPONENT),
                [
                    (
                        layout_id,
                        i + 1,
                        c.start_bytes,
                        -1 if c.end_bytes == EOF else c.end_bytes,
                        c.stripe_size_bytes,
                        c.stripe_count,
                    )
                    for i, c in enumerate(layout.components)
                ],
            )
        self._layout_ids[layout] = layout_id
        return layout_id

    def _place(self, plan_id: int, request_id: str, placements: Mapping[int, FilePlacement]) -> None:
        known = {r[0] for r in self._db.query(self._sql("SELECT id FROM files WHERE plan_id=?"), (plan_id,))}
        foreign = next((row_id for row_id in placements if row_id not in known), None)
        if foreign is not None:
            raise StoreError(self._db.where, f"rows of plan {plan_id}", f"row {foreign}")
        self._db.many(
            self._sql("UPDATE files SET request_id=?, request_index=? WHERE id=?"),
            ((request_id, i, row_id) for i, row_id in enumerate(placements)),
        )
        self._db.many(self._sql("DELETE FROM extents WHERE file_id=?"), ((row_id,) for row_id in placements))
        total = 0

        def extents() -> Iterator[tuple[int, int, str]]:
            nonlocal total
            for row_id, placement in placements.items():
                for i, osts in enumerate(placement.osts):
                    text = " ".join(map(str, osts))
                    total += EXTENT_BYTES + len(text)
                    yield row_id, i + 1, text

        self._db.many(self._sql(_INSERT_EXTENT), extents())
        self._grow(plan_id, total)

    def _files(self, condition: str, values: Sequence[Any], order: str) -> list[FileRow]:
        rows = self._db.query(
            self._sql(
                f"SELECT {_FILE} FROM files f LEFT JOIN layouts l ON l.id = f.layout_id "
                f"WHERE {condition} ORDER BY {order}"
            ),
            values,
        )
        placements = self._placements([r[0] for r in rows])
        layouts: dict[str, Layout] = {}
        return [_file(r, placements.get(r[0]), layouts) for r in rows]

    def _placements(self, ids: Sequence[int]) -> dict[int, FilePlacement]:
        lists: dict[int, list[tuple[int, ...]]] = {}
        for at in range(0, len(ids), _BATCH):
            batch = ids[at : at + _BATCH]
            marks = ",".join("?" * len(batch))
            where = f"WHERE file_id IN ({marks}) ORDER BY file_id, extent_id"
            statement = f"SELECT file_id, ost_list FROM extents {where}"
            for file_id, osts in self._db.query(self._sql(statement), batch):
                lists.setdefault(file_id, []).append(tuple(map(int, osts.split())))
        return {file_id: FilePlacement(tuple(osts)) for file_id, osts in lists.items()}


def _created(rows: Sequence[tuple[Any, ...]], run: FinishedRun) -> dict[int, CreatedFile]:
    """The file that became of each row (row id, key): that of its id, else the first of its key."""
    by_key = {from_text(key): row_id for row_id, key in reversed(rows)}
    ids = {row_id for row_id, _ in rows}
    found: dict[int, CreatedFile] = {}
    for file in run.files:
        row_id = file.row_id if file.row_id in ids else by_key.get(file.key)
        if row_id is not None and (row_id not in found or file.row_id == row_id):
            found[row_id] = file
    return found


def _encode_step(step: JobStep) -> str:
    fields = msgspec.to_builtins(step)
    fields.update({k: to_text(v) for k, v in fields.items() if isinstance(v, str)})
    return msgspec.json.encode(fields).decode()


def _decode_step(text: str) -> JobStep:
    fields = msgspec.json.decode(text, type=dict[str, Any])
    fields.update({k: from_text(v) for k, v in fields.items() if isinstance(v, str)})
    return msgspec.convert(fields, JobStep)


def _plan(row: Sequence[Any]) -> PlanRow:
    return PlanRow(
        id=row[0],
        created_s=row[1],
        policy=row[2],
        status=row[3],
        reason=row[4],
        step=_decode_step(row[5]),
        request_id=row[6],
        ost_cost=row[7],
        ost_cost_bound=row[8],
        elapsed_s=row[9],
        ended_s=row[10],
    )


def _file_values(f: Forecast) -> tuple[Any, ...]:
    return (
        to_text(f.key),
        to_text(f.precise),
        to_text(f.loose),
        int(f.volatile),
        f.rank,
        f.nth_precise,
        f.nth_loose,
        f.size_bytes,
        f.at_s,
        f.writers,
        int(f.contiguous),
        f.method,
    )


def _file(row: Sequence[Any], placement: FilePlacement | None, layouts: dict[str, Layout]) -> FileRow:
    text = row[14]
    if text is not None and text not in layouts:
        layouts[text] = msgspec.json.decode(text, type=Layout)
    return FileRow(
        id=row[0],
        plan_id=row[1],
        forecast=Forecast(
            key=from_text(row[2]),
            precise=from_text(row[3]),
            loose=from_text(row[4]),
            volatile=bool(row[5]),
            rank=row[6],
            nth_precise=row[7],
            nth_loose=row[8],
            size_bytes=row[9],
            at_s=row[10],
            writers=row[11],
            contiguous=bool(row[12]),
            method=row[13],
        ),
        layout=layouts[text] if text is not None else None,
        placement=placement,
        request_id=row[15],
        request_index=row[16],
        outcome=row[17],
        found=row[18],
        actual_key=from_text(row[19]),
        actual_bytes=row[20],
        actual_layout=bytes.fromhex(row[21]),
        left_because=row[22],
    )
