"""The unit starts `tarazu-ossd --routers`, and stays hardened."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.parts.routers import PART
from tests.daemons import unit_file
from tests.daemons.conftest import Site

ROOT = Path(__file__).parents[3]
UNIT = PART.folder / "tarazu-ossd-routers.service"


def test_it_starts_its_half_of_ossd_with_the_rights_that_it_needs() -> None:
    service = unit_file.service(UNIT)
    assert service["ExecStart"].split() == ["tarazu-ossd", "--routers"]
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    assert "ProcSubset" not in service  # it would hide /proc/fs/lustre
    # Who may change LNet's rules: see the unit.
    assert service["User"] == "root"
    assert service["CapabilityBoundingSet"] == "CAP_SYS_ADMIN CAP_DAC_READ_SEARCH"
    assert (service["DevicePolicy"], service["DeviceAllow"]) == ("closed", "/dev/lnet rw")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_calls_it_little_exposed() -> None:
    unit_file.check_exposure(UNIT, 30)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_it_works_with_what_its_unit_leaves_it(site: Site) -> None:
    with site.config.open("a") as file:
        file.write("[part.routers]\nmode = 'advise'\n")
    site.mdsd()
    options = ["--routers", "--name", "oss1", "--root", str(ROOT / "tests/data/lustre/oss")]
    with (site.directory / "ossd-routers.log").open("a") as log:
        confined = [sys.executable, "-m", "tests.daemons.confined", str(UNIT), "tarazu.daemons.ossd.service"]
        site.processes.append(
            subprocess.Popen(
                [*confined, "--config", str(site.config), *options],
                stdout=log,
                stderr=log,
                text=True,
                cwd=ROOT,
            )
        )
    site.wait_status(lambda status: status["parts"]["routers"]["osses"])
    assert (site.directory / "tarazu-routers" / "lock").exists() and "WARNING" not in site.log("ossd-routers")
