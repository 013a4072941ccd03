"""Who gains, from a few runs that are made up; and that the documentation's table is one of all situations."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tarazu.parts.council.study.requests.dataset import SCHEDULERS, Dataset
from tarazu.parts.council.study.requests.gains import HEAD, cells, gains, write_table
from tarazu.parts.council.study.requests.situation import SITUATIONS

ROOT = Path(__file__).parents[5]


def made_up(seconds: dict[int, dict[str, float]]) -> Dataset:
    """Runs of 100 MB: situation → scheduler → makespan."""
    runs = [(number, SCHEDULERS.index(name), s) for number, by in seconds.items() for name, s in by.items()]
    count, none = len(runs), np.zeros(0)
    return Dataset(
        np.array([number for number, _, _ in runs], np.int16),
        np.array([scheduler for _, scheduler, _ in runs], np.int16),
        np.ones(count, np.int64),
        np.array([s for _, _, s in runs]),
        np.full(count, 100_000_000),
        np.zeros(count + 1, np.int64),
        *(none.astype(kind) for kind in (np.int16, np.float64, np.float64, np.float32)),
    )


TAKEN = dict(zip(SCHEDULERS, (10.0, 8.0, 5.0, 6.0, 7.0, 8.0, 20.0, 12.5, 10.0, 4.0), strict=True))


def test_the_best_window_is_compared_with_the_better_of_fifo_and_hbrr() -> None:
    (one,) = gains(made_up({3: TAKEN, 5: {"fifo": 1.0}}))
    assert one.situation == SITUATIONS[3], "the other has not all runs"
    assert one.best == "500us"
    assert one.gain == pytest.approx(1.0)
    assert one.loss == pytest.approx(-0.5)
    assert one.spread == pytest.approx(0.75)
    assert one.clear
    assert cells(one)[-3:] == ("500us", "+100", "-50")
    assert len(cells(one)) == len(HEAD)


def test_no_window_is_clearly_the_best_where_two_are() -> None:
    (one,) = gains(made_up({3: TAKEN | {"1ms": 5.2}}))
    assert not one.clear


def test_the_table_has_a_line_for_each(tmp_path: Path) -> None:
    found = gains(made_up(dict.fromkeys(range(144), TAKEN)))
    write_table(found, tmp_path / "gains.csv")
    with (tmp_path / "gains.csv").open(newline="") as file:
        assert [tuple(line) for line in csv.reader(file)] == [HEAD, *map(cells, found)]


def test_the_documented_table_has_every_situation_once() -> None:
    with (ROOT / "docs" / "tuning-situations.csv").open(newline="") as file:
        head, *lines = csv.reader(file)
    assert tuple(head) == HEAD
    told = [tuple(line[:6]) for line in lines]
    (one,) = gains(made_up({0: TAKEN}))
    assert told == [cells(one._replace(situation=situation))[:6] for situation in SITUATIONS]
