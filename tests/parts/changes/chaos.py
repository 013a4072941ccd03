"""One lever's agent, killed again and again beside an administrator: `python -m tests.parts.changes.chaos NAME SEED`.

Until standard input ends: agents follow drawn plans, in processes that are killed at any moment; some have a clock that
is a year off, some a disk that is full. Between them an administrator changes what he likes, while he has the lock. Now
and then all is taken back: what is there must be what was there first, or what he has set last. The outcome is one
JSON object.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tarazu import durable
from tarazu.errors import TarazuError
from tarazu.parts.changes import engine
from tarazu.parts.changes.agent import Plan
from tests.parts.changes.case import Case
from tests.parts.changes.cases import CASES
from tests.parts.changes.dying import full_disk

MEMORY = "/dev/shm"
YEAR_S = 366 * 86_400.0
LOCK_S = 120.0
LIVES = 12
"""Agents between two looks at what is left."""
UNDOS = 5
"""So often all is asked back: these processes give way to all others, and a command may take too long."""


class Lever:
    def __init__(self, case: Case, seed: str) -> None:
        self.case, self.chance = case, random.Random(seed)
        self.expected = case.now()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.log: list[str] = []

    def round(self) -> None:
        """Some lives of agents and some work of an administrator; then all is taken back."""
        self.log = []
        for _ in range(self.chance.randint(1, LIVES)):
            self._life()
            if self.chance.random() < 0.3:
                self._administrator()
        agent = self.case.agent()
        done = agent.engine.take_back("undo", wait_s=LOCK_S)
        for _ in range(UNDOS - 1):
            if not done.failed:
                break
            # A command that a busy machine holds up for too long: whoever asks again has it.
            self.counts["undos asked again"] += 1
            done = agent.engine.take_back("undo", wait_s=LOCK_S, anew=True)
        agent.engine.forget_theirs(wait_s=LOCK_S)
        found, expected = self.case.now(), self.case.undone(self.expected)
        self.counts["looks"] += 1
        if found != expected or done.failed:
            wrong = {
                n: (found.get(n), expected.get(n))
                for n in {*found, *expected}
                if found.get(n) != expected.get(n)
            }
            self.wrong.append(
                f"{self.case.name}: (found, expected) {wrong}, failed {done.failed}, after {self.log}"
            )
        self.expected = found

    def _life(self) -> None:
        seed = self.chance.random()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                self._agent(random.Random(seed))
            os._exit(1)
        time.sleep(self.chance.choice((0.0, 0.02, self.chance.uniform(0.0, 0.5))))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.counts["kills"] += 1
        self.log.append("life")

    def _agent(self, chance: random.Random) -> None:
        ahead_s = chance.choice((0.0, 0.0, YEAR_S, -YEAR_S))
        if chance.random() < 0.15:
            durable.replace = full_disk  # type: ignore[assignment]
        agent = self.case.agent(clock=lambda: time.time() + ahead_s)
        while True:
            wishes = self.case.wishes()
            plan = Plan(tuple(chance.choice(wishes))) if chance.random() < 0.8 else Plan()
            with contextlib.suppress(TarazuError):
                agent.follow(plan, "apply", "chaos", wait_s=LOCK_S)

    def _administrator(self) -> None:
        with self.case.agent().store.locked(LOCK_S):
            before = self.case.now()
            self.case.administrator(number := self.chance.randrange(100))
            now = self.case.now()
        self.expected = {n: v for n, v in self.expected.items() if n in now or n not in before}
        self.expected |= {name: value for name, value in now.items() if before.get(name) != value}
        self.counts["an administrator's changes"] += 1
        self.log.append(f"administrator {number}")


class Beside:
    """All levers, each in a process of its own, while a site is under load: they give way to it."""

    def __init__(self, seed: int) -> None:
        command = [sys.executable, "-m", "tests.parts.changes.chaos"]
        self._started = [
            subprocess.Popen(
                [*command, name, str(seed)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for name in sorted(CASES)
        ]

    def end(self) -> tuple[Counter[str], list[str]]:
        """(what was done, what was wrong)."""
        counts: Counter[str] = Counter()
        wrong: list[str] = []
        for name, process in zip(sorted(CASES), self._started, strict=True):
            out, _ = process.communicate("\n")
            try:
                outcome = json.loads(out)
            except ValueError:
                wrong.append(f"levers: {name} ended with {process.returncode} and said nothing")
                continue
            counts.update({f"agents of levers: {what}": count for what, count in outcome["counts"].items()})
            wrong += outcome["wrong"]
        return counts, wrong


def main() -> int:
    name, seed = sys.argv[1], sys.argv[2]
    os.nice(19)
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        case = CASES[name](Path(directory), in_process=False)
        os.environ.update(case.environment())
        engine.LOOK_S = 0.0
        lever = Lever(case, f"{seed} {name}")
        while not select.select([sys.stdin], [], [], 0.0)[0] and not lever.wrong:
            lever.round()
    print(json.dumps({"counts": lever.counts, "wrong": lever.wrong}))
    return int(bool(lever.wrong))


if __name__ == "__main__":
    sys.exit(main())
