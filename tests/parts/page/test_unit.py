"""The unit starts `tarazu-page`, and stays hardened."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tarazu.parts.page import PART
from tarazu.sim.testbed.processes import free_port
from tests.daemons import unit_file
from tests.daemons.conftest import Site, patiently

ROOT = Path(__file__).parents[3]
UNIT = PART.folder / "tarazu-page.service"


def test_it_has_a_user_of_its_own_and_no_rights() -> None:
    service = unit_file.service(UNIT)
    assert service["ExecStart"] == "tarazu-page" and service["CapabilityBoundingSet"] == ""
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    # Else it ends with 217/USER.
    assert "\nu tarazu-page " in (ROOT / "tarazu/daemons/systemd/tarazu.sysusers").read_text()
    assert service["User"] == "tarazu-page"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_calls_it_little_exposed() -> None:
    unit_file.check_exposure(UNIT, 20)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_it_works_with_what_its_unit_leaves_it(site: Site) -> None:
    page = f"127.0.0.1:{free_port()}"
    with site.config.open("a") as file:
        file.write(f"[part.page]\nlisten = '{page}'\n")
    site.mdsd()
    site.ossd(root=ROOT / "tests/data/lustre/oss")
    with (site.directory / "page.log").open("a") as log:
        confined = [sys.executable, "-m", "tests.daemons.confined", str(UNIT), "tarazu.parts.page.service"]
        site.processes.append(
            subprocess.Popen(
                [*confined, "--config", str(site.config)], stdout=log, stderr=log, text=True, cwd=ROOT
            )
        )
    patiently(lambda: "All well: 5 OSTs" in urlopen(f"http://{page}/").read().decode())
