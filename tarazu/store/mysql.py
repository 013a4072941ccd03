"""The interaction database on a MySQL or MariaDB server, through PyMySQL."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tarazu.errors import StoreError
from tarazu.store.connection import BrokenOff, Lost
from tarazu.store.schema import MYSQL, TABLES, VERSION, statements

CONNECT_S = 10
ANSWER_S = 60
"""For each answer: a server that is cut off must not hold up a conversation without end."""
LOCK_WAIT_S = 10
BATCH = 5000
"""Rows handed to PyMySQL at once."""
STATEMENT_BYTES = 1_024_000
"""Into which PyMySQL joins rows; less where the server takes less (max_allowed_packet)."""
AGAIN_S = (0.2, 1.0, 3.0)
"""Pauses before a question is asked, or a connection begun, again."""

_DONE_BEFORE = {1050, 1060, 1061, 1062, 1091}
"""Table, column, index or row exists, or an index to be dropped does not: DDL is no part of a transaction."""
_DUPLICATE = 1062
_BROKEN_OFF = {1020, 1205, 1213, 1412, 1614, 1689, 3101}
"""Waited too long for a lock; deadlock, also with another server's transaction; what was read has changed."""
_UNREACHABLE = {2001, 2002, 2003, 2005}
_LOST = {
    *(0, 1053, 1077, 1079, 1080, 1152, *range(1154, 1162), 1184, 1927, 3168, 3169, 4031),
    *(2006, 2012, 2013, 2014, 2026, 2027, 2048, 2055),
}
"""The server shuts down, aborts or kills the connection, or ends an idle one; it went away, or speaks out of turn."""
_NOT_NOW = {1037, 1040, 1041, 1047, 1135, 1203, 1226, 1290, 1317, 1792, 1836, 1969, 3024, 3032, 3100}
"""Too many connections, too little memory; it only reads, is offline or not yet part of its cluster, as while another
server takes its place; a query that was killed, or took too long. Another connection, a moment later, may do."""
_PACKET = 1153


class _Unreachable(Lost):
    """There is no connection to renew."""


class MysqlConnection:
    """A connection, renewed when it is lost; every failure is a StoreError naming the server, never the password."""

    dialect = MYSQL

    def __init__(self, where: str, connect: Callable[[], Any], errors: type[Exception]) -> None:
        self.where = where
        self._connect = connect
        self._error = errors
        self._within = False
        """A transaction is open."""
        self._lost = False
        self._packet_bytes = STATEMENT_BYTES
        with self._errors():
            self._connection = self._opened()

    def _opened(self) -> Any:
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SET innodb_lock_wait_timeout = {LOCK_WAIT_S}")
                cursor.execute("SELECT @@max_allowed_packet")
                self._packet_bytes = max(1024, min(STATEMENT_BYTES, int(cursor.fetchone()[0]) // 2))
        except BaseException:
            connection.close()
            raise
        return connection

    def _renew(self) -> None:
        with contextlib.suppress(self._error, OSError):
            self._connection.close()
        with self._errors():
            self._connection = self._opened()
            self._lost = False

    def begin(self) -> None:
        if self._lost:
            self._renew()
        with self._errors():
            self._connection.begin()
            self._within = True

    def mark(self, mark: str) -> bool:
        with self._errors(), self._connection.cursor() as cursor:
            try:
                cursor.execute("INSERT INTO writes (mark, at_s) VALUES (%s, %s)", (mark, time.time()))
            except self._error as error:
                if error.args and error.args[0] == _DUPLICATE:
                    return False
                raise
        return True

    def commit(self) -> None:
        with self._errors():
            self._connection.commit()
            self._within = False

    def rollback(self) -> None:
        self._within = False
        if not self._lost:
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
                cursor.max_stmt_length = self._packet_bytes
                cursor.executemany(_marked(statement), batch)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        for pause_s in AGAIN_S:
            try:
                return self._query(statement, values)
            except (BrokenOff, Lost):
                if self._within:
                    raise
            time.sleep(pause_s)
        return self._query(statement, values)

    def _query(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if self._lost and not self._within:
            self._renew()
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(_marked(statement), tuple(values) or None)
            return [tuple(r) for r in cursor.fetchall()]

    def change(self, statements: Iterable[str]) -> None:
        """Change the schema; what was done before, by one that broke off, is done already."""
        for statement in statements:
            with self._errors(), self._connection.cursor() as cursor:
                try:
                    cursor.execute(statement)
                except self._error as error:
                    if not error.args or error.args[0] not in _DONE_BEFORE:
                        raise

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else changes the schema meanwhile. The lock is the connection's: it goes when that is lost."""
        if self.query("SELECT GET_LOCK('tarazu_schema', 600)") != [(1,)]:
            raise StoreError(self.where, "the lock for changes of its schema within 600 s", "none")
        try:
            yield
        finally:
            with contextlib.suppress(StoreError):
                self.query("SELECT RELEASE_LOCK('tarazu_schema')")

    def close(self) -> None:
        with contextlib.suppress(self._error, OSError):
            self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (self._error, OSError) as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else -1
            found = _one_line(error)
            # What is not named here leaves the connection as it is.
            self._lost |= isinstance(error, OSError) or number in _LOST | _UNREACHABLE | _NOT_NOW
            if number in _UNREACHABLE or isinstance(error, OSError):
                raise _Unreachable(self.where, "a reachable database", found or "none") from None
            if number in _LOST:
                raise Lost(self.where, "its connection to last", found or "its end") from None
            if number in _BROKEN_OFF | _NOT_NOW:
                raise BrokenOff(self.where, "a usable interaction database", found) from None
            if number == _PACKET:
                self._lost = True  # the server hangs up then
            raise StoreError(self.where, "a usable interaction database", found) from None


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

    path = parse_qs(parts.query).get("socket", [""])[0]

    def open_one() -> Any:
        connection = pymysql.connect(
            host=parts.hostname or "localhost",
            port=port,
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password or ""),
            database=name,
            charset="utf8mb4",
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S,
            write_timeout=ANSWER_S,
            autocommit=True,
            defer_connect=True,
        )
        connection.connect(_unix_socket(path) if path else None)
        return connection

    for pause_s in (*AGAIN_S, None):
        try:
            return _prepared(where, open_one, pymysql.MySQLError)
        except RuntimeError as error:
            raise StoreError(where, "a reachable database", _one_line(error)) from None
        except (BrokenOff, Lost) as error:
            if pause_s is None or isinstance(error, _Unreachable):
                raise
            time.sleep(pause_s * random.uniform(0.5, 1.0))
    raise AssertionError("unreachable")


def _prepared(where: str, connect: Callable[[], Any], errors: type[Exception]) -> MysqlConnection:
    opened = MysqlConnection(where, connect, errors)
    try:
        _prepare(opened)
    except BaseException:
        opened.close()
        raise
    return opened


def _unix_socket(path: str) -> socket.socket:
    """PyMySQL's own attempt leaves a socket open for each failure."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(CONNECT_S)
    try:
        made.connect(path)
    except OSError as error:
        made.close()
        raise OSError(
            error.errno, f"can't connect to the server at {path}: {error.strerror or error}"
        ) from None
    return made


def _prepare(connection: MysqlConnection) -> None:
    """Create the tables in an empty database; refuse one of another version.

    The version is written last. What a server that went away has left half done is taken up by whoever opens it next.
    """
    if (version := _version(connection)) != VERSION:
        with connection.alone():
            if _version(connection) is None:
                connection.change(statements(MYSQL))
        version = _version(connection)
    if version != VERSION:
        raise StoreError(connection.where, f"schema version {VERSION}", version)


def _version(connection: MysqlConnection) -> int | None:
    """None where nothing is there, or what was begun and never finished. Raises StoreError for a foreign database."""
    tables = {row[0] for row in connection.query("SHOW TABLES")}
    rows = connection.query("SELECT version FROM tarazu_schema") if "tarazu_schema" in tables else []
    if rows:
        return int(rows[0][0])
    if foreign := sorted(tables - set(TABLES)):
        raise StoreError(connection.where, "an empty database or one of tarazu", f"tables {foreign[:5]}")
    return None


def _marked(statement: str) -> str:
    """As PyMySQL wants it."""
    return statement.replace("?", "%s")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error.args[-1] if error.args else error).split())
