"""A process that makes more names than can be counted: its memory, and what becomes of the names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.trace.spool import read_spools
from tests.preload.conftest import Placed, Runs

BOUND_KIB = 6 << 10
HIT, MISS = 1, 3
NOT_COUNTED = 0xFFFFFFFF


@pytest.fixture
def plain() -> Iterator[Runs]:
    """On tmpfs where there is one: a file takes microseconds."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as work:
        mount = Path(work) / "mnt"
        mount.mkdir()
        yield Runs(mount, Path(work))


def test_memory_grew_with_the_names_of_files(plain: Runs, compiled: Any) -> None:
    """300 MB for a million, 24 for these; the bound is reached far below."""
    program = compiled("names.c")
    few = int(plain([program, "1000", "name.%ld.x", "f"]).stdout)
    done = plain([program, "80000", "name.%ld.x", "f"], TARAZU_SPOOL_KIB="16384")
    assert (done.returncode, done.stderr) == (0, "")
    assert few < 1024 < int(done.stdout) < BOUND_KIB


def test_memory_grew_with_the_length_of_directories(plain: Runs, compiled: Any) -> None:
    deep = "/".join(["d" * 250] * 12)
    for i in range(1000):
        (plain.mount / deep / str(i)).mkdir(parents=True)
    done = plain([compiled("names.c"), "1000", f"{deep}/%ld/f", "f"])
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < 4 << 10
    assert len(plain.creates) == 1001


def test_a_name_that_was_not_counted_is_not_the_first_of_its_template(placed: Placed, compiled: Any) -> None:
    keys = {"/run.1.x": 0, "/run.2.x": 1, "/new.1": 0, "/exact": 0}
    rows = [
        placed.row(key, (number, 5), n=n, row_id=number) for number, (key, n) in enumerate(keys.items(), 1)
    ]
    placed.map(*rows)
    too_long, after = "x" * 256 + ".%ld", ["run.6.x", "new.8", "exact", "run.5.x"]
    for count, more in ((10, {"/run.6.x": 2, "/new.8": 3}), (330_000, {})):
        placed.bed.clear()
        done = placed([compiled("names.c"), str(count), too_long, "run.5.x", *after])
        assert (done.returncode, done.stderr) == (0, "")
        creates = {c.key: c for c in placed.creates}
        found = {key: c.row_id for key, c in creates.items() if c.outcome == HIT}
        assert found == {"/run.5.x": 1, "/exact": 4} | more
        assert placed.osts("exact") == [[4, 5]] and placed.osts("run.5.x") == [[1, 5]]
        missed = {key for key, c in creates.items() if c.outcome == MISS and c.nth_loose == NOT_COUNTED}
        assert missed == {"/run.6.x", "/new.8"} - {*more}


def test_the_leader_goes_on_counting(plain: Runs, compiled: Any) -> None:
    """Names without a number were all the first of their template."""
    after = [f"run.{i}.x" for i in range(5)]
    plain([compiled("names.c"), "330000", "x" * 256 + ".%ld", "run.9.x", *after, "other.1", *after])
    (path,) = plain.spool_directory.glob("*ended*")
    (spool,) = read_spools(path)
    numbers = {c.key: (c.nth_precise, c.nth_loose) for c in spool.creates}
    assert [numbers[f"/run.{i}.x"][1] for i in (9, 0, 1, 2, 3, 4)] == [0, 1, 2, 3, 4, 5]
    assert numbers["/run.3.x"][0] == numbers["/other.1"][0] == numbers["/other.1"][1] == 0
