"""The plan's life: a first run is predicted from itself; a long one is planned horizon by horizon."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def rolling(loop: Loop) -> Iterator[Loop]:
    loop.configure({"layout": {"min_size": 0, "stripe_count": "2"}, "predict": {"look_s": 0.2}})
    yield loop


def test_the_steps_after_the_third_of_a_first_run_are_placed(rolling: Loop, tmp_path: Path) -> None:
    (tmp_path / "stepped.py").write_text(STEPPED)
    folder = rolling.mount() / "first"
    folder.mkdir()
    program = [sys.executable, tmp_path / "stepped.py", folder, 16, 0.1, "waits"]
    command = demo.tarazu_command("run", "--app", "stepped", "--mode", "place", "--", *map(str, program))
    environ = os.environ | rolling.testbed.environment(0)
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stdin and job.stdout and job.stdout.readline() == b"waits\n"
        until(lambda: list((rolling.home / "maps").glob("*/map.*")), rolling.log)
        job.stdin.write(b"\n")
        job.stdin.close()
        assert job.wait(LONG_S) == 0
    outcomes = rolling.outcomes("stepped")
    assert sum(outcomes.values()) == 16
    assert outcomes["late"] >= 3, "before the first plan there was nothing to hit"
    assert outcomes["hit"] >= 3, (outcomes, rolling.log())


@pytest.mark.long
def test_a_long_run_is_planned_horizon_by_horizon(rolling: Loop, tmp_path: Path) -> None:
    (tmp_path / "stepped.py").write_text(STEPPED)
    program = [sys.executable, tmp_path / "stepped.py", rolling.mount()]
    rolling.run(*program, 8, 0.5, app="long", mode="observe")
    rolling.clear()
    rolling.configure(
        {"layout": {"min_size": 0, "stripe_count": "2"}, "predict": {"look_s": 0.2, "horizon_s": 2.0}}
    )
    rolling.run(*program, 8, 0.5, app="long")
    outcomes = rolling.outcomes("long")
    assert outcomes.get("hit", 0) == 8, (outcomes, rolling.log())
    plans = rolling.json("db", "show", "--app", "long")
    assert len(plans["files"]) < 8, "the newest plan holds the files of its own horizon only"
