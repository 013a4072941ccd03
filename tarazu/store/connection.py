"""What SQLite and MySQL give alike: transactions and statements, with `?` for each value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from tarazu.errors import StoreError
from tarazu.store.schema import Dialect


class BrokenOff(StoreError):
    """The database has undone the transaction for another one's sake: it may be begun again at once."""


class Damaged(StoreError):
    """What is read is not what was written."""


class Lost(StoreError):
    """The connection is gone. What was not committed is undone; whether a commit was one is not known."""


class Connection(Protocol):
    """One method per need, no cursor outside. Whatever fails is a StoreError that names the database.

    `begin` after Lost begins on a new connection; reading outside of a transaction does so by itself.
    """

    dialect: Dialect
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


def insert_row(db: Connection, table: str, **values: Any) -> int:
    """Add a row with these columns; its number."""
    return db.insert(insert(table, *values), tuple(values.values()))


def insert(table: str, *columns: str) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def update(table: str, *columns: str) -> str:
    """Statement that sets these columns of the row whose id is the last value."""
    return f"UPDATE {table} SET {', '.join(f'{c}=?' for c in columns)} WHERE id=?"
