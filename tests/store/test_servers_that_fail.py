"""A server that goes away at any moment, and comes back: what was written is there once, whatever was not is redone."""

from __future__ import annotations

import gc
import itertools
import re
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tarazu.errors import StoreError
from tarazu.model import FilePlacement
from tarazu.store import connection, mysql
from tarazu.store.connection import BrokenOff, Lost
from tarazu.store.database import InteractionDatabase, open_database
from tests.store.test_database import PFL, STEP, TABLES, count, planned

if TYPE_CHECKING:
    from tests.store.conftest import Server

NUMBERS = itertools.count()


def url_on(socket: Path) -> str:
    """Of a new, empty database there."""
    import pymysql

    name = f"fails{next(NUMBERS)}"
    root = pymysql.connect(unix_socket=str(socket), user="root")
    with root.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    root.close()
    return f"mysql://root@localhost/{name}?socket={socket}"


class Breaking:
    """Does something once, just before or after one method of the connection's is called for the n-th time."""

    def __init__(
        self, database: InteractionDatabase, method: str, what: Callable[[], object], nth: int = 1
    ) -> None:
        self._method, self._what, self._left = getattr(database._db, method), what, nth
        setattr(database._db, method, self)
        self.after = False

    def __call__(self, *values: Any) -> Any:
        self._left -= 1
        if self._left == 0 and not self.after:
            self._what()
        result = self._method(*values)
        if self._left == 0 and self.after:
            self._what()
            raise Lost("test", "the answer to a commit", "nothing")
        return result


def again(server: Server) -> None:
    server.kill()
    server.start()


def test_a_server_killed_within_a_transaction_and_started_again_costs_nothing(killed: Server) -> None:
    with open_database(url_on(killed.socket)) as database:
        plan_id = database.new_plan(STEP)
        Breaking(database, "many", lambda: again(killed), nth=2)
        ids = database.add_files(plan_id, [planned(rank, PFL) for rank in range(20)])
        assert [row.id for row in database.files(plan_id)] == ids and len(ids) == 20
        plan = database.plan(plan_id)
        assert plan is not None and count(database, "files") == 20 and count(database, "layouts") == 1


def test_a_commit_whose_answer_is_lost_is_not_done_twice(killed: Server) -> None:
    with open_database(url_on(killed.socket)) as database:
        breaking = Breaking(database, "commit", lambda: again(killed))
        breaking.after = True
        plan_id = database.new_plan(STEP)
        assert [plan.id for plan in database.plans()] == [plan_id]
        database._db.commit = breaking._method  # type: ignore[method-assign]
        breaking = Breaking(database, "commit", killed.kill)
        Breaking(database, "begin", killed.start, nth=3)
        other = database.new_plan(STEP)
        assert [plan.id for plan in database.plans()] == [other, plan_id], "killed before: nothing was done"


def test_reading_is_done_again_and_a_server_that_stays_away_is_one_line(
    killed: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RETRY_S", (0.01, 0.01))
    monkeypatch.setattr(mysql, "AGAIN_S", (0.01, 0.01, 0.01))
    with open_database(url_on(killed.socket)) as database:
        plan_id = database.new_plan(STEP)
        killed.kill()
        Breaking(database, "_query", killed.start, nth=3)
        assert [plan.id for plan in database.plans()] == [plan_id]
        killed.kill()
        try:
            with pytest.raises(StoreError) as caught:
                database.add_files(plan_id, [planned(0)])
            with pytest.raises(StoreError):
                open_database(f"mysql://root:secret@localhost/x?socket={killed.socket}")
        finally:
            killed.start()
        assert "mysql://localhost" in str(caught.value) and "\n" not in str(caught.value)
        assert database.add_files(plan_id, [planned(0)]), "and it goes on when the server is back"


def test_a_server_that_takes_no_changes_says_so_in_one_line(killed: Server) -> None:
    import pymysql

    url = url_on(killed.socket)
    open_database(url).close()
    root = pymysql.connect(unix_socket=str(killed.socket), user="root", autocommit=True)
    with root.cursor() as cursor:
        cursor.execute("CREATE USER reader IDENTIFIED BY 'x'")
        cursor.execute("GRANT ALL ON `fails%`.* TO reader")
        cursor.execute("SET GLOBAL read_only = 1")
        try:
            with open_database(url.replace("root@", "reader:x@")) as database:
                with pytest.raises(StoreError, match="read-only") as caught:
                    database.new_plan(STEP)
                assert "\n" not in str(caught.value)
                Breaking(database, "begin", lambda: cursor.execute("SET GLOBAL read_only = 0"), nth=2)
                assert database.new_plan(STEP), (
                    "and it goes on when another server, or this one, takes changes"
                )
        finally:
            cursor.execute("SET GLOBAL read_only = 0")
    root.close()


def test_a_server_with_too_many_connections_is_tried_again(
    killed: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pymysql

    url = url_on(killed.socket)
    open_database(url).close()
    root = pymysql.connect(unix_socket=str(killed.socket), user="root", autocommit=True)
    pauses: list[float] = []
    with root.cursor() as cursor:
        cursor.execute("CREATE USER crowd IDENTIFIED BY 'x'")
        cursor.execute("GRANT ALL ON `fails%`.* TO crowd")
        cursor.execute("ALTER USER crowd WITH MAX_USER_CONNECTIONS 1")
        crowd = url.replace("root@", "crowd:x@")
        with open_database(crowd) as first:
            monkeypatch.setattr(time, "sleep", pauses.append)
            with pytest.raises(StoreError, match="max_user_connections") as caught:
                open_database(crowd)
            assert len(pauses) == len(mysql.AGAIN_S) and "\n" not in str(caught.value)
            monkeypatch.setattr(time, "sleep", lambda _: first.close())
            with open_database(crowd) as second:
                assert second.new_plan(STEP)
    root.close()


class Says:
    """PyMySQL's connection to a server that answers the next statements with an error."""

    def __init__(self, real: Any, number: int, text: str, fails: int) -> None:
        self._real, self._number, self._text = real, number, text
        self.fails = fails

    def __getattr__(self, name: str) -> Any:
        if self.fails and name in ("begin", "commit", "cursor"):
            import pymysql

            self.fails -= 1
            raise pymysql.err.OperationalError(self._number, self._text)
        return getattr(self._real, name)


LOST = {
    1927: "Connection was killed",
    3169: "The session was killed",
    4031: "The client was disconnected by the server because of inactivity",
    1156: "Got packets out of order",
}
NOT_NOW = {
    1040: "Too many connections",
    1047: "WSREP has not yet prepared node for application use",
    1203: "User x already has more than 'max_user_connections' active connections",
    1290: "The MySQL server is running with the --super-read-only option",
    1836: "Running in read-only mode",
    1969: "Query execution was interrupted (max_statement_time exceeded)",
    3032: "The server is currently in offline mode",
}


@pytest.mark.parametrize(("number", "text"), [*LOST.items(), *NOT_NOW.items()])
def test_a_server_that_ends_a_session_or_is_not_ready_is_asked_again_on_another(
    mariadb: Path, monkeypatch: pytest.MonkeyPatch, number: int, text: str
) -> None:
    monkeypatch.setattr(connection, "RETRY_S", (0.0, 0.0))
    monkeypatch.setattr(mysql, "AGAIN_S", (0.0, 0.0))
    opened: list[Says] = []
    fails = 0
    with open_database(url_on(mariadb)) as database:
        db = database._db
        assert isinstance(db, mysql.MysqlConnection)
        connect = db._connect

        def another() -> Says:
            opened.append(Says(connect(), number, text, fails))
            return opened[-1]

        db._connect = another
        db._renew()
        opened[-1].fails = 1
        plan_id = database.new_plan(STEP)
        opened[-1].fails = 1
        assert [plan.id for plan in database.plans()] == [plan_id] and len(opened) == 3
        opened[-1].fails = fails = 100
        with pytest.raises(StoreError, match=re.escape(text)) as caught:
            database.new_plan(STEP)
        assert "\n" not in str(caught.value) and len(opened) == 3 + len(connection.RETRY_S)


def test_a_small_max_allowed_packet_is_kept_to(killed: Server) -> None:
    import pymysql

    url = url_on(killed.socket)
    root = pymysql.connect(unix_socket=str(killed.socket), user="root", autocommit=True)
    with root.cursor() as cursor:
        cursor.execute("SET GLOBAL max_allowed_packet = 16384")
        try:
            with open_database(url) as database:
                plan_id = database.new_plan(STEP)
                assert len(database.add_files(plan_id, [planned(n) for n in range(1000)])) == 1000
                with pytest.raises(StoreError) as caught:
                    database.add_files(plan_id, [planned(0, key="/" + 30_000 * "x")])
                assert "\n" not in str(caught.value)
                assert database.file_count(plan_id) == 1000
        finally:
            cursor.execute("SET GLOBAL max_allowed_packet = 16777216")
    root.close()


def test_deadlocks_are_broken_off_and_done_again(mariadb: Path) -> None:
    """Two transactions that take two rows in opposite orders: MariaDB breaks one off, which is then done again."""
    url = url_on(mariadb)
    with open_database(url) as one, open_database(url) as two:
        first, second = one.new_plan(STEP), one.new_plan(STEP)
        both, calls, seen = threading.Barrier(2, timeout=120), [0, 0], []

        def body(number: int, database: InteractionDatabase, order: tuple[int, int]) -> None:
            calls[number] += 1
            for step, plan_id in enumerate(order):
                try:
                    database._grow(plan_id, 1)
                except BrokenOff as error:
                    seen.append(error)
                    raise
                if step == 0 and calls[number] == 1:
                    both.wait()

        thread = threading.Thread(
            target=lambda: connection.write(two._db, lambda: body(1, two, (second, first)))
        )
        thread.start()
        connection.write(one._db, lambda: body(0, one, (first, second)))
        thread.join(120)
        assert sorted(calls) == [1, 2] and len(seen) == 1
        assert one._db.query("SELECT SUM(bytes) FROM plans")[0][0] == 2 * 4096 + 4


def test_a_database_whose_creation_broke_off_is_finished_by_the_next(mariadb: Path) -> None:
    import pymysql

    from tarazu.store.schema import MYSQL, statements

    for done in (1, 7, len(statements(MYSQL)) - 1):
        url = url_on(mariadb)
        name = url.rpartition("/")[0] and url.split("/")[3].partition("?")[0]
        root = pymysql.connect(unix_socket=str(mariadb), user="root", database=name, autocommit=True)
        with root.cursor() as cursor:
            for statement in statements(MYSQL)[:done]:
                cursor.execute(statement)
        root.close()
        with open_database(url) as database:
            plan_id = database.new_plan(STEP)
            (row_id,) = database.add_files(plan_id, [planned(0)])
            database.set_allocation(
                plan_id, status="allocated", placements={row_id: FilePlacement(((1, 2),))}
            )
            assert {table for table in TABLES if count(database, table)} == {*TABLES}


def test_an_attempt_at_a_server_that_is_not_there_leaves_no_socket_open(tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(StoreError, match="can't connect to the server at"):
            open_database(f"mysql://root@/tarazu?socket={tmp_path}/none.sock")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        gc.collect()
    assert not [str(w.message) for w in seen if issubclass(w.category, ResourceWarning)]
