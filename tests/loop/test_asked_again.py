"""A plan that was not to be had at the start is asked for again: the rest of the run is placed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import wait_until_ready
from tests.waiting import LONG_S, until

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

STEPPED = """
import pathlib, sys
folder, steps, gate = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
for step in range(steps):
    if gate and step == steps // 2:
        print("half", flush=True)
        sys.stdin.readline()
    with open(folder / f"ckpt.{step:05}", "wb") as file:
        file.write(bytes(4 << 20))
"""
STEPS = 8
CHANGES = {
    "layout": {"min_size": 0, "stripe_count": "2"},
    "predict": {"look_s": 0},
    "mdsd": {"user_share": 0.9},
}


def kill_clientd(loop: Loop) -> Callable[[], None]:
    pid = processes.running(loop.testbed.directory, "tarazu-clientd-client1")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    def again() -> None:
        loop.testbed.start_daemons()

    return again


def kill_mdsd(loop: Loop) -> Callable[[], None]:
    pid = processes.running(loop.testbed.directory, "tarazu-mdsd")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    def again() -> None:
        loop.testbed.start_daemons()

    return again


def stop_mdsd(loop: Loop) -> Callable[[], None]:
    pid = processes.running(loop.testbed.directory, "tarazu-mdsd")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def decline(loop: Loop) -> Callable[[], None]:
    """mdsd answers, but not with a plan: nobody may have any promise."""
    config = loop.testbed.directory / "etc" / "tarazu.toml"
    text = config.read_text()

    def restart() -> None:
        kill_mdsd(loop)
        loop.testbed.start_daemons()
        wait_until_ready(loop.testbed)

    def again() -> None:
        config.write_text(text)
        restart()

    config.write_text(text.replace("user_share = 0.9", "user_share = 1e-12"))
    restart()
    return again


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(kill_clientd, marks=pytest.mark.long),
        kill_mdsd,
        stop_mdsd,
        pytest.param(decline, marks=pytest.mark.long),
    ],
)
def test_the_rest_of_the_run_is_placed_once_somebody_answers(
    loop: Loop, tmp_path: Path, trouble: Callable[[Loop], Callable[[], None]]
) -> None:
    app = trouble.__name__
    (tmp_path / "stepped.py").write_text(STEPPED)
    folder = loop.mount() / app
    folder.mkdir()
    program = [sys.executable, str(tmp_path / "stepped.py"), str(folder), str(STEPS)]
    loop.run(*program, app=app, mode="observe")
    loop.testbed.refresh()
    for path in folder.iterdir():
        path.unlink()
    command = demo.tarazu_command("run", "--app", app, "--mode", "place", "--", *program, "gate")
    environ = os.environ | loop.testbed.environment(0) | {"TARAZU_RUN_WAIT_S": "0.5"}
    again = trouble(loop)
    try:
        with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
            assert job.stdin and job.stdout and job.stdout.readline() == b"half\n"
            assert not list((loop.home / "maps").glob("*/map.*")), "nobody had a plan"
            again()
            until(lambda: list((loop.home / "maps").glob("*/map.*")), loop.log)
            job.stdin.write(b"\n")
            job.stdin.close()
            assert job.wait(LONG_S) == 0
    finally:
        wait_until_ready(loop.testbed)
    assert loop.outcomes(app) == {"hit": STEPS // 2, "late": STEPS // 2}, loop.log()[-2000:]
