"""How much faster placed runs are, and how sure that is."""

from __future__ import annotations

import math
from random import Random

import pytest
from scipy import stats

from tarazu.evidence.compare import compare, student
from tarazu.evidence.outcomes import Arm, Outcome
from tarazu.units import MIB


def run(arm: Arm, mib_per_s: float, nth: int = 0, **more: object) -> Outcome:
    return Outcome(arm, 100.0 * nth, 100.0 * nth + 50, mib_per_s * MIB * 10, 10.0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("freedom", [2, 3, 5, 10, 60])
def test_students_t(freedom: int) -> None:
    assert student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.015)


def test_both_figures_are_told() -> None:
    runs = [run("placed", 214)] * 18 + [run("left", 190)] * 5
    assert str(compare(runs)).startswith(
        "placed 18 runs, 214.0 MiB/s; left 5 runs, 190.0 MiB/s: +13 % (95 %: "
    )
    assert str(compare(runs[:1])) == "placed 1 run, 214.0 MiB/s"


def test_the_interval_holds_what_is_true_as_often_as_it_says() -> None:
    random, inside = Random(1), 0
    for _ in range(1000):
        runs = [run("placed", 120 * math.exp(random.gauss(0, 0.1))) for _ in range(7)]
        runs += [run("left", 100 * math.exp(random.gauss(0, 0.1))) for _ in range(2)]
        found = compare(runs)
        inside += found.lowest <= 0.2 <= found.highest
    assert 930 <= inside <= 980


def test_without_controls_the_estimate_is_believed_and_with_them_the_runs() -> None:
    placed, left = [run("placed", 90)] * 3, [run("left", 100)]
    assert compare(placed, 2.0).gain == pytest.approx(2.0)
    assert compare(placed + left, 2.0).gain == pytest.approx(-0.1, abs=0.05)
    # A small promise is not far from what one run says by chance.
    assert compare(placed + left, 0.05).gain == pytest.approx(0.02, abs=0.02)
