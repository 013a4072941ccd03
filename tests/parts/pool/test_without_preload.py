"""A program that nothing can be preloaded into, with real daemons: the pool of good OSTs keeps it away from a sick
and from a full OST.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.sim.testbed import Testbed, down, up
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.library import library_directory

STATIC = library_directory() / "testbed" / "iorlike-static"
GOOD = {0, 1, 2, 4, 5, 7}
PATIENCE_S = 300.0

pytestmark = [pytest.mark.long, pytest.mark.skipif(not STATIC.exists(), reason="needs a static libc")]


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Testbed]:
    fill = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.99, 0.0]
    made = up(tmp_path / "tb", osss=4, osts_per_oss=2, slow={3: 0.05}, fill=fill, interval_s=1)
    configure(made, {"part.pool": {"mode": "apply"}})
    made.start_daemons()
    wait_until_ready(made)
    yield made
    down(made.directory)


def tarazu(environment: dict[str, str], *words: str, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tarazu", *words],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stdout


def until(true: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.3)


def osts(bed: Testbed, directory: str) -> set[int]:
    files = sorted(p for p in (bed.mount / directory).rglob("*") if p.is_file())
    return {i for p in files for i in bed.layout(p.relative_to(bed.mount)).osts[0]}


def test_it_avoids_a_sick_and_a_full_ost(bed: Testbed) -> None:
    mount, mds = bed.client_mount(), bed.node_environment("mds")
    write = [str(STATIC), "-F", "-n", "12", "-b", "16m"]
    for name in ("before", "pooled"):
        (mount / name).mkdir()
    # What shows that an OST is sick is others' load; by itself the program meets it.
    assert bed.exec(0, [*write, "-S", "8", "-b", "64m", "-o", f"{mount}/before/f.{{step}}"]).returncode == 0
    assert 3 in osts(bed, "before")

    def amiss() -> set[int]:
        pools = json.loads(tarazu(mds, "change", "pool", "--json"))["pools"]
        return {change["ost"] for pool in pools for change in pool["round"]["waiting"]}

    until(lambda: amiss() == {3, 6}, "OST 3 is sick and OST 6 is full")
    # The keeper makes the pool, and directories follow it.
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tarazu.parts.pool.service"], env=os.environ | mds, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: set(bed.pools.get("good", [])) == GOOD, "the pool has the good OSTs")
        bed.exec(0, ["lfs", "setstripe", "-p", "good", mount / "pooled"])
        assert bed.exec(0, [*write, "-n", "18", "-o", f"{mount}/pooled/below/f"]).returncode == 0
        assert osts(bed, "pooled") == GOOD
    finally:
        keeper.terminate()
        assert keeper.wait(300) == 0
    assert "restored: pool " in tarazu(mds, "change", "pool", "--undo")
    assert "good" not in bed.pools and bed.crashed() is None
