"""Defaults of directories: what is made below a directory that has one gets a copy, which goes with it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tarazu.parts.changes import engine
from tarazu.parts.changes.agent import Plan
from tests.parts.mdt.lever_case import MdtCase


def test_copies_of_a_time_when_the_clock_was_ahead_go_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stayed where an agent with the right clock had looked in between: by its note they were older."""
    case = MdtCase(tmp_path)
    for name, value in case.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    before, plan = case.now(), Plan(tuple(case.wishes()[0]))
    case.agent(clock=lambda: time.time() + 1e7).follow(plan, "apply", "")
    assert len(case.now()) > len(before), "a directory was made below"
    right = case.agent(clock=lambda: time.time() + 2.0)  # a second is allowed for
    right.follow(plan, "apply", "")
    right.engine.take_back("undo")
    assert case.now() == before
