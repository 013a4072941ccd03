"""`tarazu[whatif]`, installed by pip."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # A build directory of its own: the checkout's belongs to its editable installation.
    subprocess.run(
        [*command, "--config-settings", f"build-dir={folder}/build", "-w", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("tarazu-*.whl"))


@pytest.mark.long
def test_a_log_is_looked_at_with_numpy_and_networkx_alone(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*words: str | Path) -> str:
        done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        programs / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        f"tarazu[whatif] @ file://{wheel}",
    )
    listed = {line.split("==")[0].lower() for line in run(programs / "pip", "freeze").split() if "==" in line}
    assert listed <= {"msgspec", "psutil", "pyzmq", "numpy", "networkx"}, listed
    out = run(programs / "tarazu", "whatif", "--example", "--picture", "osts.svg")
    assert "because OST 14 was 54 times slower than the rest" in out
    assert (tmp_path / "osts.svg").stat().st_size > 1000
