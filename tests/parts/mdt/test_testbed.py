"""Four MDTs, a real ossd on their server and a real mdsd: the slow one is seen, one that is closed or away too."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarazu import config
from tarazu.ost_state import Verdict
from tarazu.parts.mdt.asking import mdts_of
from tarazu.parts.mdt.model import Mdt
from tarazu.sim.testbed import Testbed, down, processes, up
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import daemon_commands, program, wait_until_ready
from tarazu.wire.overview import Overview, overview
from tests.testbed.conftest import memory_directory  # noqa: F401
from tests.waiting import LONG_S, until

SLOW = 2
MAKES = """
import os, sys, time
for n in range(10**6):
    if os.path.exists('stop'):
        break
    for mdt in range(4):
        for i in range(25):
            os.close(os.open(f'd{mdt}/{n}.{i}', os.O_CREAT | os.O_WRONLY))
        os.mkdir(f'd{mdt}/{n}')
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def bed(memory_directory: Path) -> Iterator[Testbed]:  # noqa: F811
    bed = up(memory_directory / "mdts", osss=1, osts_per_oss=2, mdts=4, slow_mdts={SLOW: 5.0}, interval_s=1.0)
    configure(bed, {"mdsd": {"stale_after_s": 12}})
    bed.start_daemons()
    wait_until_ready(bed)
    for mdt in range(4):
        made = bed.exec(0, ["lfs", "mkdir", "-i", str(mdt), f"d{mdt}"], cwd=bed.client_mount(0))
        assert made.returncode == 0
    yield bed
    processes.stop(bed.directory)
    down(bed.directory)


@pytest.fixture(scope="module")
def busy(bed: Testbed) -> Iterator[Testbed]:
    """A job makes as many files on each."""

    def job() -> None:
        bed.exec(0, [sys.executable, "-c", MAKES], cwd=bed.client_mount(0))

    maker = threading.Thread(target=job)
    maker.start()
    yield bed
    (bed.mount / "stop").touch()
    maker.join(LONG_S)
    assert not maker.is_alive()


def mdts(bed: Testbed) -> tuple[Mdt, ...]:
    settings = config.load(bed.directory / "etc" / "tarazu.toml", {})
    settings = config.override(settings, "clientd", socket=str(bed.client_root(0) / "clientd.sock"))
    return mdts_of(settings, bed.fs_name)


def wait_for(bed: Testbed, so: Callable[[tuple[Mdt, ...]], bool]) -> tuple[Mdt, ...]:
    deadline = time.monotonic() + LONG_S
    while not so(seen := mdts(bed)):
        assert time.monotonic() < deadline, seen
        time.sleep(0.3)
    return seen


def test_the_testbed_runs_an_ossd_on_its_mds_where_there_are_several_mdts(bed: Testbed) -> None:
    assert "tarazu-ossd-mds" in {daemon.name for daemon in daemon_commands(bed)}
    assert [(m.index, m.server) for m in mdts(bed)] == [(i, "mds") for i in range(4)]


def test_the_slow_one_of_four_is_seen(busy: Testbed) -> None:
    seen = wait_for(busy, lambda mdts: all(m.relative_speed is not None for m in mdts))
    assert seen[SLOW].relative_speed == pytest.approx(0.2, rel=0.1)
    assert seen[SLOW].judged.verdict is Verdict.SICK
    for m in seen:
        if m.index != SLOW:
            assert m.relative_speed == pytest.approx(1.0, rel=0.1) and m.judged.well
        assert m.creates_per_s > 0 and m.operations_per_s > m.creates_per_s
    assert seen[SLOW].create_s == pytest.approx(5 * (seen[0].create_s or 0), rel=0.2)


def test_status_names_what_each_does(busy: Testbed) -> None:
    wait_for(busy, lambda mdts: all(m.relative_speed is not None for m in mdts))

    def printed(*options: str) -> str:
        done = busy.exec(0, [program("tarazu"), "status", *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def as_expected() -> Overview | None:
        """A server that could not report for a while is away meanwhile."""
        found = overview(json.loads(printed("--json"))["mdsd"])
        if [of.verdict for of in found.others] != ["ok", "ok", "sick", "ok"]:
            return None
        return found if found.others[0].operations_per_s is not None else None

    found = until(as_expected)
    assert found and found.metadata_per_s is not None and found.metadata_per_s > 0
    own = json.loads(printed("--json"))["mdsd"]["parts"]["mdt"]["file_systems"][busy.fs_name]
    assert {"open", "mknod", "mkdir", "close"} <= own[0]["operations"].keys()
    assert "SICK (" in printed()


def test_a_closed_one_is_not_usable_and_comes_back(bed: Testbed) -> None:
    bed.set_mdt(1, no_create=True)
    seen = wait_for(bed, lambda mdts: mdts[1].no_create)
    assert [m.usable for m in seen] == [True, False, True, True]
    bed.set_mdt(1, no_create=False)
    wait_for(bed, lambda mdts: mdts[1].usable)


def test_one_without_inodes_is_full(bed: Testbed) -> None:
    bed.set_mdt(3, inodes_used=1.0)
    (full,) = wait_for(bed, lambda mdts: mdts[3].files_free == 0)[3:]
    assert full.judged.verdict is Verdict.FULL and not full.usable
    bed.set_mdt(3, inodes_used=0)
    wait_for(bed, lambda mdts: mdts[3].usable)


def test_a_silent_server_leaves_its_mdts_stale(bed: Testbed) -> None:
    processes.kill(bed.directory, "tarazu-ossd-mds")
    seen = wait_for(bed, lambda mdts: all(m.stale for m in mdts))
    assert not any(m.usable for m in seen) and all(m.judged.verdict is Verdict.SILENT for m in seen)
    bed.start_daemons()
    wait_for(bed, lambda mdts: not any(m.stale for m in mdts))
