"""SQLite on a full, a read-only or a damaged file: one line, nothing half done, nothing lost without a word."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tarazu.daemons.clientd.stored_plans import StoredPlans
from tarazu.errors import StoreError
from tarazu.store.connection import Damaged
from tarazu.store.database import open_database
from tarazu.wire import local
from tests.hostile.database import mutate_database
from tests.store.test_database import PFL, STEP, planned

DATA = Path(__file__).parents[1] / "data" / "database"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_a_full_and_a_read_only_disk_are_one_line_and_leave_what_was_there(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], check=True)
    try:
        path = tmp_path / "i.db"
        with open_database(path) as database:
            kept = database.new_plan(STEP)
            database.add_files(kept, [planned(0, PFL)])
            large = database.new_plan(STEP)
            with pytest.raises(StoreError, match="full") as caught:
                database.add_files(large, [planned(n, PFL, f"/{n}/" + 200 * "x") for n in range(5_000)])
            assert "\n" not in str(caught.value) and str(path) in str(caught.value)
            assert database.file_count(kept) == 1 and database.file_count(large) in (0, 2_000, 4_000)
        subprocess.run(["mount", "-o", "remount,size=16m", tmp_path], check=True)
        with open_database(path) as database:
            database.delete(large)
            again = database.new_plan(STEP)
            assert len(database.add_files(again, [planned(n, PFL) for n in range(5_000)])) == 5_000
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        with pytest.raises(StoreError) as caught, open_database(path) as database:
            database.new_plan(STEP)
        assert "read" in str(caught.value).lower() and "\n" not in str(caught.value)
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_damaged_file_is_set_aside_once_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, aside = tmp_path / "i.db", tmp_path / "i.db.damaged"
    data = (DATA / "7.db").read_bytes()
    damaged = data[:8192] + b"\xff" * 20_000 + data[28_192:]
    path.write_bytes(damaged)
    with caplog.at_level(logging.ERROR):
        stored = StoredPlans(str(path))
    assert stored.rows(local.PlansQuery(), 0).plan is None and aside.exists()
    assert str(aside) in caplog.text and "cannot be explained" in caplog.text
    stored.close()
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="no more than one damaged database"):
        StoredPlans(str(path))
    assert path.read_bytes()[8192:20_000] == damaged[8192:20_000], "and this one stays where it is"


def test_a_file_of_somebody_else_is_never_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    path.write_bytes(b"hello world, not a database")
    with pytest.raises(StoreError, match="an SQLite database"):
        StoredPlans(str(path))
    assert path.read_bytes() == b"hello world, not a database" and len(list(tmp_path.iterdir())) == 1


def test_a_row_that_was_changed_is_one_line(tmp_path: Path) -> None:
    import sqlite3

    shutil.copy(DATA / "7.db", tmp_path / "i.db")
    open_database(tmp_path / "i.db").close()
    with sqlite3.connect(tmp_path / "i.db") as raw:
        raw.execute("UPDATE layouts SET layout = '{'")
        raw.execute("UPDATE plans SET step = '[]' WHERE id = 2")
    raw.close()
    with open_database(tmp_path / "i.db") as database:
        for look in (database.plans, lambda: database.files(1)):
            with pytest.raises(Damaged, match="rows as tarazu writes them") as caught:
                look()
            assert "\n" not in str(caught.value)
        assert database.new_plan(STEP)


def test_mutants_of_a_database_are_used_refused_or_set_aside() -> None:
    result = mutate_database(60, seed=5)
    assert sum(result.ends.values()) == 60 and {"used", "set aside"} <= {*result.ends}
