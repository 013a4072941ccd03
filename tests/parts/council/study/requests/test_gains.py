"""Who gains, from a few runs; and that the documentation's table is one of all situations."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tarazu.parts.council.study.requests.gains import HEAD, cells, gains
from tarazu.parts.council.study.requests.situation import SITUATIONS, TABLE_III
from tarazu.parts.council.study.requests.situations import (
    SCHEDULERS,
    SHORT_PART,
    SituationCase,
    SituationRow,
    rows,
)

ROOT = Path(__file__).parents[5]
TAKEN = dict(zip(SCHEDULERS, (10.0, 8.0, 5.0, 6.0, 7.0, 8.0, 20.0, 12.5, 10.0), strict=True))


def made_up(number: int, **seconds: float) -> list[SituationRow]:
    """Runs of 100 MB: scheduler → makespan."""
    return [
        SituationRow("", 1, 1, number, 1, name, took_s, 10**8, (), ()) for name, took_s in seconds.items()
    ]


def test_the_best_window_is_compared_with_the_better_of_fifo_and_hbrr() -> None:
    (one,) = gains([*made_up(3, **TAKEN), *made_up(5, fifo=1.0)])
    assert one.situation == SITUATIONS[3], "the other has not all runs"
    assert one.best == "500us"
    assert one.gain == pytest.approx(1.0)
    assert one.loss == pytest.approx(-0.5)
    assert one.spread == pytest.approx(0.75)
    assert cells(one)[-3:] == ("500us", "+100", "-50")
    assert len(cells(one)) == len(HEAD)


def test_the_documented_table_has_every_situation_once() -> None:
    with (ROOT / "docs" / "tuning-situations.csv").open(newline="") as file:
        head, *lines = csv.reader(file)
    assert tuple(head) == HEAD
    (one,) = gains(made_up(0, **TAKEN))
    assert [tuple(line[:6]) for line in lines] == [
        cells(one._replace(situation=situation))[:6] for situation in SITUATIONS
    ]


def test_each_scheduler_has_a_run_and_observations() -> None:
    found = rows(SituationCase(SITUATIONS.index(TABLE_III["D"]), 1, SHORT_PART, ""))
    assert [row.scheduler for row in found] == list(SCHEDULERS)
    for row in found:
        assert len(row.rewards) == len(row.demands) > 3 and min(row.rewards) > 0
