"""`tarazu run -- true`: what its start and end take, on a client of a testbed, beside `true` and a bare Python."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tarazu.sim import demo
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tests.benchmarks.figure import Figure

TIMES = 20
MOST_MS = 100.0
"""Of a machine that does nothing else."""


def measure(short: bool) -> list[Figure]:
    times = 3 if short else TIMES
    with tempfile.TemporaryDirectory(prefix="tarazu-start-") as folder:
        directory = Path(folder) / "tb"
        testbed = testbeds.up(directory, clients=1)
        try:
            configure(testbed, {})
            testbed.start_daemons()
            wait_until_ready(testbed)
            environ = os.environ | testbed.environment(0)
            led = demo.tarazu_command("run", "--mode", "observe", "--", "true")
            commands = {"true": ["true"], "python3 -c pass": [sys.executable, "-c", "pass"], "run": led}
            took_ms, used_ms = _took_ms(commands, environ, times)
        finally:
            testbeds.down(directory)
    bare, run = took_ms["python3 -c pass"], took_ms["run"]
    return [
        Figure("true", took_ms["true"], "ms"),
        Figure("python3 -c pass", bare, "ms"),
        Figure("tarazu run -- true, in mode observe", run, "ms", MOST_MS),
        Figure("… as a multiple of python3 -c pass", run / bare, ""),
        Figure("… processor time", used_ms["run"], "ms"),
        Figure("… processor time of python3 -c pass", used_ms["python3 -c pass"], "ms"),
    ]


def _took_ms(
    commands: dict[str, Sequence[str]], environ: dict[str, str], times: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Medians by the clock, and of processor time (in steps of 10 ms); in turn, so that what else runs slows all."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    used: dict[str, list[float]] = {name: [] for name in commands}
    for n in range(times + 1):
        for name, command in commands.items():
            begin, before = time.perf_counter(), os.times()
            subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, check=True, capture_output=True)
            if n:  # the first reads files that the others find in memory
                after = os.times()
                taken[name].append(1e3 * (time.perf_counter() - begin))
                used[name].append(1e3 * (sum(after[2:4]) - sum(before[2:4])))
    return _medians(taken), _medians(used)


def _medians(of: dict[str, list[float]]) -> dict[str, float]:
    return {name: median(values) for name, values in of.items()}
