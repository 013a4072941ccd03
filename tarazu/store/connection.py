"""What SQLite and MySQL give alike: transactions and statements, with `?` for each value."""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import msgspec

from tarazu.errors import StoreError
from tarazu.store.schema import SqlDialect


class BrokenOff(StoreError):
    """The database has undone the transaction, for another one's sake or for want of something: begun again, a moment
    later, it may be done.
    """


class Damaged(StoreError):
    """What is read is not what was written."""


class Lost(StoreError):
    """The connection is gone. What was not committed is undone; whether a commit was one is not known."""


class DatabaseConnection(Protocol):
    """One method per need, no cursor outside. Whatever fails is a StoreError that names the database.

    `begin` after Lost begins on a new connection; reading outside of a transaction does so by itself.
    """

    dialect: SqlDialect
    where: str

    def begin(self) -> None: ...
    def mark(self, mark: str) -> bool:
        """Note within the transaction that it is this one; False when one with this mark is done already."""

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Rows touched."""

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        """Number that the database gave the new row."""

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None: ...
    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...
    def close(self) -> None: ...


@contextmanager
def as_written(where: str) -> Iterator[None]:
    """What is in rows is made into values within; raises Damaged where they are not what is ever written."""
    try:
        yield
    except (msgspec.MsgspecError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise Damaged(where, "rows as tarazu writes them", " ".join(str(error).split())) from None


def insert_row(db: DatabaseConnection, table: str, **values: Any) -> int:
    """Add a row with these columns; its number."""
    return db.insert(insert(table, *values), tuple(values.values()))


def insert(table: str, *columns: str) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def update(table: str, *columns: str) -> str:
    """Statement that sets these columns of the row whose id is the last value."""
    return f"UPDATE {table} SET {', '.join(f'{c}=?' for c in columns)} WHERE id=?"


RETRY_S = (0.05, 0.3, 1.0, 3.0, 6.0)
"""Pauses before a transaction is begun again; a server that is started anew is back within them."""

Result = TypeVar("Result")


def write(db: DatabaseConnection, body: Callable[[], Result]) -> Result:
    """`body` within a transaction: wholly done or not at all, and never twice. Raises StoreError.

    A server may go away at any moment, or roll a transaction back because of another one (deadlock). Then it is begun
    anew, a few times, so `body` may be called several times. Whether a commit whose answer never came was done is seen
    by a mark, a row that is part of it: the same mark cannot be put a second time, and who puts it waits for whoever
    did before.
    """
    mark = uuid.uuid4().hex
    done: list[Result] = []
    for pause_s in (*RETRY_S, None):
        try:
            db.begin()
            if not db.mark(mark):  # the commit that was not answered
                db.rollback()
                return done[-1]
            done.append(body())
            db.commit()
            return done[-1]
        except (BrokenOff, Lost):
            with contextlib.suppress(StoreError):
                db.rollback()
            if pause_s is None:
                raise
            time.sleep(pause_s * random.uniform(0.5, 1.0))
        except BaseException:
            with contextlib.suppress(StoreError):
                db.rollback()
            raise
    raise AssertionError("unreachable")
