"""The council in simulated time: what is asked, what is learned, and what is said of it."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from tarazu.parts.council.study import evaluate, online, pictures
from tarazu.parts.council.study.change import Course, Replaced, found_again_s, good, rates_alone
from tarazu.parts.council.study.control import FIRST, OURS, PAPER, Control, Manner
from tarazu.parts.council.study.evaluate import DETECTED, Again, Compared, OnlineEvaluation
from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import INTERVAL_S, TABLE_III, WINDOWS, WINDOWS_S
from tarazu.parts.council.study.requests.workload import Workload

F = TABLE_III["F"]


def controlled(manner: Manner, seed: int = 1) -> Control:
    """Some 20 seconds of situation F's writes, then of its reads."""
    control = Control(manner, seed)
    phases = tuple(F._replace(operation=way).phase(64) for way in ("write", "read"))
    work = Workload(F.nodes, phases)
    simulate(work, Setting("twins", WINDOWS_S[FIRST]), seed, controller=control, features=manner.classifier)
    return control


def test_the_papers_council_decides_each_second_and_learns_both_patterns() -> None:
    control = controlled(PAPER)
    assert [step.second for step in control.steps] == [float(n) for n in range(1, len(control.steps) + 1)]
    assert control.council.choices >= 0.8 * len(control.steps) >= 8
    learned = {row["pattern"] for row in control.council.explain()}
    assert learned == {"write strided, 1 file, 32768 B", "read strided, 1 file, 32768 B"}
    assert len({step.window for step in control.steps}) > 1


def test_a_window_that_was_decided_is_in_force_in_the_next_interval() -> None:
    slow = OURS._replace(dwell_s=10.0)  # as the daemons' settings are
    control = controlled(slow)
    stays = [one.window == other.window for one, other in pairwise(control.steps)]
    changes = [n for n, same in enumerate(stays) if not same]
    assert changes and all(b - a >= slow.dwell_s for a, b in pairwise(changes))
    assert control.steps[0].window == FIRST


def test_the_classifier_finds_the_operation_of_each_phase() -> None:
    learned = controlled(DETECTED).council.explain()
    assert {row["pattern"].split()[0] for row in learned} == {"write", "read"}
    assert {row["lever"] for row in learned} == {"window"}


def test_same_seed_same_windows() -> None:
    one, same, other = (controlled(OURS, seed).steps for seed in (1, 1, 2))
    assert one == same != other


def test_the_trend_of_a_straight_line_is_its_ends() -> None:
    assert online.trend([10.0, 8.0, 6.0, 4.0]) == pytest.approx((10.0, 4.0))
    assert online.trend([3.0]) == (3.0, 3.0)
    first, last = online.trend([10.0, 4.0, 9.0, 3.0])
    assert first > last


def test_found_again_is_when_most_of_what_follows_is_good() -> None:
    before = [0] * 10
    assert found_again_s([*before, *[1] * 5, *[5] * 30], {5}, 10) == 5
    # Now and then something else is tried.
    assert found_again_s([*before, *[5, 5, 5, 1] * 10], {5}, 10) == 0
    # A try alone has found nothing.
    assert found_again_s([*before, 5, *[1] * 40], {5}, 10) == math.inf
    assert found_again_s([5] * 10 + [1] * 40, {5}, 10) == math.inf


def course(window: int, rate: float) -> Course:
    return Course(Replaced("faster", None, window), (window,) * 4, (rate,) * 4)


def test_as_good_as_the_best() -> None:
    alone = rates_alone([course(0, 50.0), course(1, 98.0), course(2, 100.0), course(2, 100.0)])
    assert alone == {0: 50.0, 1: 98.0, 2: 100.0} and good(alone) == {1, 2}


def found() -> OnlineEvaluation:
    """What an evaluation could give."""
    times = {PAPER.name: (9.0, 8.0, 8.0, 8.0), OURS.name: (9.0, 6.0, 5.5, 5.0)}
    phase = Compared("F", "write", (7.0, 6.0, 5.0, 8.0, 9.0, 10.0, 11.0), times)
    control = controlled(OURS)
    case = online.Runs("F", 4, OURS)
    ran = online.Ran(
        case,
        ("write",),
        ((1.0,) * 4,),
        ((0.0, 5.0, 9.0, 12.0),),
        tuple(control.steps),
        tuple(control.council.explain()),
    )
    seconds = {PAPER.name: (math.inf, 50.0, math.inf), OURS.name: (8.0, 0.0, 9.0)}
    again = Again("faster", {0: 1e8, 5: 3e8}, seconds, dict.fromkeys(seconds, (0.5, 0.7, 0.6)))
    courses = tuple(
        Course(Replaced("faster", manner, seed=seed), (5,) * 200, (2e8,) * 200)
        for manner in (PAPER, OURS)
        for seed in (1, 2, 3)
    )
    return OnlineEvaluation((phase,), (again,), (ran,), courses)


def test_what_is_compared() -> None:
    one = found()
    phase, again = one.phases[0], one.again[0]
    assert (WINDOWS[phase.best], WINDOWS[phase.worst]) == ("500us", "8ms")
    assert phase.learned_s(OURS.name) == 5.25
    assert again.median_s(PAPER.name) == math.inf and again.median_s(OURS.name) == 8.0
    assert again.median_share(OURS.name) == 0.6


def test_pictures_are_whole_and_say_what_is_best() -> None:
    drawn = pictures.pictures(found())
    assert set(drawn) == {"tuning-online.svg", "tuning-change.svg"}
    for svg in drawn.values():
        assert "nan" not in svg and "inf" not in svg
        ElementTree.fromstring(svg)
    assert ">500us<" in drawn["tuning-online.svg"] and ">4ms<" in drawn["tuning-change.svg"]


def test_cases_of_the_evaluation_are_different_and_all_there() -> None:
    for size in (evaluate.WHOLE, evaluate.SHORT):
        cases = [*evaluate._runs(size), *evaluate._replaced(size)]
        assert len({case.id for case in cases}) == len({case.label for case in cases}) == len(cases)
    assert online.F_RUNS == 120 and INTERVAL_S == 0.125
