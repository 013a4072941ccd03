"""The systemd units start what the package installs, and stay hardened."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tarazu.wire import local
from tarazu.wire.channel import connect
from tests.daemons import unit_file
from tests.daemons.conftest import Site, allocation, ask
from tests.daemons.listening import until

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "tarazu/daemons/systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_starts_a_program_of_the_package(unit: Path) -> None:
    service = unit_file.service(unit)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    program, *options = service["ExecStart"].split()
    assert program in scripts and unit.stem == program and not options
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    # It would hide /proc/fs/lustre.
    assert "ProcSubset" not in service
    user = service["User"]
    # Else it ends with 217/USER.
    assert f"\nu {user} " in (ROOT / "tarazu/daemons/systemd/tarazu.sysusers").read_text()


def test_all_daemons_have_one() -> None:
    names = ["tarazu-clientd", "tarazu-mdsd", "tarazu-ossd"]
    assert sorted(unit.stem for unit in UNITS) == names


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_itself_understands_a_unit_and_calls_it_little_exposed(unit: Path) -> None:
    unit_file.check_exposure(unit, 20)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_the_programs_of_all_units_where_packages_put_them(tmp_path: Path) -> None:
    """Without a drop-in: in a tree with the programs in /usr/bin `systemd-analyze verify` has not a word to say."""
    units = tmp_path / "usr/lib/systemd/system"
    shutil.copytree("/lib/systemd/system", units, symlinks=True)
    (tmp_path / "usr/bin").mkdir()
    for link in ("bin", "lib"):
        (tmp_path / link).symlink_to(f"usr/{link}")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for program in (*scripts, "kill"):
        (tmp_path / "usr/bin" / program).write_text("#!/bin/sh\n")
        (tmp_path / "usr/bin" / program).chmod(0o755)
    for unit in UNITS:
        shutil.copy(unit, units)
    command = ["systemd-analyze", "verify", "--man=no", f"--root={tmp_path}"]

    def verify() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *(unit.name for unit in UNITS)], check=False, capture_output=True, text=True
        )

    verified = verify()
    assert (verified.returncode, verified.stderr) == (0, "")
    (tmp_path / "usr/bin/tarazu-mdsd").unlink()
    assert "Command tarazu-mdsd is not executable" in verify().stderr


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_the_daemons_work_with_what_their_units_leave_them(site: Site) -> None:
    """Capabilities, no new privileges, no memory that is both writable and executable."""
    socket = site.directory / "c.sock"
    oss = ["--name", "oss1", "--root", str(ROOT / "tests/data/lustre/oss")]
    for unit_name, daemon, options in (
        ("mdsd", "mdsd.service", ["--root", str(site.mds_root)]),
        ("ossd", "ossd.service", oss),
        (
            "clientd",
            "clientd.service",
            ["--socket", str(socket), "--database", str(site.directory / "interaction.db")],
        ),
    ):
        unit = str(ROOT / f"tarazu/daemons/systemd/tarazu-{unit_name}.service")
        with (site.directory / f"{unit_name}.log").open("a") as log:
            site.processes.append(
                subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "tests.daemons.confined",
                        unit,
                        f"tarazu.daemons.{daemon}",
                        "--config",
                        str(site.config),
                        *options,
                    ],
                    stdout=log,
                    stderr=log,
                    text=True,
                    cwd=ROOT,
                    env=os.environ,
                )
            )
    site.wait_status(lambda status: status["osses"])
    assert ask(site.client(), allocation()).status == "allocated"
    until(socket.exists)
    with connect(str(socket), 20.0) as channel:
        assert isinstance(channel.ask(local.StatusQuery()), local.StatusAnswer)
    capabilities = Path(f"/proc/{site.processes[0].pid}/status").read_text()
    assert "CapBnd:\t0000000000000004" in capabilities and "NoNewPrivs:\t1" in capabilities
