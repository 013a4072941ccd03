"""A server's power is cut while a placed job runs: what it creates from then on is elsewhere, and no open waits."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tests.loop.conftest import make_loop

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

STEPS = 12
BEFORE = 4
"""Steps that are written before the program waits."""
WITHIN_S = 5.0
STEPPED = """
import sys, time
folder, gated, longest = sys.argv[1], sys.argv[2:], 0.0
for step in range(12):
    if gated and step == 4:
        print("written", flush=True)
        sys.stdin.readline()
    began = time.monotonic()
    file = open(f"{folder}/step.{step:02}", "wb")
    longest = max(longest, time.monotonic() - began)
    file.write(bytes(2 << 20))
    file.close()
print(longest, flush=True)
"""


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """4 servers with 2 OSTs each; components that come late, so that placing a file makes objects at its open."""
    changes = {"layout": {"min_size": 0}, "predict": {"look_s": 0.3}, "run": {"alive_s": 1.0}}
    directory = tmp_path_factory.mktemp("dead") / "tb"
    yield from make_loop(directory, changes, osss=4, osts_per_oss=2, default_layout="0-1M:1, 1M-EOF:2")


@contextlib.contextmanager
def running(loop: Loop, tmp_path: Path, app: str) -> Iterator[subprocess.Popen[str]]:
    """A placed step that has written some of its files, and waits."""
    (tmp_path / "stepped.py").write_text(STEPPED)
    folder = loop.mount() / app
    folder.mkdir()
    program = [sys.executable, str(tmp_path / "stepped.py"), str(folder)]
    loop.run(*program, app=app, mode="observe")
    loop.testbed.refresh()
    for path in folder.iterdir():
        path.unlink()
    loop.testbed.refresh()
    command = demo.tarazu_command("run", "--app", app, "--mode", "place", "--", *program, "gated")
    environ = os.environ | loop.testbed.environment(0)
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout
        assert job.stdout.readline() == "written\n"
        try:
            yield job
        finally:
            for name in loop.testbed.dead():
                loop.testbed.revive_oss(name)
            assert job.stdin
            with contextlib.suppress(BrokenPipeError):
                job.stdin.close()


def go_on(job: subprocess.Popen[str]) -> float:
    """Let it write the rest, and end; its longest open in seconds."""
    assert job.stdin and job.stdout
    job.stdin.write("\n")
    job.stdin.flush()
    longest_s = float(job.stdout.readline())
    assert job.wait(timeout=30) == 0
    return longest_s


def busiest_to_come(loop: Loop, app: str) -> str:
    """The server on which most of the files stand that are still to be created."""
    placed = [row["placement"]["osts"] for row in loop.rows(app) if row["placement"]]
    named = [loop.testbed.oss_of_ost[i] for of in placed[BEFORE:] for osts in of for i in osts]
    return max(set(named), key=named.count)


def osts_of(loop: Loop, app: str) -> set[int]:
    """Where the objects of the steps are that were written after the program had waited."""
    folder = loop.mount() / app
    paths = [folder / f"step.{step:02}" for step in range(BEFORE, STEPS)]
    return {index for path in paths for osts in loop.testbed.layout(path.resolve()).osts for index in osts}


def test_files_created_5_s_after_a_servers_power_cut_avoid_it_and_no_open_waits(
    late: Loop, tmp_path: Path
) -> None:
    loop = late
    with running(loop, tmp_path, "cut") as job:
        oss = busiest_to_come(loop, "cut")
        dead = {i for i, name in enumerate(loop.testbed.oss_of_ost) if name == oss}
        loop.testbed.kill_oss(oss)
        time.sleep(WITHIN_S)
        longest_s = go_on(job)
        assert longest_s < 1.0
        assert not osts_of(loop, "cut") & dead, loop.log()
        health = loop.json("status")["mdsd"]["file_systems"][loop.testbed.fs_name]["health"]
        assert {int(index) for index, of in health.items() if of["health"] == "dead"} == dead
    line = (loop.home / "jobs.log").read_text().splitlines()[-1]
    assert "left_osts=2" in line and "exit=0" in line
    outcomes = loop.outcomes("cut")
    assert outcomes["hit"] == STEPS, (outcomes, loop.log())
