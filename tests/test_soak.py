"""`make soak`: a round that fails is counted, kept and seen in the exit status."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

FLAKY = """\
import os, pathlib, pytest
pytestmark = pytest.mark.soak
def test_every_second_time():
    count = pathlib.Path("count")
    seen = count.read_text() if count.exists() else ""
    count.write_text(seen + "x")
    assert len(seen) % 2 == 0, "the second time"
    assert ("TARAZU_SOAK" in os.environ) == (seen == "")
"""

LONG = """\
import os, pathlib, pytest, time
pytestmark = pytest.mark.soak
def test_long():
    pathlib.Path("pid").write_text(str(os.getpid()))
    time.sleep(600)
"""


def soak(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text("[pytest]\nmarkers = soak\n")
    (directory / "test_flaky.py").write_text(FLAKY)
    command = [sys.executable, str(ROOT / "tests" / "soak.py"), *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=False)


def test_a_round_that_fails_is_told_kept_and_fails_the_whole(tmp_path: Path) -> None:
    result = soak(tmp_path, "3", "test_flaky.py")
    assert result.returncode == 1, result.stdout + result.stderr
    first, second, third, summary = result.stdout.splitlines()
    assert first.startswith("round 1 of 3: ok: 1 passed in ")
    assert second.startswith("round 2 of 3: FAILED: 1 failed in ")
    assert third.startswith("round 3 of 3: ok: ") and summary.startswith("3 rounds, 1 failed, ")
    (kept,) = (tmp_path / "soak-output").iterdir()
    assert str(kept.relative_to(tmp_path)) in second and "the second time" in kept.read_text()


def test_rounds_without_a_failure_end_well_and_leave_nothing(tmp_path: Path) -> None:
    result = soak(tmp_path, "1", "test_flaky.py")
    assert result.returncode == 0 and "1 rounds, 0 failed" in result.stdout
    assert not list((tmp_path / "soak-output").iterdir())


def test_rounds_without_any_test_have_failed(tmp_path: Path) -> None:
    assert soak(tmp_path, "1", "-k", "nothing", "test_flaky.py").returncode == 1


def test_told_to_end_it_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = soak\n")
    (tmp_path / "test_long.py").write_text(LONG)
    command = [sys.executable, str(ROOT / "tests" / "soak.py"), "2", "test_long.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    pid = tmp_path / "pid"
    deadline = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and told.startswith("round 1 of 2: interrupted\n0 rounds, 1 failed")
    assert not Path(f"/proc/{pid.read_text()}").exists()


def test_anything_but_a_number_of_rounds_is_one_line_and_status_2(tmp_path: Path) -> None:
    for arguments in ((), ("0",), ("many",)):
        result = soak(tmp_path, *arguments)
        assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
