"""What SQLite and MySQL give alike: transactions and statements, with `?` for each value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tarazu.store.schema import Dialect


class Connection(Protocol):
    """One method per need, no cursor outside. Whatever fails is a StoreError that names the database."""

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


def insert_row(db: Connection, table: str, **values: Any) -> int:
    """Add a row with these columns; its number."""
    return db.insert(insert(table, *values), tuple(values.values()))


def insert(table: str, *columns: str) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def update(table: str, *columns: str) -> str:
    """Statement that sets these columns of the row whose id is the last value."""
    return f"UPDATE {table} SET {', '.join(f'{c}=?' for c in columns)} WHERE id=?"
