"""How long placements would take, told by reports: by the estimate that mdsd judges by."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.allocate import timing
from tarazu.config import Weights
from tarazu.layout.setstripe import parse_layout
from tarazu.model import CreateRequest, FilePlacement, Ost, SystemView
from tarazu.report.objects import Laid
from tarazu.report.times import TimeModel
from tarazu.units import GIB, MIB, TIB

PFL = parse_layout("-E 256M -c 1 -S 1M -E -1 -c 2 -S 1M")[0]
SPEED = np.array([1e8, 2e8, 1e8, 4e8])
NOTHING = Laid((), ())


def model(phases: list[int], fixed: Laid = NOTHING) -> TimeModel:
    return TimeModel(np.arange(4), SPEED, np.array(phases), None, fixed)


def estimate(requests: list[CreateRequest], places: list[tuple[tuple[int, ...], ...]]) -> float:
    view = SystemView("lustre", 0.0, tuple(Ost(i, f"oss{i}", TIB, TIB, TIB) for i in range(4)))
    problem = timing.placed(view, requests, [FilePlacement(of) for of in places])
    return timing.Timing(problem, Weights(), SPEED).time_s(problem.groups)


FILES = [CreateRequest(GIB, PFL), CreateRequest(300 * MIB, PFL), CreateRequest(2 * GIB, PFL, writers=4)]
PLACES = [((0,), (1, 2)), ((3,), (0, 1)), ((2,), (3, 0))]


def test_progressive_files_were_told_to_wait_for_one_another_at_each_boundary() -> None:
    """Whoever is done with a component goes on with the next: `whatif` and `report` had steps of their own."""
    told = model([0, 0, 0]).seconds(Laid(FILES, PLACES))
    assert told.total_s == pytest.approx(estimate(FILES, PLACES))
    first, second = (estimate([FILES[0]], [PLACES[0]]), estimate(FILES[1:], PLACES[1:]))
    assert model([0, 1, 1]).seconds(Laid(FILES, PLACES)).total_s == pytest.approx(first + second)


def test_what_was_there_before_is_written_beside_the_new_files() -> None:
    told = model([0, 0, 0], Laid(FILES[1:], PLACES[1:])).seconds(Laid(FILES[:1], PLACES[:1]))
    assert told.total_s == pytest.approx(estimate(FILES, PLACES))
    assert told.slowest == 0 and told.per_ost_s[3] < told.per_ost_s[0]


def test_bytes_that_were_written_again_take_their_time_again() -> None:
    plain = CreateRequest(GIB, parse_layout("-c 1 -S 1M")[0])
    once, thrice = (model([0]).seconds(Laid([plain], [((0,),)], [times * GIB])).total_s for times in (1, 3))
    assert thrice == pytest.approx(3 * once) == pytest.approx(3 * GIB / 1e8)


def test_objects_whose_ost_is_not_known_take_no_time() -> None:
    two = CreateRequest(GIB, parse_layout("-c 2 -S 1M")[0])
    assert model([0]).seconds(Laid([two], [((1,),)])).total_s == pytest.approx(GIB / 2 / 2e8)
