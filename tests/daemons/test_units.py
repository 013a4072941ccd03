"""The systemd units start what the package installs, and stay hardened."""

from __future__ import annotations

import configparser
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "daemons/systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_starts_a_program_of_the_package(unit: Path) -> None:
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment]
    parsed.read(unit)
    service = parsed["Service"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert service["ExecStart"] == unit.stem and unit.stem in scripts
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    # It would hide /proc/fs/lustre.
    assert "ProcSubset" not in service
    user = service["User"]
    assert f"\nu {user} " in (ROOT / "daemons/systemd/tarazu.sysusers").read_text()


def test_all_three_daemons_have_one() -> None:
    assert [unit.stem for unit in UNITS] == ["tarazu-clientd", "tarazu-mdsd", "tarazu-ossd"]
