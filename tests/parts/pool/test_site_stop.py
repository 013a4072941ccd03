"""The site's stop, with the pool's keeper beside jobs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tests.loop.conftest import loop  # noqa: F401
from tests.loop.test_off import as_root, running, steady  # noqa: F401
from tests.waiting import LONG_S, until

if TYPE_CHECKING:
    from tests.loop.conftest import Loop


@as_root
@pytest.mark.long
def test_every_lever_at_once_obeys_the_site_s_stop(steady: Loop, tmp_path: Path) -> None:  # noqa: F811
    """A running job, a new one, the pool keeper as a process, and each command that sets something."""
    bed = steady.testbed
    lever = {
        "PATH": f"{bed.directory}/mds/bin:{bed.environment(0)['PATH']}",
        "TARAZU_STATE_DIRECTORY": str(tmp_path),
        "TARAZU_PART_POOL_MODE": "apply",
        "TARAZU_OSSD_INTERVAL_S": "1",
    }
    stop = bed.directory / "etc" / "stop"
    keep = demo.tarazu_command("change", "pool", "--keep")
    try:
        with running(steady) as job:
            job.make_until(True)
            assert steady.tarazu("disable", "--site", "--reason", "a test").returncode == 0
            environ = os.environ | bed.environment(0) | lever
            with subprocess.Popen(keep, env=environ, stderr=subprocess.PIPE, text=True) as keeper:
                try:
                    job.make_until(False)
                    assert "stopped by" in steady.tarazu("change", "pool", "--apply", env=lever).stdout
                    assert "stopped by" in steady.tarazu("top", "--once").stdout
                    bed.refresh()
                    assert "stopped by" in json.dumps(steady.json("status")["mdsd"]["gate"])
                    assert keeper.poll() is None and "good" not in bed.pools
                    assert steady.tarazu("enable", "--site").returncode == 0
                    job.make_until(True)
                    until(lambda: len(bed.pools.get("good", ())) == len(bed.oss_of_ost))
                    # Once more: what is set meanwhile is taken back all the same.
                    assert steady.tarazu("disable", "--site").returncode == 0
                    assert steady.tarazu("change", "pool", "--undo", env=lever).returncode == 0
                    assert "good" not in bed.pools
                finally:
                    keeper.terminate()
                    assert keeper.wait(LONG_S) == 0
            job.end()
    finally:
        stop.unlink(missing_ok=True)
