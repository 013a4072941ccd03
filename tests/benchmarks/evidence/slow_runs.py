"""Runs on a testbed with the real daemons that are slow for a known cause, and what `tarazu why` says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tarazu.units import MIB
from tests.loop.conftest import Loop

PROGRAM = Path(__file__).with_name("paced.py")
OSSS, OSTS_PER_OSS = 4, 2
SPEED = 16 * MIB
"""Bytes a second of an OST: a usual run takes a second."""
SLOWER = 8
"""Times: a verdict takes five at least, and some I/O."""
USUAL_RUNS = 5
JOB, NEIGHBOUR = "777", "4711"
CLIENTS = 2
OPTIONS = {"osss": OSSS, "osts_per_oss": OSTS_PER_OSS, "clients": CLIENTS, "interval_s": 0.25}
CHANGES = {"run": {"mode": "observe"}, "ossd": {"interval_s": 1.0}}
SLOW, CROWDED, FULL = 2, 5, 7
"""OSTs."""


class Cause(NamedTuple):
    name: str
    kinds: tuple[str, ...]
    """Of `why.facts.Kind`: all that were planted."""


ALONE = (
    Cause("slow OST", ("slow-ost",)),
    Cause("neighbour", ("other-jobs",)),
    Cause("full OST", ("full-ost",)),
    Cause("imbalance", ("imbalance",)),
    Cause("small calls", ("small-calls",)),
    Cause("few stripes", ("few-stripes",)),
)
TWO = (
    Cause("slow OST and neighbour", ("slow-ost", "other-jobs")),
    Cause("neighbour and small calls", ("other-jobs", "small-calls")),
    Cause("imbalance and slow OST", ("imbalance", "slow-ost")),
    Cause("slow OST and few stripes", ("slow-ost", "few-stripes")),
)


class SlowRuns:
    """An application's usual runs, and one with a cause after the other; the usual ones are its history each time."""

    def __init__(self, loop: Loop, usual: int = USUAL_RUNS) -> None:
        self.loop = loop
        testbed = loop.testbed
        for ost in range(OSSS * OSTS_PER_OSS):
            testbed.set_ost(ost, speed=SPEED)
        testbed.set_job(0, JOB, MIB)
        testbed.set_job(1, NEIGHBOUR)
        self._history = loop.home / "history"
        self._kept = loop.home / "usual"
        self._count = 0
        self._folder("alone", "-c", 1)
        self._folder("wide", "-c", -1)
        for _ in range(usual):
            self._run("fpp", "alone")
            self._run("ssf", "wide", "--shared")
        shutil.copytree(self._history, self._kept)

    def _folder(self, name: str, *layout: object) -> Path:
        folder = self.loop.mount() / name
        folder.mkdir(exist_ok=True)
        done = self.loop.testbed.exec(0, ["lfs", "setstripe", *map(str, layout), "-S", "1M", folder])
        assert done.returncode == 0
        return folder

    def _run(self, app: str, folder: str, *words: object) -> None:
        self._count += 1
        below = self.loop.mount() / folder / f"run{self._count}"
        made = self.loop.testbed.exec(0, ["mkdir", below])  # on a client, so that it inherits
        assert made.returncode == 0
        env = {"SLURM_JOB_ID": JOB}
        program = (sys.executable, PROGRAM, below, *words)
        self.loop.run(*program, app=app, mode="observe", env=env)
        shutil.rmtree(below)

    def restore(self) -> None:
        """Nothing is remembered but the usual runs."""
        shutil.rmtree(self._history)
        shutil.copytree(self._kept, self._history)

    def why(self, cause: Cause) -> Any:
        """What is said of a run with that cause."""
        shared = "few-stripes" in cause.kinds
        app, folder, words = ("ssf", "wide", ["--shared"]) if shared else ("fpp", "alone", [])
        with ExitStack() as undo:
            for kind in cause.kinds:
                more, instead = undo.enter_context(_PLANT[kind](self))
                words += more
                folder = instead or folder
            self.restore()
            self._run(app, folder, *words)
            time.sleep(2.5)  # servers report what came last
            return self.loop.json("why", app)

    @contextmanager
    def slow_ost(self) -> Iterator[tuple[list[object], str]]:
        """Slow since a while: a verdict needs some I/O there."""
        self.loop.testbed.set_ost(SLOW, speed=SPEED / SLOWER)
        self._run("fpp", "alone")
        yield [], ""
        self.loop.testbed.set_ost(SLOW, speed=SPEED)

    @contextmanager
    def neighbour(self) -> Iterator[tuple[list[object], str]]:
        folder = self._folder("theirs", "-c", 1, "-i", CROWDED)
        stop = self.loop.home / "stop-neighbour"
        whole = os.environ | self.loop.testbed.environment(1)
        argv = [sys.executable, str(PROGRAM), str(folder), "--until", str(stop), "--threads", "4"]
        hammering = subprocess.Popen(argv, env=whole)
        time.sleep(1.0)
        try:
            yield [], ""
        finally:
            stop.touch()
            hammering.wait(300)
            stop.unlink()
            shutil.rmtree(folder)

    @contextmanager
    def full_ost(self) -> Iterator[tuple[list[object], str]]:
        self.loop.testbed.set_ost(FULL, full=True)
        time.sleep(2.0)
        yield [], ""
        self.loop.testbed.set_ost(FULL, full=False)

    @contextmanager
    def imbalance(self) -> Iterator[tuple[list[object], str]]:
        yield ["--sizes", "4.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5"], ""

    @contextmanager
    def small_calls(self) -> Iterator[tuple[list[object], str]]:
        self.loop.testbed.set_job(0, JOB, 4096)
        yield ["--call", 4096, "--call-s", 0.0005], ""
        self.loop.testbed.set_job(0, JOB, MIB)

    @contextmanager
    def few_stripes(self) -> Iterator[tuple[list[object], str]]:
        self._folder("narrow", "-c", 2, "-i", SLOW)
        yield [], "narrow"


_PLANT: dict[str, Callable[..., Any]] = {
    "slow-ost": SlowRuns.slow_ost,
    "other-jobs": SlowRuns.neighbour,
    "full-ost": SlowRuns.full_ost,
    "imbalance": SlowRuns.imbalance,
    "small-calls": SlowRuns.small_calls,
    "few-stripes": SlowRuns.few_stripes,
}
