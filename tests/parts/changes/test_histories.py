"""Whatever happens to a system in whatever order, undo leaves each thing as whoever else set it last."""

from __future__ import annotations

import random

import pytest

from .cases import CASES
from .histories import POINTS, Apply, drawn, run

SEEDS = 25
"""Of each lever here; `python -m tests.parts.changes.many` draws thousands."""


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_undo_leaves_what_whoever_else_set_last(name: str, seed: int) -> None:
    steps = drawn(random.Random(seed))
    found, expected = run(CASES[name], steps)
    assert found == expected, steps


def test_histories_that_are_drawn_have_all_that_can_happen() -> None:
    steps = [step for seed in range(30) for step in drawn(random.Random(seed))]
    kinds = {
        step.crash.at if isinstance(step, Apply) and step.crash else type(step).__name__ for step in steps
    }
    assert kinds == {*POINTS, "Apply", "Administrator", "Rest", "Resume", "Boot"}
