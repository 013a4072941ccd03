"""State on a file system that answers locks with an error: nobody else is suspected, and what can go on goes on."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu import locks

ANSWERS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)

EVERY_USE = r"""
import sys
from pathlib import Path
from tarazu.daemons.service import claim
from tarazu.errors import TarazuError
from tarazu.run.leftovers import Lease, is_left
from tarazu.sim.study.study import _alone

here = Path(sys.argv[1])
def refused(do):
    try:
        do()
    except TarazuError as error:
        print(error)
refused(lambda: claim(here / "page", "another one"))
with _alone(here):
    pass
lease = Lease()
lease.take(here)
print("left" if is_left(here) else "in use")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "nolocks.so"
    source = Path(__file__).parent / "nolocks.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wno-nonnull-compare", source, "-o", path, "-ldl"], check=True)
    return path


@pytest.fixture
def without_locks(library: Path, tmp_path: Path) -> dict[str, str]:
    place = {"NOLOCKS": str(tmp_path), "NOLOCKS_ERRNO": str(errno.ENOSYS), "LD_PRELOAD": str(library)}
    return os.environ | place | {"TARAZU_RUN_STATE_DIR": str(tmp_path / "state")}


@pytest.mark.parametrize("number", ANSWERS, ids=errno.errorcode.get)
def test_nobody_is_said_to_hold_a_lock_where_there_are_none(
    without_locks: dict[str, str], tmp_path: Path, number: int
) -> None:
    env = without_locks | {"NOLOCKS_ERRNO": str(number)}
    command = [sys.executable, "-c", EVERY_USE, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    *refusals, lease = done.stdout.splitlines()
    assert len(refusals) == 1 and lease == "in use"
    assert all(line.endswith(f"{locks.EXPECTED}, found {os.strerror(number)!r}") for line in refusals)


def test_a_database_without_locks_is_not_said_to_be_locked(
    without_locks: dict[str, str], tmp_path: Path
) -> None:
    code = "import sys; from tarazu.store import sqlite; sqlite.BUSY_S = 0; sqlite.connect(sys.argv[1])"
    env = without_locks | {"NOLOCKS_ERRNO": str(errno.ENOLCK)}  # SQLite takes it for a lock of another's
    command = [sys.executable, "-c", code, str(tmp_path / "tarazu.db")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("found 'No locks available'")


def test_history_is_gathered_where_there_are_no_locks(without_locks: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "state/steps").mkdir(parents=True)
    command = [sys.executable, "-m", "tarazu", "history", "gather"]
    done = subprocess.run(command, env=without_locks, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
