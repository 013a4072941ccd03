"""What was there before levers were set comes back, whatever happens; and what a look at levers costs.

Drawn histories of settings, crashes and administrators, and real processes that are killed at any moment while they set
levers by the stand-in for lctl.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tarazu.sim.testbed import tunables
from tarazu.sim.testbed.daemons import lctl_command
from tarazu.tune.levers import lever
from tests.benchmarks.figure import Figure
from tests.daemons.levers.histories import MEMORY, VALUES, drawn, made, run

OSCS = 100


def measure(short: bool) -> list[Figure]:
    """`short`: a tenth."""
    return [*_histories(200 if short else 2000), *_kills(10 if short else 100), *_cost()]


def _histories(count: int) -> Iterator[Figure]:
    wrong = 0
    for seed in range(count):
        found, expected = run(drawn(random.Random(seed)))
        wrong += found != expected
    yield Figure(f"of {count} histories: something else than what was there after undo", wrong, "", 0)


def _kills(count: int) -> Iterator[Figure]:
    """A process that sets one value after another with real lctl processes is killed; the next one restores."""
    dice, wrong, under_way = random.Random(1), 0, 0
    for _ in range(count):
        root = Path(tempfile.mkdtemp(dir=MEMORY))
        node = made(root)
        before = node.now()
        pid = os.fork()
        if pid == 0:
            try:
                keeper, seed = node.keeper(lctl_command(root)), random.Random(dice.random())
                while True:
                    wanted = {name: seed.choice(values[1:]) for name, values in VALUES.items()}
                    keeper.apply(wanted, "", 10.0)
            finally:
                os._exit(1)
        while not (node.state / "levers.json").exists():
            time.sleep(0.002)
        time.sleep(dice.uniform(0, 0.3))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        after = node.keeper()
        with after.kept.locked(10.0):
            under_way += any(len(note.steps) > 1 for note in after.kept.levers.values())
        done = after.take_back("left by a former run", 10.0)
        wrong += bool(done.failed) or node.now() != before or bool(after.kept.levers)
        dice.random()
        shutil.rmtree(root)
    yield Figure(f"of {count} processes killed: something else than what was there afterwards", wrong, "", 0)
    yield Figure("killed in the middle of a change", under_way, "")


def _cost() -> Iterator[Figure]:
    class Nobody:
        def set(self, settings: object) -> None:
            """Nothing is set here."""

    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        tunables.make_oss(Path(directory))
        tunables.make_client(Path(directory), "lustre", 0, OSCS)
        for name, limit_ms in (("nrs", 0.5), ("max_rpcs_in_flight", 5.0)):
            looked = lever(name, Nobody(), directory)
            begun = time.thread_time()
            for _ in range(50):
                looked.current()
            what = f" of {OSCS} OSTs" if name != "nrs" else ""
            yield Figure(f"a look at {name}{what}", 1e3 * (time.thread_time() - begun) / 50, "ms", limit_ms)
