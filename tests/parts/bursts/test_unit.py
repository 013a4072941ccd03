"""The unit starts tarazu-burstd, and stays hardened."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.parts.bursts import PART
from tarazu.parts.bursts.burstd.kept import BurstsDirectory
from tests.daemons import unit_file
from tests.daemons.conftest import Site
from tests.daemons.listening import until
from tests.parts.bursts import programs

ROOT = Path(__file__).parents[3]
UNIT = PART.folder / "tarazu-burstd.service"


def test_it_starts_the_daemon_as_a_user_that_is_everywhere() -> None:
    service = unit_file.service(UNIT)
    assert service["ExecStart"] == "tarazu-burstd"
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    # Else it ends with 217/USER where there is no user slurm.
    users = (ROOT / "tarazu/daemons/systemd/tarazu.sysusers").read_text()
    assert f"\nu {service['User']} " in users


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_calls_it_little_exposed() -> None:
    unit_file.check_exposure(UNIT, 20)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_it_works_with_what_its_unit_leaves_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with site.config.open("a") as file:
        file.write(programs.settings(tmp_path))
    [daemon] = programs.PROGRAMS["burstd"]
    with (tmp_path / "burstd.log").open("a") as log:
        site.processes.append(
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.daemons.confined",
                    str(UNIT),
                    daemon,
                    "--config",
                    str(site.config),
                ],
                stdout=log,
                stderr=log,
                text=True,
                cwd=ROOT,
            )
        )
    try:
        until(lambda: BurstsDirectory(tmp_path / "tarazu-burstd").told().get("history"))
    finally:
        site.stop()
