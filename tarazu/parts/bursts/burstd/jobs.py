"""Jobs on disk: who ran where and when, and what each of a job's nodes moved. An SQLite file, with a version.

A job is one of an id and a start: one that was started again is another. What is beyond `most` goes, those that ended
first. A damaged file, or one of another version, is renamed and ignored: that costs what was known of applications,
no more.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import intern

import numpy as np

from tarazu.batch.jobs import ApplicationKey, Job
from tarazu.errors import StoreError
from tarazu.parts.bursts.measures.characteristics import JobBytes
from tarazu.store.sqlite import UNREADABLE

log = logging.getLogger("tarazu.bursts")

VERSION = 2
APPLICATION_ID = 0x747A6A62
MOST_JOBS = 500_000
MOST_BYTES = 2 << 30
BUSY_S = 10.0
MAX_NAMES_BYTES = 16 << 20
"""Of one job's nodes."""

_TABLES = (
    "CREATE TABLE job (id TEXT NOT NULL, start_s REAL NOT NULL, end_s REAL, user TEXT NOT NULL, name TEXT NOT NULL, "
    "size INTEGER NOT NULL, nodes BLOB NOT NULL, submit_s REAL NOT NULL, state TEXT NOT NULL, "
    "partition TEXT NOT NULL, moved BLOB, PRIMARY KEY (id, start_s)) WITHOUT ROWID",
    "CREATE INDEX job_end ON job (end_s)",
    "CREATE INDEX job_application ON job (user, name, size, end_s)",
    "CREATE TABLE gap (start_s REAL NOT NULL, end_s REAL NOT NULL)",
    "CREATE TABLE known (what TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID",
)
_WHOLE = "NOT EXISTS (SELECT 1 FROM gap WHERE gap.start_s < job.end_s AND gap.end_s > job.start_s)"
UNTIL = "attributed"
"""What jobs moved is noted up to this time."""
ALIVE = "alive"
"""When traffic was last gathered."""
_COLUMNS = "id, user, name, nodes, start_s, end_s, submit_s, state, partition"


class Jobs:
    """Of one thread, or read only. Every failure is a StoreError."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        try:
            self._open(read_only)
        except (*UNREADABLE, StoreError) as error:
            if read_only or isinstance(error, sqlite3.OperationalError):
                raise StoreError(str(path), "a file of jobs", str(error)) from None
            log.error("%s: set aside: %s; the list of jobs starts again empty", path, error)
            for name in (path, f"{path}-wal", f"{path}-shm"):
                with contextlib.suppress(FileNotFoundError):
                    Path(name).rename(f"{name}.unreadable")
            with self._errors():
                self._open(read_only)

    def _open(self, read_only: bool) -> None:
        mode = "?mode=ro" if read_only else ""
        uri = f"{self.path.absolute().as_uri()}{mode}"
        self._db = sqlite3.connect(
            uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            if not read_only:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")
                self._create()
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            its = self._db.execute("PRAGMA application_id").fetchone()[0]
            if (version, its) != (VERSION, APPLICATION_ID):
                raise StoreError(str(self.path), f"jobs of version {VERSION}", f"version {version}")
        except BaseException:
            self._db.close()
            raise

    def _create(self) -> None:
        with self._transaction():
            if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return
            for statement in _TABLES:
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {VERSION}")
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def begin(self, until_s: float, now_s: float) -> float:
        """Up to when what jobs moved is added up; for a new file from `until_s` on, and nobody counted before."""
        noted_s = self.known(UNTIL)
        if noted_s is None:
            self.gap(0.0, now_s)
            self.note(ALIVE, now_s)
            self.note(UNTIL, until_s)
        return until_s if noted_s is None else noted_s

    def no_later(self, now_s: float) -> None:
        """What a clock that was ahead has noted of after this is so now."""
        with self._errors(), self._transaction():
            self._db.execute("UPDATE known SET value = min(value, ?)", (now_s,))
            self._db.execute("DELETE FROM gap WHERE start_s >= ?", (now_s,))
            self._db.execute("UPDATE gap SET end_s = min(end_s, ?)", (now_s,))
            self._db.execute(
                "UPDATE job SET end_s = max(?, start_s) WHERE state = 'GONE' AND end_s > ?", (now_s, now_s)
            )

    def put(self, jobs: Iterable[Job]) -> int:
        """Jobs as they are now; how many of them are new, or other than they were. What one moved stays."""
        changed = 0
        with self._errors(), self._transaction():
            for job in jobs:
                names = zlib.compress("\n".join(job.nodes).encode())
                end_s = None if math.isinf(job.end_s) else job.end_s
                values = (job.id, job.start_s, end_s, job.user, job.name, len(job.nodes), names)
                done = self._db.execute(
                    "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL) ON CONFLICT DO UPDATE SET "
                    "end_s = excluded.end_s, state = excluded.state WHERE (job.end_s IS NULL AND "
                    "(excluded.end_s IS NOT NULL OR job.state <> excluded.state)) "
                    "OR (job.state = 'GONE' AND excluded.end_s IS NOT NULL)",
                    (*values, job.submit_s, job.state, job.partition),
                )
                changed += done.rowcount
        return changed

    def ended(self, ids: Iterable[tuple[str, float]], end_s: float) -> None:
        """Jobs (id, start) that Slurm does not know any more, and did not say when they ended."""
        with self._errors(), self._transaction():
            self._db.executemany(
                "UPDATE job SET end_s = max(?, start_s), state = 'GONE' WHERE id = ? AND start_s = ? AND end_s IS NULL",
                [(end_s, id, start_s) for id, start_s in ids],
            )

    def running(self) -> list[Job]:
        return self._jobs("WHERE end_s IS NULL ORDER BY start_s, id")

    def overlapping(self, start_s: float, end_s: float) -> list[Job]:
        """Those that ran at any time in [start_s, end_s), by their start."""
        return self._jobs(
            "WHERE start_s < ? AND (end_s IS NULL OR end_s > ?) ORDER BY start_s, id", end_s, start_s
        )

    def _jobs(self, where: str, *values: object) -> list[Job]:
        with self._errors():
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM job {where}", values).fetchall()
            return [_job(row) for row in rows]

    def add_moved(self, found: Iterable[JobBytes], until_s: float | None = None) -> None:
        """What jobs moved in a further stretch of time, up to `until_s`, which is noted with it."""
        with self._errors(), self._transaction():
            for one in found:
                key = one.job.id, one.job.start_s
                row = self._db.execute("SELECT moved FROM job WHERE id = ? AND start_s = ?", key).fetchone()
                if row is None:
                    continue
                moved = one.bytes if row[0] is None else one.bytes + np.frombuffer(row[0], "<i8")
                self._db.execute(
                    "UPDATE job SET moved = ? WHERE id = ? AND start_s = ?",
                    (moved.astype("<i8").tobytes(), *key),
                )
            if until_s is not None:
                self._db.execute("INSERT OR REPLACE INTO known VALUES (?, ?)", (UNTIL, until_s))

    def without_moved(self, before_s: float) -> list[Job]:
        """Those that began before then and of which nothing is noted: they became known late. One that ended in the
        second in which it began moved nothing.
        """
        return self._jobs(
            "WHERE moved IS NULL AND start_s < ? AND (end_s IS NULL OR end_s > start_s) ORDER BY start_s, id",
            before_s,
        )

    def moved(self, application: ApplicationKey, until_s: float, most: int) -> list[JobBytes]:
        """What its last jobs moved that ended by then, the last one first."""
        with self._errors():
            rows = self._db.execute(
                f"SELECT {_COLUMNS}, moved FROM job WHERE user = ? AND name = ? AND size = ? AND end_s <= ? "
                f"AND moved IS NOT NULL AND {_WHOLE} ORDER BY end_s DESC LIMIT ?",
                (application.user, application.name, application.size, until_s, most),
            ).fetchall()
            return [JobBytes(_job(row[:9]), np.frombuffer(row[9], "<i8")) for row in rows]

    def applications(self, least: int, since_s: float, until_s: float) -> list[ApplicationKey]:
        """Those with more than so many jobs that ended by then, one of them since."""
        with self._errors():
            rows = self._db.execute(
                f"SELECT user, name, size FROM job WHERE moved IS NOT NULL AND end_s <= ? AND {_WHOLE} "
                "GROUP BY user, name, size HAVING count(*) > ? AND max(end_s) > ?",
                (until_s, least, since_s),
            ).fetchall()
            return [ApplicationKey(*row) for row in rows]

    def gap(self, start_s: float, end_s: float) -> None:
        """Nobody counted in this time: jobs that ran in it are not known whole."""
        with self._errors():
            self._db.execute("INSERT INTO gap VALUES (?, ?)", (start_s, end_s))

    def gaps(self) -> list[tuple[float, float]]:
        with self._errors():
            return self._db.execute("SELECT start_s, end_s FROM gap ORDER BY start_s").fetchall()

    def known(self, what: str) -> float | None:
        """A number that was noted."""
        with self._errors():
            row = self._db.execute("SELECT value FROM known WHERE what = ?", (what,)).fetchone()
            return float(row[0]) if row else None

    def note(self, what: str, value: float) -> None:
        with self._errors():
            self._db.execute("INSERT OR REPLACE INTO known VALUES (?, ?)", (what, value))

    def forget(self, most_jobs: int = MOST_JOBS, most_bytes: int = MOST_BYTES) -> int:
        """The jobs beyond either bound, those that ended first; how many went."""
        with self._errors():
            count = self._db.execute("SELECT count(*) FROM job").fetchone()[0]
            pages, free, size = (
                self._db.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            too_many = max(0, count - most_jobs)
            if (pages - free) * size > most_bytes:
                too_many = max(too_many, count // 10 + 1)
            if not too_many:
                return 0
            with self._transaction():
                done = self._db.execute(
                    "DELETE FROM job WHERE (id, start_s) IN (SELECT id, start_s FROM job WHERE end_s IS NOT NULL "
                    "ORDER BY end_s LIMIT ?)",
                    (too_many,),
                )
                return done.rowcount

    def __len__(self) -> int:
        with self._errors():
            return int(self._db.execute("SELECT count(*) FROM job").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (*UNREADABLE, zlib.error, ValueError, TypeError, AttributeError) as error:
            raise StoreError(
                str(self.path), "a file of jobs that can be read and written", str(error)
            ) from None

    def close(self) -> None:
        self._db.close()


def _job(row: tuple) -> Job:  # type: ignore[type-arg]
    id, user, name, nodes, start_s, end_s, submit_s, state, partition = row
    opened = zlib.decompressobj()
    names = opened.decompress(nodes, MAX_NAMES_BYTES).decode()
    return Job(
        id,
        user,
        name,
        tuple(map(intern, names.split("\n"))),
        start_s,
        math.inf if end_s is None else end_s,
        submit_s,
        state,
        partition,
    )
