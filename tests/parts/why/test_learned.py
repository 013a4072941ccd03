"""What the state costs an application, learned from drawn runs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.parts.why.learned import LEAST_RUNS, Learned, before, lately


def drawn(runs: int, seed: int = 1, noise: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    """The first of two columns costs up to a factor e, the second nothing."""
    rng = np.random.default_rng(seed)
    state = rng.uniform(0, 1, (runs, 2))
    return 3.0 + state[:, 0] + rng.normal(0, noise, runs), state


def test_only_the_column_that_costs_time_has_an_effect() -> None:
    slowness, state = drawn(300)
    learned = Learned(slowness, state)
    busy, idle = learned.effects(np.array([1.0, 0.5])), learned.effects(np.array([0.0, 0.5]))
    assert 0.7 < busy[0] - idle[0] < 1.05, "the ridge makes it careful"
    assert abs(learned.effects(np.array([0.5, 1.0]))[1]) < 0.05


def test_more_load_never_makes_a_run_faster_and_nothing_is_extrapolated() -> None:
    slowness, state = drawn(200)
    learned = Learned(-slowness, state)
    columns = np.linspace(0, 5, 50)
    effects = [learned.effects(np.array([value, 0.5]))[0] for value in columns]
    assert (np.diff(effects) >= 0).all()
    learned = Learned(slowness, state)
    assert learned.effects(np.array([9.0, 0.5]))[0] == learned.effects(np.array([1.0, 0.5]))[0]


def test_few_runs_have_no_effects() -> None:
    slowness, state = drawn(LEAST_RUNS - 1)
    assert not Learned(slowness, state).effects(np.array([1.0, 1.0])).any()


def test_a_column_that_never_changes_is_no_cause() -> None:
    slowness, state = drawn(100)
    state[:, 1] = 4.0
    assert Learned(slowness, state).effects(np.array([1.0, 4.0]))[1] == 0


def test_slow_for_a_week_is_usual_and_not_the_effect_of_what_rose_then() -> None:
    slowness, state = drawn(200)
    slowness[100:] += 2.0
    state[:, 1] = np.linspace(0, 1, 200)
    effects = Learned(slowness, state).effects(np.array([0.5, 1.0]))
    assert abs(effects[1]) < 0.1


def test_walking_along_the_runs_compares_each_with_those_before_it() -> None:
    slowness, state = drawn(100)
    learned = Learned(slowness, state)
    at_the_end = learned.walk(np.concatenate([state, [[1.0, 1.0]]]))[-1]
    assert at_the_end == pytest.approx(learned.effects(np.array([1.0, 1.0])))
    values = np.arange(1.0, 4.0)
    assert lately(values).tolist() == [1.0, 1.5, 2.0] and before(values).tolist() == [1.0, 1.0, 1.5]
