"""Agents that are killed at some of their system calls; `python -m tests.parts.changes.kills` does it at each."""

from __future__ import annotations

import random

import pytest

from .cases import CASES
from .kills import tried

EVERY = 80


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_agent_that_is_killed_at_any_system_call_leaves_what_undo_needs(name: str) -> None:
    count, wrong = tried(name, EVERY, random.randrange(EVERY))
    assert count > 2
    assert not wrong
