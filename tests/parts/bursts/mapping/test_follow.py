"""The mapping that follows the jobs that run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from tarazu.parts.bursts.mapping.follow import FOLLOW, follow, judged, within
from tarazu.parts.bursts.mapping.history import learn
from tarazu.parts.bursts.mapping.rules import on_a_server, rules
from tarazu.parts.bursts.mapping.simple import moved, round_robin
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.bursts.traffic.traffic import Traffic
from tests.parts.bursts.mapping.test_rules import site
from tests.parts.bursts.mapping.traffic import traffic

MACHINE = regular(96, 12)
BASE = round_robin(96, 8)
WINDOW_S = 100
JOBS = [range(n, 96, 8) for n in range(8)]
"""Each on nodes that i % 8 has on one I/O node; each runs for two windows."""


def read(begin_s: float, end_s: float) -> Iterable[Traffic]:
    for window in range(int(begin_s) // WINDOW_S, int(end_s) // WINDOW_S):
        nodes = JOBS[window // 2 % 8]
        yield traffic(MACHINE, [dict.fromkeys(nodes, 10)] * 10, window * WINDOW_S)


def test_a_job_that_still_runs_is_spread() -> None:
    """Learned in its first window, judged in its second; where the next job has begun it is no better than the base."""

    def change(history, now):  # type: ignore[no-untyped-def]
        return follow(history, MACHINE, BASE, now, 24)

    found = judged(read, MACHINE, BASE, {"i % n": BASE}, (0, 200), WINDOW_S, 9, change)
    assert (found.windows, found.judged["i % n"].busiest_share) == (1, 1.0)
    assert found.judged[FOLLOW].busiest_share < 0.5
    assert 0 < found.off <= 24
    late = judged(read, MACHINE, BASE, {"i % n": BASE}, (100, 300), WINDOW_S, 9, change)
    assert late.judged[FOLLOW].busiest_share == pytest.approx(1.0, abs=0.3)
    many = judged(read, MACHINE, BASE, {}, (0, 1600), WINDOW_S, 5, change)
    assert many.windows == 5 and many.judged[FOLLOW].intervals == 50


def test_few_nodes_are_off_the_base_and_each_io_node_keeps_its_number() -> None:
    history = learn(read(0, 100), MACHINE)
    for moves in (0, 1, 2, 12, 30, 96):
        found = follow(history, MACHINE, BASE, BASE, moves)
        assert moved(BASE, found) <= moves
        assert np.bincount(found).tolist() == [12] * 8


def test_what_is_good_stays() -> None:
    history = learn(read(0, 200), MACHINE)
    once = follow(history, MACHINE, BASE, BASE, 24)
    again = follow(history, MACHINE, BASE, once, 24)
    assert moved(once, again) <= moved(BASE, once) / 2


def test_it_stays_within_the_rules_of_a_server() -> None:
    machine, known = site(96, 48, 8)
    history = learn((traffic(machine, [dict.fromkeys(JOBS[0], 10)]) for _ in range(1)), machine)
    free = follow(history, machine, BASE, BASE, 24)
    needs = on_a_server(rules(free, known))
    base_needs = on_a_server(rules(BASE, known))
    assert base_needs < needs
    found = within(history, machine, BASE, BASE, known, needs - 1, 24)
    assert on_a_server(rules(found, known)) < needs and 0 < moved(BASE, found) < moved(BASE, free)
    assert (within(history, machine, BASE, BASE, known, 1, 24) == BASE).all()


def test_nothing_is_learned_from_silence() -> None:
    assert (follow(learn([], MACHINE), MACHINE, BASE, BASE) == BASE).all()
    none = judged(lambda a, b: [], MACHINE, BASE, {}, (0, 50), WINDOW_S, 9, lambda history, now: BASE)
    assert (none.windows, none.judged) == (0, {})
