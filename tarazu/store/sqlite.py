"""The interaction database in an SQLite file: WAL, mode 0600, created whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tarazu import locks
from tarazu.errors import StoreError
from tarazu.store.connection import Damaged
from tarazu.store.schema import APPLICATION_ID, SQLITE, VERSION, statements

_MAGIC = b"SQLite format 3\0"
UNREADABLE = (sqlite3.Error, UnicodeDecodeError, OverflowError)
"""What SQLite raises for a damaged file: its message may hold the damaged bytes, and be no UTF-8 itself."""
_DAMAGED = ("malformed", "not a database", "Could not decode", "codec can't decode")
LOOKED_THROUGH_BYTES = 256 << 20
"""A larger file is not looked through as a whole at the start: that would take too long."""
BUSY_S = 10.0
"""Another process's transaction is waited for this long."""
TURN_S = 60.0
"""Transactions of other threads of this process are waited for this long."""
LARGEST_LOG_BYTES = 16 << 20
"""The write-ahead log is cut back to this after a large plan; space in the database itself is used again."""


class InTurn:
    """A lock that goes to who has waited longest: with a plain one, who writes much comes before all others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, timeout: float) -> bool:
        turn = threading.Lock()
        with self._lock:
            if not self._held:
                self._held = True
                return True
            turn.acquire()
            self._waiting.append(turn)
        if turn.acquire(timeout=timeout):
            return True
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return False
        return True  # it came just now

    def release(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False


_writers: dict[str, InTurn] = {}
"""File → held by the thread of this process that writes: SQLite lets whoever waits sleep, and fail at BUSY_S."""
_opening = threading.Lock()
_open: Counter[str] = Counter()
"""File → connections of this process. While there is one nobody else may open the file and close it again: the kernel
then drops all locks of the process on it, and another process that ends removes the log under our feet.
"""


class SqliteConnection:
    """One connection; every failure of SQLite is a StoreError naming the file."""

    dialect = SQLITE

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._file = os.path.realpath(path)
        self._writer = _writers.setdefault(self._file, InTurn())
        self._writes = self._closed = False
        with _opening:
            if not _open[self._file] or not os.path.exists(path):
                _check_file(path)
            with self._errors():
                self._connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            _open[self._file] += 1

    def begin(self) -> None:
        if not self._writer.acquire(timeout=TURN_S):
            raise StoreError(self.where, f"a turn to write within {TURN_S:g} s", "other transactions")
        self._writes = True
        try:
            with self._errors():
                self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._release()
            raise

    def mark(self, mark: str) -> bool:
        return True  # the answer to a commit cannot be lost

    def commit(self) -> None:
        try:
            with self._errors():
                self._connection.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
        self._release()

    def rollback(self) -> None:
        try:
            with self._errors():
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        finally:
            self._release()

    def _release(self) -> None:
        if self._writes:
            self._writes = False
            self._writer.release()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        with self._errors():
            return self._connection.execute(statement, values).rowcount

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        with self._errors():
            return int(self._connection.execute(statement, values).lastrowid or 0)

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._errors():
            self._connection.executemany(statement, rows)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        with _opening:
            self._connection.close()
            if not self._closed:
                self._closed = True
                _open[self._file] -= 1
        self._release()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except UNREADABLE as error:
            place = Path(self.where).absolute().parent
            if isinstance(error, sqlite3.OperationalError) and (why := locks.missing(place)):
                raise StoreError(self.where, locks.EXPECTED, why) from None
            kind = Damaged if any(word in str(error) for word in _DAMAGED) else StoreError
            raise kind(self.where, "a usable interaction database", str(error)) from None


def connect(location: str) -> SqliteConnection:
    """Open or create the file. Raises StoreError, and then leaves what was there as it was."""
    connection = SqliteConnection(Path(location))
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def check(location: str) -> None:
    """Raises Damaged for a database of ours that cannot be read, StoreError for another reason not to use it."""
    connection = connect(location)
    try:
        small = os.path.getsize(location) <= LOOKED_THROUGH_BYTES
        (answer,) = connection.query("PRAGMA quick_check(1)" if small else "SELECT COUNT(*) FROM plans")[0]
        if small and answer != "ok":
            raise Damaged(location, "a usable interaction database", " ".join(str(answer).split()))
    finally:
        connection.close()


def set_aside(location: str) -> Path:
    """Rename a damaged database, so that a new one can be begun; its new name. What was set aside before is not
    touched: raises StoreError then.
    """
    path, aside = Path(location), Path(f"{location}.damaged")
    if aside.exists():
        raise StoreError(
            location, "no more than one damaged database", f"{aside} beside it: look at it, remove it"
        )
    try:
        for ending in ("-wal", "-shm", ""):  # the log first: it belongs to no other file
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{path}{ending}", f"{aside}{ending}")
    except OSError as error:
        raise StoreError(location, "a database that can be set aside", error.strerror) from None
    return aside


def _check_file(path: Path) -> None:
    """Refuse what is no SQLite file before SQLite touches it; create a new one with mode 0600."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "rb") as file:
            head = file.read(len(_MAGIC))
    except OSError as error:
        raise StoreError(str(path), "a readable and writable file", error.strerror or str(error)) from None
    if head and head != _MAGIC:
        raise StoreError(str(path), "an SQLite database", head)


def _prepare(connection: SqliteConnection) -> None:
    """Check that the file is ours and of this version; write the schema into an empty one."""
    where = connection.where
    if not _tables(connection):
        connection.query("PRAGMA journal_mode = WAL")
    connection.query("PRAGMA synchronous = NORMAL")
    connection.query("PRAGMA foreign_keys = ON")
    connection.query(f"PRAGMA journal_size_limit = {LARGEST_LOG_BYTES}")
    if not _tables(connection):
        connection.begin()
        try:
            if not _tables(connection):
                for statement in statements(SQLITE):
                    connection.execute(statement)
                connection.query(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.query(f"PRAGMA user_version = {VERSION}")
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
    if connection.query("PRAGMA application_id")[0][0] != APPLICATION_ID:
        raise StoreError(where, "an interaction database of tarazu", "another program's database")
    version = connection.query("PRAGMA user_version")[0][0]
    if version != VERSION:
        raise StoreError(where, f"schema version {VERSION}", version)


def _tables(connection: SqliteConnection) -> int:
    return int(connection.query("SELECT COUNT(*) FROM sqlite_master")[0][0])
