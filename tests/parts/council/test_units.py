"""The units start the part's daemons, and stay hardened."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu import config
from tarazu.parts.council import PART, here
from tarazu.sim.testbed.processes import free_port
from tests.daemons import unit_file
from tests.daemons.conftest import Site
from tests.waiting import until

ROOT = Path(__file__).parents[3]
COUNCIL, ANNOUNCER = (PART.folder / f"tarazu-{name}.service" for name in ("council", "announcer"))


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.stop()


def service_of(unit: Path) -> configparser.SectionProxy:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment]
    parsed.read(unit)
    return parsed["Service"]


@pytest.mark.parametrize("unit", [COUNCIL, ANNOUNCER], ids=lambda path: path.stem)
def test_it_starts_its_daemon_with_the_rights_that_it_needs(unit: Path) -> None:
    service = service_of(unit)
    assert service["ExecStart"] == unit.stem
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    assert "ProcSubset" not in service, "it would hide /proc/fs/lustre"
    if unit == ANNOUNCER:
        # Who may write Lustre's parameters, and no others.
        assert service["User"] == "root" and service["CapabilityBoundingSet"] == "CAP_DAC_READ_SEARCH"
        assert (service["ReadOnlyPaths"], service["PrivateDevices"]) == ("/sys /proc/sys", "yes")
    else:
        # Else it ends with 217/USER.
        users = (ROOT / "tarazu/daemons/systemd/tarazu.sysusers").read_text()
        assert f"\nu {service['User']} " in users


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize(("unit", "most"), [(COUNCIL, 20), (ANNOUNCER, 30)], ids=["council", "announcer"])
def test_systemd_calls_it_little_exposed(unit: Path, most: int) -> None:
    """Of ten, in tenths. What changes Lustre's parameters must be root."""
    unit_file.check_exposure(unit, most)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_they_work_with_what_their_units_leave_them(daemons: Site) -> None:
    """Capabilities, no new privileges, no memory that is both writable and executable."""
    with daemons.config.open("a") as file:
        address = f"tcp://127.0.0.1:{free_port()}"
        file.write(f"[part.council]\nmode = 'apply'\nlevers = ['nrs']\naddress = '{address}'\n")
    oss = ["--name", "oss1", "--root", str(ROOT / "tests/data/lustre/oss")]
    for unit, module, options in (
        (COUNCIL, "service", []),
        (ANNOUNCER, "announcer.start", oss),
    ):
        words = [str(unit), f"tarazu.parts.council.{module}", "--config", str(daemons.config), *options]
        with (daemons.directory / f"{unit.stem}.log").open("a") as log:
            daemons.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.daemons.confined", *words],
                    stdout=log,
                    stderr=log,
                    text=True,
                    cwd=ROOT,
                )
            )
    settings = config.load(str(daemons.config))
    until(lambda: "oss1" in here.ask(settings)["nodes"])
    assert here.ask(settings)["nodes"]["oss1"]["kind"] == "oss"
    assert (daemons.directory / "tarazu-announcer/lock").exists()
    assert "WARNING" not in daemons.log("tarazu-council") + daemons.log("tarazu-announcer")
