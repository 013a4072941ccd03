"""The unit starts `tarazu-pool`, and stays hardened."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.parts.pool import PART
from tests.daemons import unit_file
from tests.daemons.conftest import Site
from tests.waiting import until

ROOT = Path(__file__).parents[3]
UNIT = PART.folder / "tarazu-pool.service"


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.stop()


def test_it_has_the_rights_that_it_needs() -> None:
    service = unit_file.service(UNIT)
    assert service["ExecStart"] == "tarazu-pool"
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    # Who may change the MGS's pools: see the unit.
    assert service["User"] == "root"
    assert service["CapabilityBoundingSet"] == "CAP_SYS_ADMIN CAP_DAC_READ_SEARCH"
    assert (service["DevicePolicy"], service["DeviceAllow"]) == ("closed", "/dev/obd rw")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_calls_it_little_exposed() -> None:
    unit_file.check_exposure(UNIT, 30)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_it_works_with_what_its_unit_leaves_it(daemons: Site) -> None:
    with daemons.config.open("a") as file:
        file.write("[part.pool]\nmode = 'advise'\n")
    daemons.mdsd()
    daemons.ossd(root=ROOT / "tests/data/lustre/oss")
    with (daemons.directory / "pool.log").open("a") as log:
        confined = [sys.executable, "-m", "tests.daemons.confined", str(UNIT), "tarazu.parts.pool.service"]
        daemons.processes.append(
            subprocess.Popen(
                [*confined, "--config", str(daemons.config)], stdout=log, stderr=log, text=True, cwd=ROOT
            )
        )
    until(lambda: "with apply: lctl pool_new lustre.good" in daemons.log("pool"))
