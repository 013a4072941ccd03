"""The closed loop in its short form: no other users, five runs, of which the last two meet a slow OST."""

from __future__ import annotations

import pytest

from tarazu.sim.validation import closed_loop


def test_a_slow_ost_is_noticed_one_run_later_and_nothing_beats_the_bound() -> None:
    first, *_ = closed_loop.closed_loop("lsa", runs=1, traffic=False)
    runs = closed_loop.closed_loop("tarazu", runs=5, traffic=False)
    assert runs[0].completion_s == pytest.approx(
        first.completion_s, rel=1e-9
    )  # nothing is known before a first run
    assert [r.slow for r in runs] == [False, False, False, True, True]
    assert [r.unplanned for r in runs] == [closed_loop.RANKS, 0, 0, 0, 0]
    for run in (first, *runs):
        assert run.bound_s <= run.completion_s
        assert run.forecast_error < 0.1
    fourth, fifth = runs[3:]
    assert fourth.believed_speed == 1.0
    assert fifth.believed_speed < 0.5
    assert fifth.slow_ost_bytes < fourth.slow_ost_bytes / 2
    assert fifth.completion_s < fourth.completion_s
