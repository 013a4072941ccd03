"""Intervals are Student's; a gain whose interval holds nothing is told as none."""

from __future__ import annotations

import math

import msgspec
import pytest

from tarazu.sim.study.results import ScenarioRow
from tarazu.sim.study.statistics import estimate, ratio
from tarazu.sim.study.summary import gain_text, summaries


def test_the_interval_is_that_of_the_table() -> None:
    # t(0.975; 4) = 2.776445; s = sqrt(2.5)
    found = estimate([1, 2, 3, 4, 5])
    assert found.mean == 3
    assert found.half == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)
    assert (found.low + found.high) / 2 == pytest.approx(3)


def test_one_value_has_no_interval() -> None:
    assert estimate([2.5]).mean == 2.5 and math.isnan(estimate([2.5]).half)


def test_gains_are_paired_by_seed() -> None:
    # Seeds differ a thousandfold, the gain does not.
    found = ratio([110, 1.1, 0.11], [100, 1, 0.1])
    assert found.mean == pytest.approx(1.1) and found.half == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("ours", "text"),
    [
        ([120, 121, 119], "+20.0 % (+17.5 to +22.5)"),
        ([100, 104, 97], "none (-8.4 to +9.1 %)"),
        ([130], "+30.0 % (one seed)"),
    ],
)
def test_a_gain_is_told_as_it_is(ours: list[float], text: str) -> None:
    assert gain_text(ratio(ours, [100] * len(ours))) == text


def row(policy: str, seed: int, rate: float, error: str = "") -> ScenarioRow:
    return ScenarioRow(
        f"{policy}{seed}",
        "s",
        {},
        "paper",
        10,
        "plain",
        policy,
        seed,
        1,
        1,
        error,
        write_bytes_per_s=rate,
        completion_s=1,
    )


def test_failed_seeds_are_counted_and_left_out_of_means() -> None:
    rows = [row("lsa", 0, 10), row("lsa", 1, 30), row("tarazu", 0, 20), row("tarazu", 1, 0, "full")]
    lsa, tarazu = summaries(rows)
    assert (lsa.write.mean, lsa.failed, lsa.write_gain) == (20, 0, None)
    assert (tarazu.write.mean, tarazu.seeds, tarazu.failed) == (20, 2, 1)
    assert tarazu.write_gain is not None and tarazu.write_gain.mean == 2
    assert tarazu.read_gain is None, "nothing was read"


def test_the_mean_cost_of_several_runs_does_not_stand_below_their_bound() -> None:
    rows = [
        msgspec.structs.replace(row("lsa", 0, 10), run=run, runs=2, ost_cost=cost, ost_cost_bound=cost)
        for run, cost in ((1, 1.0), (2, 1.2))
    ]
    (line,) = summaries(rows)
    assert line.ost_cost.mean == pytest.approx(1.1) and line.ost_cost_bound == pytest.approx(1.1)
