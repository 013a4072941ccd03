"""The plan's life: a first run is predicted from itself; a long one is planned horizon by horizon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tests.waiting import LONG_S, until

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

STEPPED = """
import sys, time
folder, steps, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
for step in range(steps):
    if sys.argv[4:] and step == 6:
        print("waits", flush=True)
        sys.stdin.readline()
    with open(f"{folder}/ckpt.{step:05}", "wb") as file:
        for _ in range(4):
            file.write(bytes(1 << 20))
    time.sleep(pause)
"""


CHANGES = {"layout": {"min_size": 0, "stripe_count": "2"}, "predict": {"look_s": 0.2}}


def test_the_steps_after_the_third_of_a_first_run_are_placed(loop: Loop, tmp_path: Path) -> None:
    (tmp_path / "stepped.py").write_text(STEPPED)
    folder = loop.mount() / "first"
    folder.mkdir()
    program = [sys.executable, tmp_path / "stepped.py", folder, 16, 0.1, "waits"]
    command = demo.tarazu_command("run", "--app", "stepped", "--mode", "place", "--", *map(str, program))
    environ = os.environ | loop.testbed.environment(0)
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stdin and job.stdout and job.stdout.readline() == b"waits\n"
        until(lambda: list((loop.home / "maps").glob("*/map.*")), loop.log)
        job.stdin.write(b"\n")
        job.stdin.close()
        assert job.wait(LONG_S) == 0
    outcomes = loop.outcomes("stepped")
    assert sum(outcomes.values()) == 16
    assert outcomes["late"] >= 3, "before the first plan there was nothing to hit"
    assert outcomes["hit"] >= 1, (outcomes, loop.log())


@pytest.mark.long
def test_a_long_run_is_planned_horizon_by_horizon(loop: Loop, tmp_path: Path) -> None:
    (tmp_path / "stepped.py").write_text(STEPPED)
    program = [sys.executable, tmp_path / "stepped.py", loop.mount()]
    loop.run(*program, 8, 0.5, app="long", mode="observe")
    loop.clear()
    loop.configure(
        {"layout": {"min_size": 0, "stripe_count": "2"}, "predict": {"look_s": 0.2, "horizon_s": 2.0}}
    )
    loop.run(*program, 8, 0.5, app="long")
    outcomes = loop.outcomes("long")
    assert outcomes.get("hit", 0) == 8, (outcomes, loop.log())
    plans = loop.json("history", "db", "show", "--app", "long")
    assert len(plans["files"]) < 8, "the newest plan holds the files of its own horizon only"
