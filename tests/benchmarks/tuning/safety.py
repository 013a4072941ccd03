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

from tarazu import config
from tarazu.parts.changes.agent import Plan
from tarazu.parts.council.agent import agent_of, in_force
from tarazu.sim.testbed import tunables
from tests.benchmarks.figure import Figure
from tests.parts.changes.case import Case
from tests.parts.changes.histories import MEMORY, drawn, run
from tests.parts.council.client_case import ClientCase
from tests.parts.council.nrs_case import NrsCase

OSCS = 100
CASES: tuple[type[Case], ...] = (NrsCase, ClientCase)


def measure(short: bool) -> list[Figure]:
    """`short`: a tenth."""
    return [*_histories(200 if short else 2000), *_kills(10 if short else 100), *_cost()]


def _histories(count: int) -> Iterator[Figure]:
    wrong = 0
    for seed in range(count):
        found, expected = run(CASES[seed % len(CASES)], drawn(random.Random(seed)))
        wrong += found != expected
    yield Figure(f"of {count} histories: something else than what was there after undo", wrong, "", 0)


def _kills(count: int) -> Iterator[Figure]:
    """A process that sets one value after another with real lctl processes is killed; the next one restores."""
    dice, wrong, under_way = random.Random(1), 0, 0
    for number in range(count):
        root = Path(tempfile.mkdtemp(dir=MEMORY))
        case = CASES[number % len(CASES)](root, in_process=False)
        before, environ = case.now(), dict(os.environ)
        os.environ.update(case.environment())
        pid = os.fork()
        if pid == 0:
            try:
                agent, wishes = case.agent(), case.wishes()
                while True:
                    agent.follow(Plan(tuple(dice.choice(wishes))), "apply", "", wait_s=10.0)
            finally:
                os._exit(1)
        after = case.agent()
        while not after.store.exists:
            time.sleep(0.002)
        time.sleep(dice.uniform(0, 0.3))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with after.store.locked(10.0):
            under_way += any(len(held.steps) > 1 for held in after.store.held_changes.values())
        done = after.engine.take_back("left by a former run", wait_s=10.0)
        wrong += bool(done.failed) or case.now() != before or bool(after.store.held_changes)
        os.environ.clear()
        os.environ.update(environ)
        shutil.rmtree(root)
    yield Figure(f"of {count} processes killed: something else than what was there afterwards", wrong, "", 0)
    yield Figure("killed in the middle of a change", under_way, "")


def _cost() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        tunables.make_oss(Path(directory))
        tunables.make_client(Path(directory), "lustre", 0, OSCS)
        levers = agent_of(config.Settings(), root=directory).engine.levers
        for name, limit_ms in (("nrs", 0.5), ("max_rpcs_in_flight", 5.0)):
            begun = time.thread_time()
            for _ in range(50):
                in_force(levers[name])
            what = f" of {OSCS} OSTs" if name != "nrs" else ""
            yield Figure(f"a look at {name}{what}", 1e3 * (time.thread_time() - begun) / 50, "ms", limit_ms)
