"""What opening a database meets: an older schema, a newer one, a file or a server of somebody else."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tarazu.errors import StoreError
from tarazu.model import FilePlacement
from tarazu.store.database import InteractionDatabase, open_database
from tarazu.store.schema import MYSQL, VERSION, migration
from tests.store.test_database import NUMBERS, PFL, STEP, TABLES, count, planned


def test_mysql_refuses_a_foreign_or_newer_database(mariadb: Path) -> None:
    import pymysql

    root = pymysql.connect(unix_socket=str(mariadb), user="root")
    with root.cursor() as cursor:
        cursor.execute("CREATE DATABASE foreign_one")
        cursor.execute("CREATE TABLE foreign_one.t (a INT)")
    url = f"mysql://root@localhost/foreign_one?socket={mariadb}"
    with pytest.raises(StoreError, match=r"an empty database or one of tarazu, found .*tables \['t'\]"):
        open_database(url)
    with root.cursor() as cursor:
        cursor.execute("CREATE TABLE foreign_one.tarazu_schema (version INT)")
        cursor.execute("INSERT INTO foreign_one.tarazu_schema VALUES (99)")
    root.commit()
    with pytest.raises(StoreError, match=f"schema version {VERSION}, found 99"):
        open_database(url)
    root.close()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://x", "a path or mysql://"),
        ("mysql://root@localhost", "the name of a database"),
        ("mysql://u:secret@127.0.0.1:1/x", "a reachable database"),
        ("mysql://u@h:port/x", "a port number"),
    ],
)
def test_urls_that_lead_nowhere_are_one_line_without_the_password(url: str, expected: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_database(url)
    assert expected in str(caught.value) and "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_is_private_also_under_an_open_umask(tmp_path: Path) -> None:
    path = tmp_path / "state" / "i.db"
    old = os.umask(0)
    try:
        with open_database(path) as database:
            database.new_plan(STEP)
            for file in path.parent.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    finally:
        os.umask(old)
    with open_database(path) as database:
        assert len(database.plans()) == 1
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


def _foreign_sqlite(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE t (a)")
    raw.commit()
    raw.close()


def _newer(path: Path) -> None:
    open_database(path).close()
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA user_version = {VERSION + 1}")
    raw.commit()
    raw.close()


def _torn(path: Path) -> None:
    open_database(path).close()
    data = path.read_bytes()
    path.write_bytes(data[:5000] + b"\xff" * (len(data) - 5000))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda p: p.write_bytes(b"hello world, not a database"), "an SQLite database"),
        (lambda p: p.write_bytes(b"SQLite format 3\0" + b"\1" * 50), "a usable interaction database"),
        (_foreign_sqlite, "an interaction database of tarazu"),
        (_newer, f"schema version {VERSION}, found {VERSION + 1}"),
        (_torn, "a usable interaction database"),
        (lambda p: p.mkdir(), "a readable and writable file"),
    ],
    ids=["text", "header only", "foreign", "newer", "torn", "directory"],
)
def test_unusable_files_are_refused_in_one_line_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object], expected: str
) -> None:
    path = tmp_path / "i.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError) as caught, open_database(path) as database:
        database.plans()
        database.files(1)
    assert expected in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert before is None or path.read_bytes() == before


DATA = Path(__file__).parents[1] / "data" / "database"
"""Databases as earlier versions wrote them: `<version>.db` of SQLite, `<version>.sql` of MariaDB."""


def check_version_3(database: InteractionDatabase) -> None:
    """All that is in tests/data/database/3.*, read and written by this version."""
    newer, plan = database.plans()
    assert (plan.step, plan.status, plan.policy, plan.ost_cost) == (STEP, "allocated", "tarazu", 1.5)
    assert (newer.step.uid, newer.status, newer.reason) == (1001, "later", "full")
    one, two, three = database.files(plan.id)
    assert one.placement == FilePlacement(((5, 1, 3, 0),)) and one.outcome == "hit"
    assert (two.layout, two.placement, two.actual_bytes) == (PFL, FilePlacement(((2,), (1, 0, 4))), 300 << 20)
    assert (three.layout, three.left_because, three.outcome) == (None, "tiny", "unseen")
    assert three.forecast.name.key == "/ior/it's \udcff"
    (row_id,) = database.add_files(newer.id, [planned(7, PFL)])
    database.set_allocation(
        newer.id, status="allocated", placements={row_id: FilePlacement(((1,), (2, 3, 4)))}
    )
    assert row_id == 5 and database.files(newer.id)[1].placement == FilePlacement(((1,), (2, 3, 4)))
    assert database.prune(STEP, keep=0, user_bytes=1 << 30) == 1 and [p.id for p in database.plans()] == [
        newer.id
    ]


def test_an_sqlite_database_that_version_3_wrote_is_taken_over(tmp_path: Path) -> None:
    shutil.copy(DATA / "3.db", tmp_path / "i.db")
    with open_database(tmp_path / "i.db") as database:
        check_version_3(database)
    raw = sqlite3.connect(tmp_path / "i.db")
    assert raw.execute("PRAGMA user_version").fetchone() == (VERSION,)
    raw.close()


@pytest.mark.parametrize("done", [0, 1], ids=["whole", "broken off"])
def test_a_mariadb_database_that_version_3_wrote_is_taken_over(mariadb: Path, done: int) -> None:
    import pymysql

    name = f"tarazu{next(NUMBERS)}"
    root = pymysql.connect(unix_socket=str(mariadb), user="root", autocommit=True)
    with root.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        for line in (DATA / "3.sql").read_text().splitlines():
            if not line.startswith("--"):
                cursor.execute(line)
        for statement in migration(MYSQL, 3)[:done]:
            cursor.execute(statement)
    root.close()
    with open_database(f"mysql://root@localhost/{name}?socket={mariadb}") as database:
        check_version_3(database)


UPGRADE = """
import os, signal, sqlite3, sys
from tarazu.store import sqlite
begun = [0]
def count(statement):
    begun[0] += 1
    if begun[0] == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
connect = sqlite3.connect
def traced(*values, **named):
    connection = connect(*values, **named)
    connection.set_trace_callback(count)
    return connection
sqlite3.connect = traced
sqlite.connect(sys.argv[1]).close()
"""
"""Opens a database, and is killed at the so-manyth statement."""


def test_a_kill_at_any_statement_of_an_upgrade_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    versions = []
    for number in itertools.count(1):
        path = tmp_path / f"{number}.db"
        shutil.copy(DATA / "3.db", path)
        killed = subprocess.run([sys.executable, "-c", UPGRADE, str(path), str(number)], check=False)
        raw = sqlite3.connect(path)
        versions.append(raw.execute("PRAGMA user_version").fetchone()[0])
        tables = {row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert ("writes" in tables) == (versions[-1] == VERSION) == ("directories" in tables)
        raw.close()
        with open_database(path) as database:
            check_version_3(database)
        if killed.returncode == 0:
            break
    assert versions == sorted(versions) and {*versions} == {3, VERSION} and len(versions) > 8


V3 = (
    "DROP TABLE directories",
    "ALTER TABLE plans DROP COLUMN mdt_cost",
    "ALTER TABLE plans DROP COLUMN mdt_cost_bound",
    "ALTER TABLE plans DROP COLUMN mdt_reason",
    "DROP TABLE writes",
    "UPDATE tarazu_schema SET version = 3",
)
"""What makes a database of this version one of version 3."""
V2 = (
    *V3,
    "ALTER TABLE files DROP COLUMN left_because",
    "UPDATE tarazu_schema SET version = 2",
)
"""What makes it one of version 2."""
V1 = (
    *V2,
    "DROP TABLE plan_layouts",
    "DROP INDEX plans_by_user{on_plans}",
    "ALTER TABLE plans DROP COLUMN bytes",
    "CREATE INDEX files_by_loose ON files (loose{prefix})",
    "UPDATE tarazu_schema SET version = 1",
)
"""What makes it one of version 1."""


def check_migrated(database: InteractionDatabase) -> None:
    (plan,) = database.plans()
    assert {r.layout for r in database.files(plan.id)} == {PFL}
    assert database.prune(STEP, keep=10, user_bytes=4096 + 1024) == 1, "two files count for 2 KiB"
    assert not any(count(database, table) for table in TABLES)


def test_an_sqlite_database_of_version_1_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with open_database(path) as database:
        database.add_files(database.new_plan(STEP), [planned(0, PFL), planned(1, PFL)])
    raw = sqlite3.connect(path)
    for statement in V1:
        raw.execute(statement.format(on_plans="", prefix=""))
    raw.execute("PRAGMA user_version = 1")
    raw.commit()
    raw.close()
    with open_database(path) as database:
        check_migrated(database)


def test_an_sqlite_database_of_version_2_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with open_database(path) as database:
        database.add_files(database.new_plan(STEP), [planned(0, PFL)])
    raw = sqlite3.connect(path)
    for statement in V2:
        raw.execute(statement)
    raw.execute("PRAGMA user_version = 2")
    raw.commit()
    raw.close()
    with open_database(path) as database:
        (plan,) = database.plans()
        database.add_files(plan.id, [msgspec.structs.replace(planned(1, None), left_because="tiny")])
        assert [f.left_because for f in database.files(plan.id)] == ["", "tiny"]


@pytest.mark.parametrize("done", [0, 2], ids=["whole", "broken off"])
def test_a_mysql_database_of_version_1_is_taken_over(mariadb: Path, done: int) -> None:
    import pymysql

    name = f"tarazu{next(NUMBERS)}"
    root = pymysql.connect(unix_socket=str(mariadb), user="root", autocommit=True)
    url = f"mysql://root@localhost/{name}?socket={mariadb}"
    with root.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        with open_database(url) as database:
            database.add_files(database.new_plan(STEP), [planned(0, PFL), planned(1, PFL)])
        cursor.execute(f"USE {name}")
        for statement in V1:
            cursor.execute(statement.format(on_plans=" ON plans", prefix="(180)"))
        for statement in migration(MYSQL, 1)[:done]:
            cursor.execute(statement)
    with open_database(url) as database:
        check_migrated(database)
    root.close()
