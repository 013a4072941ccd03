"""`tarazu job explain --costs` and `status` on a system with a sick OST, with the real daemons."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.daemons import asking
from tarazu.model import Ost
from tarazu.sim.testbed import Testbed, down, up
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready

SICK = 5


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    """12 OSTs on 4 servers, with the daemons; OST 5 is 20 times slower, and all have been written to."""
    with tempfile.TemporaryDirectory(prefix="tz-sick-") as directory:
        bed = up(Path(directory) / "tb", osss=4, osts_per_oss=3, interval_s=0.2, slow={SICK: 20.0})
        try:
            configure(bed, {})
            bed.start_daemons()
            wait_until_ready(bed)
            script = "for i in $(seq 24); do dd if=/dev/zero of=$TESTBED_MOUNT/f$i bs=128M count=1; done"
            bed.exec(0, ["sh", "-c", script], capture_output=True).check_returncode()
            bed.refresh()
            yield bed
        finally:
            down(bed.directory)


def asked(bed: Testbed, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What a command prints with --json, asked as on a server: without clientd."""
    assert main([*words, "--json", "--config", str(bed.directory / "etc/tarazu.toml")]) == 0
    return json.loads(capsys.readouterr().out)


def wait_for(bed: Testbed, holds: Callable[[Ost], Any], ost: int = SICK) -> None:
    settings = config.load(bed.directory / "etc/tarazu.toml")
    deadline = time.monotonic() + 300
    while not holds(asking.view_of(settings, "")[0].osts[ost]):
        assert time.monotonic() < deadline, asking.view_of(settings, "")[0].osts
        time.sleep(0.1)


@pytest.fixture
def sick(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Testbed:
    monkeypatch.setenv("TARAZU_CLIENTD_SOCKET", "/nonexistent")
    wait_for(testbed, lambda ost: ost.write_bytes_per_s is not None)
    for ost in range(12):  # another test's may be in the view still, and counts for the share
        wait_for(testbed, lambda ost: not ost.degraded, ost)
    return testbed


def test_costs_of_the_live_view(sick: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    shown = asked(sick, capsys, "job", "explain", "--costs")
    assert [o["ost"] for o in shown["osts"]] == list(range(12))
    assert shown["osts"][SICK]["speed"] == pytest.approx(1 / 20, rel=0.3)
    assert shown["osts"][SICK]["share"] < 0.2
    assert {o["source"] for o in shown["osts"]} == {"brw_stats"}
    assert shown["weights"]["fill_budget"] == 0.02
    assert main(["job", "explain", "--costs", "--config", str(sick.directory / "etc/tarazu.toml")]) == 0
    table = capsys.readouterr().out
    assert "oss2" in table and "weights ([allocate]): fill_budget 0.02" in table
    assert "speed by" in table and table.count(" brw_stats") == 12


def test_the_status_names_the_source_of_a_speed(
    testbed: Testbed, sick: Testbed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TARAZU_CLIENTD_SOCKET", str(testbed.client_root() / "clientd.sock"))
    shown = asked(testbed, capsys, "status")["mdsd"]
    ost = shown["file_systems"]["lustre"]["osts"][SICK]
    assert ost["speed_source"] == "brw_stats" and ost["relative_speed"] == pytest.approx(1 / 20, rel=0.3)
    assert shown["osses"]["oss2"]["impossible"] == []
    assert main(["status", "--config", str(testbed.directory / "etc/tarazu.toml")]) == 0
    table = capsys.readouterr().out
    assert "of peers" in table and table.count(" brw_stats") == 12 and " 1/" in table
