"""Histories of one node: what is set, by whom, and where the process dies. What undo must leave is known."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tarazu import durable
from tarazu.daemons.levers import keeper as keepers
from tarazu.daemons.levers.keeper import Keeper
from tarazu.daemons.levers.kept import Kept
from tarazu.sim.testbed import tunables

from .conftest import Here, Node

IO = "ost.OSS.ost_io"
VALUES = {
    "nrs": ("", "fifo", "crrn 8", "crrn 32", "orr 256", "trr 64"),
    "max_rpcs_in_flight": ("", "4", "16"),
    "max_read_ahead_mb": ("", "64", "1024"),
}
ADMINISTRATOR = ("both", "hp", "osc 0", "osc 1", "llite")
MEMORY = "/dev/shm"


class Crash(NamedTuple):
    at: str
    """`lctl`: a call of it; `note`: a file that is written."""
    number: int
    after: bool


class Apply(NamedTuple):
    values: dict[str, str]
    """Lever → value; empty: what was there before."""
    crash: Crash | None = None


class Set(NamedTuple):
    """By an administrator, to a value that is in no list."""

    what: str


class Resume(NamedTuple):
    """`tarazu change tune --undo`, then `--apply`."""


Step = Apply | Set | Resume


class Killed(BaseException):
    """Here the process dies."""


class Dying:
    """Calls a function until the nth time; then the process dies before or after it."""

    def __init__(self, function: Callable[..., Any], crash: Crash) -> None:
        self.function, self.left, self.after = function, crash.number, crash.after

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        found = self.function(*arguments, **more)
        if self.left == 0:
            raise Killed
        return found


def made(root: Path) -> Node:
    """An OSS that is a client too, of two OSTs."""
    tunables.make_oss(root)
    tunables.make_client(root, "lustre", 0, 2)
    return Node(root, tuple(VALUES))


def in_force(keeper: Keeper) -> dict[str, str]:
    return {p.name: p.value for lever in keeper.levers.values() for p in lever.now()}


def run(steps: Sequence[Step]) -> tuple[dict[str, str], dict[str, str]]:
    """(what is in force after undo, what should be)."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(keepers, "LOOK_S", 0.0)
        node = made(Path(directory))
        expected = in_force(node.keeper())
        for number, step in enumerate(steps):
            if isinstance(step, Apply):
                _apply(node, step)
            elif isinstance(step, Resume):
                _resume(node)
            else:
                before = in_force(node.keeper())
                administrator(node, step.what, number)
                now = in_force(node.keeper())
                # His setting of one queue can hide the quantum of the other.
                expected |= {n: v for n, v in now.items() if v != before[n] and "?" not in v}
        failed = dict(node.keeper().take_back("tarazu change tune --undo").failed)
        return in_force(node.keeper()) | failed, expected


def _apply(node: Node, step: Apply) -> None:
    keeper = node.keeper()
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        if step.crash and step.crash.at == "lctl":
            patch.setattr(node.program, "call", Dying(Here(node.root).call, step.crash))
        elif step.crash:
            patch.setattr(durable, "replace", Dying(durable.replace, step.crash))
        keeper.apply({name: value for name, value in step.values.items() if value}, "")


def _resume(node: Node) -> None:
    node.keeper().take_back("")
    kept = Kept(node.state)
    with kept.locked():
        kept.note({name: note for name, note in kept.levers.items() if not note.left_to})


def administrator(node: Node, what: str, number: int) -> None:
    if what in ("both", "hp"):
        queue, prefix = ("", "") if what == "both" else (" hp", "hp_quantum:")
        node.set(f"{IO}.nrs_policies", f"trr{queue}")
        node.set(f"{IO}.nrs_trr_quantum", f"{prefix}{1000 + number}")
    elif what == "llite":
        node.set("llite.*.max_read_ahead_mb", str(300 + number))
    else:
        node.set(f"osc.lustre-OST000{what[-1]}-*.max_rpcs_in_flight", str(100 + number))


def drawn(dice: random.Random) -> list[Step]:
    """2-9 steps."""
    steps: list[Step] = []
    for _ in range(dice.randint(2, 9)):
        kind = dice.random()
        if kind < 0.6:
            values = {name: dice.choice(listed) for name, listed in VALUES.items()}
            crash = Crash(dice.choice(("lctl", "note")), dice.randint(1, 5), dice.random() < 0.5)
            steps.append(Apply(values, crash if dice.random() < 0.5 else None))
        else:
            steps.append(Set(dice.choice(ADMINISTRATOR)) if kind < 0.9 else Resume())
    return steps
