"""A server's power is cut while a placed job runs: what it creates from then on is elsewhere, and no open waits."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import mdsd_view, wait_until_ready
from tarazu.store.control import read_control
from tests.loop.conftest import make_loop
from tests.waiting import LONG_S, until

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

STEPS = 12
GATES = (4, 8)
"""Before these steps the program waits."""
STEPPED = """
import sys
folder, gated = sys.argv[1], sys.argv[2:]
for step in range(12):
    if gated and step in (4, 8):
        print("waits", flush=True)
        sys.stdin.readline()
    file = open(f"{folder}/step.{step:02}", "wb")
    file.write(bytes(2 << 20))
    file.close()
print("ended", flush=True)
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
        assert job.stdout.readline() == "waits\n"
        try:
            yield job
        finally:
            for name in loop.testbed.dead():
                loop.testbed.revive_oss(name)
            assert job.stdin
            with contextlib.suppress(BrokenPipeError):
                job.stdin.close()


def go_on(job: subprocess.Popen[str]) -> str:
    """Let it write up to the next gate or its end."""
    assert job.stdin and job.stdout
    job.stdin.write("\n")
    job.stdin.flush()
    return job.stdout.readline()


def busiest_to_come(loop: Loop, app: str) -> str:
    """The server on which most of the files stand that are still to be created."""
    placed = [row["placement"]["osts"] for row in loop.rows(app) if row["placement"]]
    named = [loop.testbed.oss_of_ost[i] for of in placed[GATES[0] :] for osts in of for i in osts]
    return max(set(named), key=named.count)


def osts_of(loop: Loop, app: str, first: int, end: int) -> set[int]:
    """Where the objects of these steps are."""
    paths = [loop.mount() / app / f"step.{step:02}" for step in range(first, end)]
    return {index for path in paths for osts in loop.testbed.layout(path.resolve()).osts for index in osts}


def generation(loop: Loop) -> int:
    """Of the running step's newest map."""
    return max(read_control(path).generation for path in (loop.home / "maps").iterdir())


def usable(loop: Loop) -> set[int]:
    view = mdsd_view(loop.testbed).view
    return {ost.index for ost in view.osts if ost.usable} if view else set()


def test_files_created_after_a_dead_server_is_known_avoid_it_and_no_open_waits(
    late: Loop, tmp_path: Path
) -> None:
    """Its clientd was killed and started again shortly before; afterwards the server comes back."""
    loop, every = late, set(range(len(late.testbed.oss_of_ost)))
    with running(loop, tmp_path, "cut") as job:
        oss = busiest_to_come(loop, "cut")
        dead = {i for i, name in enumerate(loop.testbed.oss_of_ost) if name == oss}
        assert processes.kill(loop.testbed.directory, "tarazu-clientd-client1")
        loop.testbed.start_daemons()
        wait_until_ready(loop.testbed)
        until(lambda: loop.json("status")["clientd"]["waiting_leaders"], loop.log)
        loop.testbed.kill_oss(oss)
        until(lambda: generation(loop) >= 3, loop.log)  # a map without it, and one with the new plan
        assert "leave OST" in loop.log()
        assert go_on(job) == "waits\n"
        assert not osts_of(loop, "cut", *GATES) & dead, loop.log()
        assert usable(loop) == every - dead
        loop.testbed.revive_oss(oss)
        until(lambda: usable(loop) == every, loop.log)
        assert go_on(job) == "ended\n" and job.wait(LONG_S) == 0
    line = (loop.home / "jobs.log").read_text().splitlines()[-1]
    assert "left_osts=2" in line and "(dead)" in line and "exit=0" in line
    outcomes = loop.outcomes("cut")
    assert outcomes["hit"] == STEPS, (outcomes, loop.log())
    audit = (loop.testbed.directory / "log" / "audit.log").read_text().splitlines()
    changes = [line.split(" health=")[1].split()[0] for line in audit if "status=health" in line]
    assert changes[:2] == ["dead", "dead"] and changes[-2:] == ["well", "well"], changes
