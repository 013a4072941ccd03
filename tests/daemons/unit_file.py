"""What a unit says of its service, and what systemd thinks of it."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path


def service(unit: Path) -> configparser.SectionProxy:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment]
    parsed.read(unit)
    return parsed["Service"]


def check_exposure(unit: Path, most: int) -> None:
    """`systemd-analyze security` calls it exposed by so much at most; of 100."""
    command = ["systemd-analyze", "security", "--offline=yes", f"--threshold={most}", unit]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
