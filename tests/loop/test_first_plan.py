"""The first plan after a start is as quick as any: whatever it needs was loaded before the daemons were ready."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tests.loop.conftest import Loop, patient

FILES = 16
OF_PLANS = ("tarazu-mdsd", "tarazu-clientd-client1")


def test_once_ready_no_daemon_imports_anything_for_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = testbeds.up(tmp_path / "tb", clients=1, osss=1, osts_per_oss=35)
    try:
        configure(testbed, patient({"layout": {"min_size": 0}, "allocate": {"least_gain": -1.0}}))
        monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # Python lists each import on standard error
        testbed.start_daemons()
        monkeypatch.delenv("PYTHONPROFILEIMPORTTIME")
        wait_until_ready(testbed)
        loop = Loop(testbed)
        logs = [testbed.directory / "log" / f"{name}.log" for name in OF_PLANS]
        before = [log.read_text() for log in logs]
        assert all("import time:" in text for text in before)
        files = " ".join(f"{loop.mount()}/f.{number}" for number in range(FILES))
        for _ in range(2):
            loop.run("sh", "-c", f"for f in {files}; do head -c 1000000 /dev/zero > $f; done", app="first")
        assert len([row for row in loop.rows("first") if row["placement"]]) == FILES
        after = [log.read_text()[len(text) :] for log, text in zip(logs, before, strict=True)]
        assert not [line for text in after for line in text.splitlines() if line.startswith("import time:")]
    finally:
        testbeds.down(testbed.directory)
