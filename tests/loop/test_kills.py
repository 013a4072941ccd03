"""Each daemon is killed fifty times, at seeded moments around a job of 8 processes and 200 files."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.units import KIB

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

pytestmark = pytest.mark.soak

KILLS = 50
PROCESSES, STEPS = 8, 25
SPAN_S = 0.8
"""From before the plan is asked for to after the outcomes are reported."""


@pytest.fixture(scope="module")
def killed_loop(loop: Loop) -> Iterator[Loop]:
    loop.configure({"layout": {"min_size": 0, "stripe_count": "2"}, "run": {"wait_s": 0.3}})
    yield loop


def kill_at(loop: Loop, moments: dict[str, float], started: float) -> None:
    """SIGKILL each named daemon at its moment, seconds after `started`."""
    for name, moment in sorted(moments.items(), key=lambda item: item[1]):
        time.sleep(max(0.0, started + moment - time.monotonic()))
        pid = processes.running(loop.testbed.directory, name)
        log = loop.testbed.directory / "log" / f"{name}.log"
        assert pid is not None, f"{name} was not running: {log.read_text()[-500:]}"
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_no_file_is_missing_and_nobody_notices(killed_loop: Loop, iorlike: Path) -> None:
    loop = killed_loop
    chance = random.Random(20240404)
    words = [iorlike, "-F", "-n", PROCESSES, "-S", STEPS, "-b", 64 * KIB, "-t", 64 * KIB]
    out = loop.mount() / "killed" / "step{step}.{rank}"
    command = demo.tarazu_command(
        "run", "--app", "killed", "--mode", "place", "--", *map(str, [*words, "-o", out])
    )
    environment = os.environ | loop.testbed.environment(0)
    oss = loop.testbed.oss_names
    for number in range(KILLS):
        moments = {
            "tarazu-mdsd": chance.uniform(0, SPAN_S),
            "tarazu-clientd-client1": chance.uniform(0, SPAN_S),
            f"tarazu-ossd-{chance.choice(oss)}": chance.uniform(0, SPAN_S),
        }
        started = time.monotonic()
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        ) as job:
            kill_at(loop, moments, started)
            output, errors = job.communicate(timeout=300)
        assert (job.returncode, output, errors) == (0, b"", b""), (number, moments)
        sizes = [p.stat().st_size for p in out.parent.iterdir()]
        assert sizes == [64 * KIB] * (PROCESSES * STEPS), (number, moments)
        loop.testbed.clear()
        loop.testbed.start_daemons()
    wait_until_ready(loop.testbed)
    runs = loop.json("history", "list", "killed")
    assert len(runs) == KILLS and all(r["files"] == PROCESSES * STEPS and r["complete"] for r in runs)
    # The database survived, and the loop still works.
    loop.run(*words, "-o", out, app="killed", env={"TARAZU_RUN_WAIT_S": "20"})
    assert loop.outcomes("killed") == {"hit": PROCESSES * STEPS}
