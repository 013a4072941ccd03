"""The council in simulated time: what is asked, what is learned, and what is said of it."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from tarazu.parts.council.study import online, pictures
from tarazu.parts.council.study.evaluate import Compared, OnlineEvaluation
from tarazu.parts.council.study.online import FIRST, OURS, PAPER, Control, Manner
from tarazu.parts.council.study.requests.outcome import Setting
from tarazu.parts.council.study.requests.run import simulate
from tarazu.parts.council.study.requests.situation import TABLE_III, WINDOWS, WINDOWS_S, Workload

F = TABLE_III["F"]


def controlled(manner: Manner, seed: int = 1) -> Control:
    """Some 20 seconds of situation F's writes, then of its reads."""
    control = Control(manner, seed)
    phases = tuple(F._replace(operation=way).phase(64) for way in ("write", "read"))
    simulate(Workload(F.nodes, phases), Setting("twins", WINDOWS_S[FIRST]), seed, controller=control)
    return control


def test_the_papers_council_decides_each_second_and_learns_both_patterns() -> None:
    control = controlled(PAPER)
    assert [step.second for step in control.steps] == [float(n) for n in range(1, len(control.steps) + 1)]
    assert control.council.choices >= 0.8 * len(control.steps) >= 8
    learned = {row["pattern"] for row in control.council.explain()}
    assert learned == {"write strided, 32768 B", "read strided, 32768 B"}
    assert len({step.window for step in control.steps}) > 1


def test_a_window_that_was_decided_is_in_force_in_the_next_interval() -> None:
    slow = OURS._replace(dwell_s=10.0)  # as the daemons' settings are
    control = controlled(slow)
    stays = [one.window == other.window for one, other in pairwise(control.steps)]
    changes = [n for n, same in enumerate(stays) if not same]
    assert changes and all(b - a >= slow.dwell_s for a, b in pairwise(changes))
    assert control.steps[0].window == FIRST


def test_same_seed_same_windows() -> None:
    one, same, other = (controlled(OURS, seed).steps for seed in (1, 1, 2))
    assert one == same != other


def test_the_trend_of_a_straight_line_is_its_ends() -> None:
    assert pictures.trend([10.0, 8.0, 6.0, 4.0]) == pytest.approx((10.0, 4.0))
    assert pictures.trend([3.0]) == (3.0, 3.0)


def test_the_picture_is_whole_and_says_what_is_best() -> None:
    times = {PAPER.name: (9.0, 8.0, 8.0, 8.0), OURS.name: (9.0, 6.0, 5.5, 5.0)}
    phase = Compared("F", "write", (7.0, 6.0, 5.0, 8.0, 9.0, 10.0, 11.0), times)
    assert (WINDOWS[phase.best], WINDOWS[phase.worst]) == ("500us", "8ms")
    assert phase.learned_s(OURS.name) == 5.25
    control, begins = controlled(OURS), ((0.0, 5.0, 9.0, 12.0),)
    ran = online.Ran(
        online.Runs("F", 4, OURS),
        ("write",),
        ((1.0,) * 4,),
        begins,
        tuple(control.steps),
        tuple(control.council.explain()),
    )
    svg = pictures.online_picture(OnlineEvaluation((phase,), (ran,)))
    assert "nan" not in svg and "inf" not in svg and ">500us<" in svg
    ElementTree.fromstring(svg)
