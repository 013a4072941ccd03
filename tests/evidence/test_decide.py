"""Runs of an application, one after another, and what is decided of each: the real decision in a small loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from tarazu.evidence.decide import PLACE, NextRun, decide
from tarazu.evidence.outcomes import Outcome
from tarazu.left import CONTROL, NOT_FASTER, of_text
from tarazu.units import GIB

CONTROL_SHARE, LEAST_GAIN = 0.125, 0.01


def loop(
    runs: int,
    placed_s: float,
    left_s: float,
    *,
    promised: float,
    seed: int = 0,
    scatter: float = 0.05,
    control: float = CONTROL_SHARE,
    before: tuple[Outcome, ...] = (),
    osts: int = 16,
    beside_others: Callable[[int], bool] = lambda _nth: False,
) -> tuple[list[Outcome], list[str]]:
    """What these runs took, and the word of each reason; seconds are those of a GiB, and differ by chance."""
    random, done, words = Random(seed), list(before), []
    for nth in range(runs):
        begin = 1000.0 * (len(done) + 1)
        next_run = NextRun(f"run-{seed}-{nth}", osts, "plain", beside_others(nth))
        decision = decide(done, next_run, control, LEAST_GAIN)
        words.append(of_text(decision.reason))
        seconds = (placed_s if decision.place else left_s) * math.exp(random.gauss(0, scatter))
        arm = "placed" if decision.place else "left"
        gain, kind = (promised, "plain") if decision.place else (0.0, "")
        done.append(
            Outcome(arm, begin, begin + seconds, GIB, seconds, kind, osts, expected_s=3, expected_gain=gain)  # type: ignore[arg-type]
        )
    return done, words


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("slower", [1.25, 3.0])
def test_a_wrong_model_is_found_out_within_ten_runs(seed: int, slower: float) -> None:
    """It promises three times the speed, and placing costs time: its rates are off, or it misread who writes."""
    _, words = loop(20, 3 * slower, 3, promised=2.0, seed=seed)
    assert words[:3] == [""] * 3
    assert NOT_FASTER in words[:10]
    after = words[words.index(NOT_FASTER) :]
    assert after.count("") <= 2  # placed now and then, should it become better


def left_alone(runs: int, seconds: float) -> tuple[Outcome, ...]:
    """Runs that were observed before any was placed."""
    return tuple(
        Outcome("left", 1000.0 * n, 1000.0 * n + seconds, GIB, seconds * math.exp(0.05 * (-1) ** n), "", 16)
        for n in range(runs)
    )


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("slower", [1.25, 3.0])
def test_two_slow_runs_are_enough_where_others_were_observed_before(seed: int, slower: float) -> None:
    _, words = loop(10, 3 * slower, 3, promised=2.0, seed=seed, before=left_alone(6, 3))
    assert NOT_FASTER in words[: 2 if slower > 2 else 3]
    assert words[words.index(NOT_FASTER) :].count("") <= 1


@pytest.mark.parametrize("seed", range(30))
def test_what_gains_stays_placed_beside_runs_that_were_observed_before(seed: int) -> None:
    _, words = loop(40, 3, 4.5, promised=0.5, seed=seed, before=left_alone(6, 4.5))
    assert NOT_FASTER not in words


@pytest.mark.parametrize("seed", range(30))
def test_what_gains_stays_placed(seed: int) -> None:
    _, words = loop(40, 3, 4.5, promised=0.5, seed=seed)
    assert NOT_FASTER not in words
    assert 1 <= words.count(CONTROL) <= 3


def test_one_run_in_eight_is_a_control_while_the_answer_is_open() -> None:
    _, words = loop(160, 3, 3.06, promised=0.05, scatter=0.3)
    assert words.count(CONTROL) + words.count(NOT_FASTER) > 10
    for begin in range(160 - 16):
        assert words[begin : begin + 16].count(CONTROL) <= 2


def test_one_run_in_fifty_is_a_control_once_it_is_clear() -> None:
    _, words = loop(200, 3, 6, promised=1.0)
    assert 3 <= words.count(CONTROL) <= 5 and NOT_FASTER not in words


def test_other_osts_are_measured_at_once() -> None:
    before, _ = loop(30, 6, 3, promised=1.0)
    _, words = loop(2, 3, 6, promised=1.0, before=tuple(before), osts=12)
    assert words == [CONTROL, ""]


def test_a_sick_ost_is_no_evidence() -> None:
    before, _ = loop(3, 3, 3, promised=1.0)
    sick = [Outcome("left", 1e5 + n, 1e5 + n, GIB, 30.0, usable_osts=16, well=False) for n in range(20)]
    assert decide([*before, *sick], NextRun("x", 16, "plain"), CONTROL_SHARE, LEAST_GAIN) != PLACE


def test_tasks_of_an_array_are_not_all_controls() -> None:
    before, _ = loop(3, 3, 3, promised=1.0)
    told = [
        decide(before, NextRun(f"task-{n}", 16, "plain", True), CONTROL_SHARE, LEAST_GAIN).place
        for n in range(400)
    ]
    assert 30 <= told.count(False) <= 70


def test_the_same_run_is_told_the_same() -> None:
    before, _ = loop(30, 3, 3, promised=0.1)
    next_run = NextRun("20261128T200000-17-abcdef-login1", 16, "plain")
    assert len({decide(before, next_run, CONTROL_SHARE, LEAST_GAIN) for _ in range(5)}) == 1


@pytest.mark.parametrize(("control", "least_gain"), [(0.0, LEAST_GAIN), (CONTROL_SHARE, -1.0)])
def test_a_site_that_always_places(control: float, least_gain: float) -> None:
    before, _ = loop(30, 6, 3, promised=1.0)
    assert decide(before, NextRun("x", 16, "plain"), control, least_gain) == PLACE
