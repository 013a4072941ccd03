"""After the last test nothing runs or lies about: `pytest -n` too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEAVES = """
import os, subprocess, tempfile
def test_leaves_what_it_started():
    log = tempfile.NamedTemporaryFile(delete=False)
    print(log.name, flush=True)
    os.write(2, log.name.encode())
    open(os.environ["TOLD"], "w").write(log.name)
    subprocess.Popen(["sleep", os.environ["SO_LONG"]], start_new_session=True)
"""


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "workers"])
def test_what_runs_on_is_ended_and_fails_the_session(
    tmp_path: Path, workers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_it.py").write_text(LEAVES)
    so_long = str(10**7 + os.getpid() * 10 + len(workers))  # as nobody else sleeps here
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    monkeypatch.setenv("SO_LONG", so_long)
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path))  # a session closes it to other users
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", *workers, tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 passed" in done.stdout, done
    assert done.returncode != 0 and f"still running after the last test: sleep {so_long}" in done.stderr, done
    assert not Path((tmp_path / "told").read_text()).exists()
    assert subprocess.run(["pgrep", "-f", f"^sleep {so_long}"], check=False).returncode == 1
