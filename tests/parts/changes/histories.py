"""Histories of one system: what is wanted, who sets what, where the agent dies. What undo must leave is known."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tarazu.parts.changes import engine, store
from tarazu.parts.changes.agent import Plan

from .case import Case
from .dying import Crash, Killed, dies

MEMORY = "/dev/shm"
POINTS = ("set", "note", "forget", "silent", "half", "full")


class Apply(NamedTuple):
    wish: int
    """Which of the case's; -1: nothing."""
    crash: Crash | None = None


class Administrator(NamedTuple):
    number: int


class Rest(NamedTuple):
    """The site is stopped for a round, in which this is still wanted."""

    wish: int


class Resume(NamedTuple):
    """`tarazu change undo --all`, then `apply`."""


class Boot(NamedTuple):
    pass


Step = Apply | Administrator | Rest | Resume | Boot


def run(kind: type[Case], steps: Sequence[Step]) -> tuple[dict[str, str], dict[str, str]]:
    """(what is there after undo, what should be)."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, pytest.MonkeyPatch.context() as patch:
        case = kind(Path(directory))
        for name, value in case.environment().items():
            patch.setenv(name, value)
        patch.setattr(engine, "LOOK_S", 0.0)
        expected, boots = case.now(), 0
        for number, step in enumerate(steps):
            if isinstance(step, Apply):
                _apply(case, step)
            elif isinstance(step, Rest):
                case.agent(stopped=lambda: "stopped by a test").follow(_plan(case, step.wish), "apply", "")
            elif isinstance(step, Resume):
                case.agent().engine.take_back("undo")
                case.agent().engine.forget_theirs()
            elif isinstance(step, Boot):
                boots += 1
                for module in (engine, store):
                    patch.setattr(module, "boot_id", lambda number=boots: f"boot {number}")
                before = case.now()
                case.boot()
                if not case.lasting:
                    expected = case.now()
                else:
                    assert case.now() == before
            else:
                before = case.now()
                case.administrator(number)
                now = case.now()
                gone = set(before) - set(now)
                expected = {n: v for n, v in expected.items() if n not in gone}
                expected |= {name: value for name, value in now.items() if value != before.get(name)}
        failed = {" ".join(each.key): each.why for each in case.agent().engine.take_back("undo").failed}
        return case.now() | failed, case.undone(expected)


def _apply(case: Case, step: Apply) -> None:
    agent = case.agent()
    plan = _plan(case, step.wish)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        if step.crash:
            dies(agent, step.crash, patch)
        agent.follow(plan, "apply", "a test")


def _plan(case: Case, wish: int) -> Plan:
    wishes = case.wishes()
    return Plan(tuple(wishes[wish % len(wishes)])) if wish >= 0 else Plan()


def drawn(dice: random.Random) -> list[Step]:
    """2-9 steps."""
    steps: list[Step] = []
    for _ in range(dice.randint(2, 9)):
        kind = dice.random()
        if kind < 0.55:
            crash = Crash(dice.choice(POINTS), dice.randint(1, 5), dice.random() < 0.5)
            steps.append(Apply(dice.randint(-1, 5), crash if dice.random() < 0.5 else None))
        elif kind < 0.8:
            steps.append(Administrator(dice.randint(0, 5)))
        else:
            steps.append(dice.choice((Rest(dice.randint(-1, 5)), Resume(), Boot())))
    return steps
