"""The interaction database on a MySQL or MariaDB server, through PyMySQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tarazu.errors import StoreError
from tarazu.store.schema import MYSQL, VERSION, migration, statements

CONNECT_S = 10
BATCH = 5000
"""Rows handed to PyMySQL at once."""

_DONE_BEFORE = {1050, 1060, 1061, 1062, 1091}
"""Table, column, index or row exists, or an index to be dropped does not: DDL is no part of a transaction."""


class MysqlConnection:
    """One connection; every failure is a StoreError naming the server, never the password."""

    dialect = MYSQL

    def __init__(self, where: str, connection: Any, errors: type[Exception]) -> None:
        self.where = where
        self._connection = connection
        self._error = errors

    def begin(self) -> None:
        with self._errors():
            self._connection.begin()

    def commit(self) -> None:
        with self._errors():
            self._connection.commit()

    def rollback(self) -> None:
        with self._errors():
            self._connection.rollback()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        with self._errors(), self._connection.cursor() as cursor:
            return int(cursor.execute(_marked(statement), tuple(values) or None))

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(_marked(statement), tuple(values))
            return int(cursor.lastrowid)

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        rest = iter(rows)
        while batch := [tuple(r) for r in islice(rest, BATCH)]:
            with self._errors(), self._connection.cursor() as cursor:
                cursor.executemany(_marked(statement), batch)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(_marked(statement), tuple(values) or None)
            return [tuple(r) for r in cursor.fetchall()]

    def migrate(self) -> None:
        """Bring an older database up to this version; one that broke off is taken up where it stopped."""
        self.query("SELECT GET_LOCK('tarazu_schema', 600)")
        try:
            version = self.query("SELECT version FROM tarazu_schema")[0][0]
            for statement in migration(MYSQL, version):
                with self._errors(), self._connection.cursor() as cursor:
                    try:
                        cursor.execute(statement)
                    except self._error as error:
                        if not error.args or error.args[0] not in _DONE_BEFORE:
                            raise
        finally:
            self.query("SELECT RELEASE_LOCK('tarazu_schema')")

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise StoreError(self.where, "a usable interaction database", _one_line(error)) from None


def connect(url: str) -> MysqlConnection:
    """`mysql://user:password@host:port/name`, or `mysql://user@/name?socket=/run/mysqld.sock`."""
    parts = urlsplit(url)
    name = parts.path.strip("/")
    try:
        port = parts.port or 3306
    except ValueError as error:
        raise StoreError("mysql URL", "a port number", str(error)) from None
    where = f"mysql://{parts.hostname or 'localhost'}:{port}/{name}"
    if not name:
        raise StoreError(where, "the name of a database, mysql://user:password@host:port/name")
    try:
        import pymysql
    except ImportError as error:
        raise StoreError(where, "PyMySQL to be installed (tarazu[mysql])", str(error)) from None
    try:
        connection = pymysql.connect(
            host=parts.hostname or "localhost",
            port=port,
            unix_socket=parse_qs(parts.query).get("socket", [None])[0],
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password or ""),
            database=name,
            charset="utf8mb4",
            connect_timeout=CONNECT_S,
            autocommit=True,
        )
    except (pymysql.MySQLError, RuntimeError, OSError) as error:
        raise StoreError(where, "a reachable database", _one_line(error)) from None
    opened = MysqlConnection(where, connection, pymysql.MySQLError)
    try:
        _prepare(opened)
    except BaseException:
        opened.close()
        raise
    return opened


def _prepare(connection: MysqlConnection) -> None:
    """Create the tables in an empty database, the version last; else check the version."""
    tables = {row[0] for row in connection.query("SHOW TABLES")}
    if not tables:
        for statement in statements(MYSQL):
            connection.execute(statement)
    elif "tarazu_schema" not in tables:
        raise StoreError(
            connection.where, "an empty database or one of tarazu", f"tables {sorted(tables)[:5]}"
        )
    rows = connection.query("SELECT version FROM tarazu_schema")
    if rows and migration(MYSQL, rows[0][0]):
        connection.migrate()
    rows = connection.query("SELECT version FROM tarazu_schema")
    version = rows[0][0] if rows else None
    if version != VERSION:
        raise StoreError(connection.where, f"schema version {VERSION}", version)


def _marked(statement: str) -> str:
    """As PyMySQL wants it."""
    return statement.replace("?", "%s")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error.args[-1] if error.args else error).split())
