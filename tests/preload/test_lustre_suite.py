"""tests/lustre runs on the testbed as it would on a real mount, with a stand-in for `lfs`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.sim.testbed import Testbed, down, up

SUITE = Path(__file__).parents[1] / "lustre"
SET_OST = "from tarazu.sim.testbed import open_testbed as o; o({tb!r}).set_ost({{index}}, no_create={on})"


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Testbed]:
    made = up(tmp_path / "tb", osss=4, osts_per_oss=2, clients=1, interval_s=60, sparse=False)
    for above in (made.directory, *list(made.directory.parents)[:4]):
        above.chmod(above.stat().st_mode | 0o011)
    yield made
    down(made.directory)


def run_suite(environ: dict[str, str], *words: str) -> tuple[int, str]:
    """Status and output. A session closes the directory in which it makes its own to others: it gets one apart."""
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *words,
        str(SUITE),
    ]
    clean = {k: v for k, v in os.environ.items() if k not in ("TARAZU_NO_SKIPS", "PYTEST_ADDOPTS")}
    with tempfile.TemporaryDirectory() as apart:
        clean["PYTEST_DEBUG_TEMPROOT"] = apart
        done = subprocess.run(
            argv, env={**clean, **environ}, capture_output=True, text=True, check=False, cwd=SUITE.parents[1]
        )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
def test_it_passes_on_the_testbed(bed: Testbed, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    lfs = tmp_path / "bin" / "lfs"
    lfs.write_text(f'#!/bin/sh\nexec {sys.executable} {SUITE / "stand_in" / "lfs"} "$@"\n')
    lfs.chmod(0o755)
    commands = {
        f"TARAZU_LUSTRE_{what}": f'{sys.executable} -c "{SET_OST.format(tb=str(bed.directory), on=on)}"'
        for what, on in (("REFUSE", True), ("ACCEPT", False))
    }
    environ = {
        **bed.environment(),
        **commands,
        "TARAZU_LUSTRE_MOUNT": str(bed.mount),
        "TARAZU_LUSTRE_FILES": "200" if os.environ.get("TARAZU_SOAK") else "12",
        "TARAZU_LUSTRE_OTHER": "env TESTBED_CLIENT=client2 sh -c",
        "TARAZU_LUSTRE_START_S": "0.4",
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }
    # Every test once; the other combinations are those of test_refusals.py. In the short form without what
    # other tests show on the testbed.
    elsewhere = (
        () if os.environ.get("TARAZU_SOAK") else ("below_a_default", "every_way", "opt_outs", "another_node")
    )
    again = (*elsewhere, "llapi", "hints", "TRUNC", "APPEND", "400", "444", "dots", "chdir")
    once = f"(self and not {' and not '.join(again)}) or (ordinary and (same_rank or direct and (may_not or race)))"
    status, output = run_suite(environ, "-k", once)
    assert status == 0, output[-6000:]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|skipped)", output)}
    assert counts["passed"] > 25
    assert "skipped" not in counts or os.geteuid() != 0
    assert bed.crashed() is None
    assert list(bed.mount.iterdir()) == []


def test_without_a_mount_it_says_so(tmp_path: Path) -> None:
    status, output = run_suite({"TARAZU_LUSTRE_MOUNT": ""}, "-rs", "-k", "liblustreapi")
    assert status == 0 and "TARAZU_LUSTRE_MOUNT names no Lustre mount" in output, output
