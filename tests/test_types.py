"""mypy sees the daemons and the simulator, which lie beside the package that they are part of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLANTED = {
    "tarazu/daemons/mdsd/service.py": 'planted: int = parser("", "")\n',
    "tarazu/sim/demo.py": 'planted: int = testbeds.up("")\n',
}
"""File → a wrong line, that only who knows the other files of the room finds."""


@pytest.mark.long
def test_a_wrong_type_in_a_daemon_and_in_the_simulator_is_found(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--cache-dir",
        str(tmp_path / "cache"),
        "--follow-imports=silent",
    ]
    for name, line in PLANTED.items():
        copy = tmp_path / Path(name).name
        copy.write_text((ROOT / name).read_text() + line)
        command += ["--shadow-file", name, str(copy)]
    done = subprocess.run([*command, *PLANTED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Found 2 errors in 2 files" in done.stdout, done.stdout + done.stderr
    assert all(f"{name}:" in done.stdout for name in PLANTED)
