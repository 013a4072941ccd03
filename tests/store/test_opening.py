"""What opening a database meets: another schema, a file or a server of somebody else."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tarazu.errors import StoreError
from tarazu.store.database import open_database
from tarazu.store.schema import VERSION
from tests.store.test_database import PFL, STEP, planned


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


def _of_version(path: Path, version: int) -> None:
    open_database(path).close()
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA user_version = {version}")
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
        (lambda p: _of_version(p, VERSION + 1), f"schema version {VERSION}, found {VERSION + 1}"),
        (lambda p: _of_version(p, VERSION - 1), f"schema version {VERSION}, found {VERSION - 1}"),
        (_torn, "a usable interaction database"),
        (lambda p: p.mkdir(), "a readable and writable file"),
    ],
    ids=["text", "header only", "foreign", "newer", "older", "torn", "directory"],
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


def test_another_process_that_ends_leaves_the_log_to_who_has_the_file_open(tmp_path: Path) -> None:
    """However often this process has opened and closed it meanwhile: a `close` of any descriptor drops its locks."""
    path = tmp_path / "i.db"
    ends = "import sys; from tarazu.store.database import open_database; open_database(sys.argv[1]).close()"
    with open_database(path) as held:
        held.new_plan(STEP)
        open_database(path).close()
        subprocess.run([sys.executable, "-c", ends, path], check=True)
        assert (tmp_path / "i.db-wal").exists()
        plan = held.new_plan(STEP)
        held.add_files(plan, [planned(0, PFL)])
    with open_database(path) as again:
        assert again.file_count(plan) == 1
