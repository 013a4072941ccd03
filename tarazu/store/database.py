"""The interaction database (paper, section 5.5.3): plans, expected files, their OSTs and what became of them.

SQLite is the default; MySQL or MariaDB shares everything but the connection (`tarazu.store.mysql`). What a plan's
files and layouts are as rows stands in `tarazu.store.files`.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from tarazu.errors import StoreError
from tarazu.model import FilePlacement, JobStep
from tarazu.names import from_text, to_text
from tarazu.store import files
from tarazu.store.connection import DatabaseConnection, as_written, insert_row, update, write
from tarazu.store.control import of_job
from tarazu.store.rows import Explained, FileRow, NewFile, PlanRow
from tarazu.trace.records import FileRecord, RunRecord

PLAN_BYTES = 4096
"""What a plan without files counts for in its user's share."""
ROWS_AT_ONCE = 2_000
"""Files in one transaction."""
MARKS_KEPT_S = 86_400.0
MOST_PREPARED = 50
"""Of one user's applications: of the others the next run begins with its histories."""

Result = TypeVar("Result")
Row = TypeVar("Row")

_PLAN = PlanRow.__struct_fields__
"""The columns have the names of the fields."""
_SELECT_PLAN = f"SELECT {', '.join(_PLAN)} FROM plans"


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
    """One open database. What is written is one transaction, wholly done or not at all; of more than ROWS_AT_ONCE
    files several, so that nobody else's small plan waits for it: a kill then leaves a plan that is still `new` with a
    part of its files, or one that was being deleted, and the next `prune` looks after both.
    """

    def __init__(self, connection: DatabaseConnection) -> None:
        self._db = connection

    def __enter__(self) -> InteractionDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def new_plan(self, step: JobStep) -> int:
        """Begin a plan; its id."""
        return self._write(
            lambda: insert_row(
                self._db,
                "plans",
                **_application(step),
                job_id=to_text(step.job_id),
                created_s=time.time(),
                policy="",
                status="new",
                reason="",
                step=_encode_step(step),
                ost_cost=0.0,
                ost_cost_bound=0.0,
                elapsed_s=0.0,
                request_id="",
                bytes=PLAN_BYTES,
            )
        )

    def add_files(self, plan_id: int, new: Iterable[NewFile]) -> list[int]:
        """Add expected files to a plan; their row ids, in order. Raises StoreError for an unknown plan."""
        ids: list[int] = []
        try:
            for part in _parts(list(new)):
                ids += self._write(partial(self._add, plan_id, part))
        except StoreError:
            if ids:  # on a full disk, say: a part of a plan is of no use to anybody
                with suppress(StoreError):
                    self.delete(plan_id)
            raise
        return ids

    def _add(self, plan_id: int, rows: Sequence[NewFile]) -> range:
        # First of all: who else writes waits here, and what is read from now on is what he wrote.
        first = self._reserve_ids(len(rows))
        self._plan_or_raise(plan_id)
        layout_ids = files.use_layouts(self._db, plan_id, (row.layout for row in rows if row.layout))
        self._grow(plan_id, files.add(self._db, plan_id, first, rows, layout_ids))
        return range(first, first + len(rows))

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
    ) -> None:
        """The answer to one allocation request. `placements`: row id → OSTs, in the order of the request;
        `left`: row id → why the file is left to Lustre although it has a layout.

        A later answer of the same plan (the horizon rolls) replaces status and costs and adds its files.
        """
        answer = {
            "request_id": request_id,
            "status": status,
            "reason": reason,
            "policy": policy,
            "ost_cost": ost_cost,
            "ost_cost_bound": ost_cost_bound,
            "elapsed_s": elapsed_s,
        }
        placed = list((placements or {}).items())
        reasons = dict(left or {})
        self._check_rows(plan_id, (row_id for row_id, _ in placed))

        def place(first: int, part: Sequence[tuple[int, FilePlacement]], last: bool) -> None:
            self._lock()
            self._plan_or_raise(plan_id)
            why = {row_id: reasons[row_id] for row_id, _ in part if row_id in reasons}
            self._grow(plan_id, files.place(self._db, plan_id, request_id, first, part, why))
            if last:
                self._db.execute(update("plans", *answer), (*answer.values(), plan_id))
                insert_row(self._db, "requests", plan_id=plan_id, answered_s=time.time(), **answer)

        parts = _parts(placed)
        for number, part in enumerate(parts, 1):
            self._write(partial(place, (number - 1) * ROWS_AT_ONCE, part, number == len(parts)))

    def _check_rows(self, plan_id: int, row_ids: Iterable[int]) -> None:
        known = {row[0] for row in self._db.query("SELECT id FROM files WHERE plan_id=?", (plan_id,))}
        if (foreign := next((row_id for row_id in row_ids if row_id not in known), None)) is not None:
            raise StoreError(self._db.where, f"rows of plan {plan_id}", f"row {foreign}")

    def record_outcomes(self, plan_id: int, run: RunRecord) -> int:
        """Write down what became of the plan's files; how many of them the run created.

        A created file belongs to the row that the placement library found, else to the row of its key.
        """
        rows = self._db.query("SELECT id, file_key FROM files WHERE plan_id=? ORDER BY id", (plan_id,))
        created = self._created(rows, run)

        def end(part: Sequence[tuple[Any, ...]], last: bool) -> None:
            self._lock()
            self._plan_or_raise(plan_id)
            self._grow(plan_id, files.end(self._db, [(row_id, created.get(row_id)) for row_id, _ in part]))
            if last:
                self._db.execute(update("plans", "ended_s"), (run.start_s + run.duration_s, plan_id))

        parts = _parts(rows)
        for number, part in enumerate(parts, 1):
            self._write(partial(end, part, number == len(parts)))
        return len(created)

    def plan(self, plan_id: int) -> PlanRow | None:
        rows = self._db.query(f"{_SELECT_PLAN} WHERE id=?", (plan_id,))
        with as_written(self._db.where):
            return _plan(rows[0]) if rows else None

    def plans(self) -> list[PlanRow]:
        """Plans, newest first."""
        rows = self._db.query(f"{_SELECT_PLAN} ORDER BY id DESC")
        with as_written(self._db.where):
            return [_plan(row) for row in rows]

    def plans_of_job(self, job: str, uid: int | None, most: int) -> list[PlanRow]:
        """The newest plans of a job (`tarazu.store.control.of_job`), newest first; of one user where `uid` says so."""
        text = to_text(job)
        arrays = (
            f'%"array_job":{msgspec.json.encode(of).decode()}%' for of in (text, text.rpartition("_")[0])
        )
        which = "(job_id=? OR job_id LIKE ? OR step LIKE ? OR step LIKE ?)"
        whose = "" if uid is None else " AND uid=?"
        values = (text, f"{text}.%", *arrays, *([] if uid is None else [uid]))
        select = f"{_SELECT_PLAN} WHERE {which}{whose} ORDER BY id DESC LIMIT {int(most)}"
        rows = self._db.query(select, values)
        with as_written(self._db.where):
            plans = [_plan(row) for row in rows]
        return [p for p in plans if of_job(job, p.step.job_id, p.step.array_job, p.step.array_index)]

    def request_ids(self, plan_id: int) -> list[str]:
        """Allocations that were made for a plan."""
        rows = self._db.query("SELECT request_id FROM requests WHERE plan_id=? ORDER BY id", (plan_id,))
        return list(dict.fromkeys(id for (id,) in rows if id))

    def counts(self, plan_id: int) -> dict[str, Any]:
        """A plan's files in a few numbers: how many, their bytes as forecast, how many have OSTs, outcome → how many,
        reason why they were left to Lustre → how many (the most frequent first).
        """
        placed = "SUM(CASE WHEN request_id<>'' AND left_because='' THEN 1 ELSE 0 END)"
        select = f"SELECT outcome, left_because, COUNT(*), SUM(size_bytes), {placed} FROM files"
        rows = self._db.query(f"{select} WHERE plan_id=? GROUP BY outcome, left_because", (plan_id,))
        outcomes: Counter[str] = Counter()
        left: Counter[str] = Counter()
        for outcome, why, number, *_ in rows:
            outcomes[outcome or "not yet"] += int(number)
            if why:
                left[why] += int(number)
        return {
            "files": outcomes.total(),
            "size_bytes": sum(int(row[3] or 0) for row in rows),
            "placed": sum(int(row[4] or 0) for row in rows),
            "outcomes": dict(outcomes.most_common()),
            "left": dict(left.most_common()),
        }

    def files(self, plan_id: int, *, first: int | None = None) -> list[FileRow]:
        """Files of a plan (the first so many), in the order in which they were added."""
        limit = "" if first is None else f" LIMIT {int(first)}"
        return files.read(self._db, "plan_id=?", (plan_id,), f"id{limit}")

    def file_count(self, plan_id: int) -> int:
        return int(self._db.query("SELECT COUNT(*) FROM files WHERE plan_id=?", (plan_id,))[0][0])

    def closed_files(self, plan_id: int, run: RunRecord) -> dict[str, list[tuple[int, int]]]:
        """Request id → (place in that request, real size) of the plan's files that the run closed.

        Requests of which no file was closed have an empty list. Nothing is written: nobody is waited for.
        """
        rows = self._db.query(
            "SELECT id, file_key, request_id, request_index FROM files "
            "WHERE plan_id=? AND request_id<>'' ORDER BY id",
            (plan_id,),
        )
        created = self._created([(row_id, key) for row_id, key, _, _ in rows], run)
        closed: dict[str, list[tuple[int, int]]] = {}
        for row_id, _, request_id, index in rows:
            sizes = closed.setdefault(request_id, [])
            if (file := created.get(row_id)) and file.closed:
                sizes.append((index, file.size_bytes))
        return closed

    def explain(self, key: str, *, fs_name: str | None = None, last: int = 10) -> list[Explained]:
        """Plans in which a file of that key was expected, or became that file; newest first."""
        text = to_text(key)
        either = "file_key=? OR actual_key=?"
        explained = []
        for row in files.read(self._db, either, (text, text), f"id DESC LIMIT {int(last)}"):
            plan = self.plan(row.plan_id)
            if plan is not None and fs_name in (None, plan.step.fs_name):
                explained.append(Explained(plan, row))
        return explained

    def keep_prepared(self, step: JobStep, body: bytes) -> None:
        """What the next run of the step's user and application begins with, instead of what was kept before."""

        def keep() -> None:
            self._lock()
            of = _application(step)
            same = " AND ".join(f"{column}=?" for column in of)
            self._db.execute(f"DELETE FROM prepared WHERE {same}", tuple(of.values()))
            insert_row(self._db, "prepared", **of, body=body, made_s=time.time())
            newest = "SELECT made_s FROM prepared WHERE uid=? ORDER BY made_s DESC"
            for (made_s,) in self._db.query(newest, (step.uid,))[MOST_PREPARED:]:
                self._db.execute("DELETE FROM prepared WHERE uid=? AND made_s<=?", (step.uid, made_s))

        self._write(keep)

    def prepared(self, step: JobStep) -> bytes:
        """What was kept for the step's user and application; empty for nothing."""
        of = _application(step)
        same = " AND ".join(f"{column}=?" for column in of)
        rows = self._db.query(f"SELECT body FROM prepared WHERE {same}", tuple(of.values()))
        return bytes(rows[0][0]) if rows else b""

    def prune(self, step: JobStep, *, keep: int, user_bytes: int, in_vain: int = 0) -> int:
        """Delete old plans of the step's user; how many went. Other users' plans are never touched.

        `in_vain`: one that was never allocated goes before all others. All but the newest `keep` of the step's
        application on its file system go, then the user's oldest until the rest takes `user_bytes` at most.
        """
        old = self._write(lambda: self._outdated(step, keep, user_bytes, in_vain))
        for plan_id in old:
            self.delete(plan_id)
        return len(old)

    def _outdated(self, step: JobStep, keep: int, user_bytes: int, in_vain: int) -> list[int]:
        self._lock()
        self._db.execute("DELETE FROM writes WHERE at_s < ?", (time.time() - MARKS_KEPT_S,))
        nothing = "SELECT id FROM plans WHERE id=? AND uid=? AND status NOT IN ('new', 'allocated')"
        vain = {row[0] for row in self._db.query(nothing, (in_vain, step.uid))}
        same = "SELECT id FROM plans WHERE fs_name=? AND uid=? AND application=? ORDER BY id DESC"
        plans = [row[0] for row in self._db.query(same, tuple(_application(step).values()))]
        old = vain | {*[plan_id for plan_id in plans if plan_id not in vain][max(keep, 0) :]}
        used = 0
        rows = self._db.query("SELECT id, bytes FROM plans WHERE uid=? ORDER BY id DESC", (step.uid,))
        with as_written(self._db.where):
            for plan_id, size in rows:
                used += 0 if plan_id in old else int(size)
                if used > user_bytes:
                    old.add(plan_id)
        return sorted(old)

    def delete(self, plan_id: int) -> None:
        """A plan with all that belongs to it; nothing where there is none."""
        while self._write(lambda: files.delete(self._db, plan_id, ROWS_AT_ONCE)):
            pass

        def end() -> None:
            self._lock()
            files.drop_layouts(self._db, [plan_id])
            self._db.execute("DELETE FROM requests WHERE plan_id=?", (plan_id,))
            self._db.execute("DELETE FROM plans WHERE id=?", (plan_id,))

        self._write(end)

    def _write(self, body: Callable[[], Result]) -> Result:
        return write(self._db, body)

    def _created(self, rows: Sequence[tuple[Any, ...]], run: RunRecord) -> dict[int, FileRecord]:
        with as_written(self._db.where):
            return _created(rows, run)

    def _plan_or_raise(self, plan_id: int) -> None:
        if not self._db.query("SELECT id FROM plans WHERE id=?", (plan_id,)):
            raise StoreError(self._db.where, "a plan that exists", plan_id)

    def _lock(self) -> None:
        """Nobody else writes until the transaction is over; two that delete and insert would block each other."""
        self._db.query(f"SELECT last_file_id FROM tarazu_schema{self._db.dialect.for_update}")

    def _grow(self, plan_id: int, size_bytes: int) -> None:
        self._db.execute("UPDATE plans SET bytes = bytes + ? WHERE id=?", (size_bytes, plan_id))

    def _reserve_ids(self, count: int) -> int:
        """The first of `count` new row ids, from 1; never used twice, as an older map may still be in use."""
        self._db.execute("UPDATE tarazu_schema SET last_file_id = last_file_id + ?", (count,))
        with as_written(self._db.where):
            last = int(self._db.query("SELECT last_file_id FROM tarazu_schema")[0][0])
        if last >= 2**32:
            raise StoreError(self._db.where, "row ids below 2^32; start a new database", last)
        return last - count + 1


def _parts(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """One at least, that may be empty."""
    return [rows[first : first + ROWS_AT_ONCE] for first in range(0, len(rows) or 1, ROWS_AT_ONCE)]


def _application(step: JobStep) -> dict[str, Any]:
    """Of whose plans older ones give way to newer ones."""
    return {"fs_name": to_text(step.fs_name), "uid": step.uid, "application": to_text(step.application)}


def _created(rows: Sequence[tuple[Any, ...]], run: RunRecord) -> dict[int, FileRecord]:
    """The file that became of each row (row id, key): that of its id, else the first of its key."""
    by_key = {from_text(key): row_id for row_id, key in reversed(rows)}
    ids = {row_id for row_id, _ in rows}
    by_row: dict[int, FileRecord] = {}
    for file in run.files:
        row_id = file.row_id if file.row_id in ids else by_key.get(file.key)
        if row_id is not None and (row_id not in by_row or file.row_id == row_id):
            by_row[row_id] = file
    return by_row


def _plan(row: Sequence[Any]) -> PlanRow:
    values = dict(zip(_PLAN, row, strict=True))
    return PlanRow(**{**values, "step": _decode_step(values["step"])})


def _encode_step(step: JobStep) -> str:
    fields = msgspec.to_builtins(step)
    fields.update({k: to_text(v) for k, v in fields.items() if isinstance(v, str)})
    return msgspec.json.encode(fields).decode()


def _decode_step(text: str) -> JobStep:
    fields = msgspec.json.decode(text, type=dict[str, Any])
    fields.update({k: from_text(v) for k, v in fields.items() if isinstance(v, str)})
    return msgspec.convert(fields, JobStep)
