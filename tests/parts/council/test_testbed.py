"""NRS of a testbed's OSS, set by daemons with a stand-in for lctl while a client writes; and `tarazu change tune`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.cli import main
from tarazu.sim.testbed import Testbed
from tarazu.sim.testbed.daemons import lctl_command
from tests.parts.council.group import Group

POLICIES = "sys/kernel/debug/lustre/ost/OSS/ost_io/nrs_policies"

TUNE = {
    "levers": ["nrs=fifo|crrn 32|trr 64"],
    "worse": 1.0,
    "interval_s": 0.5,
    "dwell_s": 0.5,
    "silent_s": 10.0,
}
"""In each interval there is I/O, however slow this machine is."""


@pytest.fixture(scope="module")
def bed(memory_directory: Path) -> Iterator[Testbed]:
    from tarazu.sim.testbed import down, up

    bed = up(memory_directory / "levers", osss=1, osts_per_oss=2, interval_s=60)
    yield bed
    down(bed.directory)


def lctl(root: Path, *words: str) -> str:
    command = [*lctl_command(root).split(), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_nrs_is_learned_set_and_restored_whatever_dies(bed: Testbed, tmp_path: Path) -> None:
    root = bed.oss_root("oss1")
    lctl(root, "set_param", "ost.OSS.ost_io.nrs_policies=orr")
    lctl(root, "set_param", "ost.OSS.ost_io.nrs_orr_quantum=reg_quantum:77")

    def nrs() -> dict[str, str]:
        return {path.name: path.read_text() for path in (root / POLICIES).parent.glob("nrs_*")}

    before, group = nrs(), Group(tmp_path, **TUNE)
    group.lctl.write_text(f'#!/bin/sh\nshift\nexec {lctl_command(root)} "$@"\n')
    os.environ.update(group.environ("oss1", root))
    number = 0

    def written(holds: bool) -> bool:
        nonlocal number
        number += 1
        program = ["dd", "if=/dev/zero", f"of={bed.client_mount() / f'f{number}'}", "bs=1M", "count=4"]
        assert number < 200 and bed.exec(0, program, capture_output=True).returncode == 0
        bed.refresh()
        return holds

    try:
        group.council()
        announcer = group.announcer_of("oss1", root)
        group.until(lambda: written(nrs() != before))
        group.kill(announcer)
        announcer = group.announcer_of("oss1", root)
        group.until(lambda: written("left by a former run" in group.log("oss1")))
        group.until(lambda: written(nrs() != before))
        file = str(group.configuration("oss1", root))
        assert main(["change", "tune", "--undo", "--config", file]) == 0 and nrs() == before
        for _ in range(5):
            written(True)
        assert nrs() == before
        assert main(["change", "tune", "--apply", "--config", file]) == 0
        group.until(lambda: written(nrs() != before))
        group.end(announcer)
        assert nrs() == before and "Traceback" not in group.log("oss1")
    finally:
        group.close()
