"""What a change gave, beside the same hours of the days before."""

from __future__ import annotations

import math
import random

import pytest

from tarazu.parts.changes.model.outcome import DAY, DAYS, HOUR_S, Gave, Hours, compare

NOW_H = 480_000
PROMISED = Gave("time", 2.0, 1.0)


def hours(after: float, changed_h: int, now_h: int, noise: float = 0.0, seed: int = 1) -> Hours:
    """A measure with a day in it, that is `after` times as large from the change on."""
    dice, made = random.Random(seed), Hours()
    for hour in range(now_h - DAY * DAYS, now_h):
        load = 2.0 + math.sin(2 * math.pi * hour / DAY) + dice.uniform(-noise, noise)
        made.add(load * (after if hour > changed_h else 1.0), hour * HOUR_S)
    return made


@pytest.mark.parametrize(("after", "verdict"), [(0.7, "better"), (1.0, "the same"), (1.3, "worse")])
@pytest.mark.parametrize("changed_ago_h", [5, 12, 30])
def test_the_same_hours_of_the_days_before_are_what_counts(
    after: float, verdict: str, changed_ago_h: int
) -> None:
    changed = NOW_H - changed_ago_h
    gave = compare(hours(after, changed, NOW_H, 0.1).sums, PROMISED, changed * HOUR_S, NOW_H * HOUR_S)
    assert gave.verdict == verdict
    assert gave.after / gave.before == pytest.approx(after, abs=0.1)
    assert (gave.promised_before, gave.promised_after) == (2.0, 1.0)


def test_nothing_is_said_before_there_are_hours_to_compare() -> None:
    changed = NOW_H - 2
    known = hours(9.0, changed, NOW_H).sums
    assert compare(known, PROMISED, changed * HOUR_S, NOW_H * HOUR_S).verdict == "not known yet"
    alone = {hour: mean for hour, mean in known.items() if hour > changed - 3}
    assert compare(alone, PROMISED, (NOW_H - 20) * HOUR_S, NOW_H * HOUR_S).verdict == "not known yet"


def test_noise_is_called_worse_seldom() -> None:
    changed = NOW_H - 20
    worse = sum(
        compare(
            hours(1.0, changed, NOW_H, 1.0, seed).sums, PROMISED, changed * HOUR_S, NOW_H * HOUR_S
        ).verdict
        == "worse"
        for seed in range(200)
    )
    assert worse <= 10


def test_hours_of_a_clock_that_was_ahead_and_old_ones_are_forgotten() -> None:
    made = Hours()
    made.add(1.0, (NOW_H + 500) * HOUR_S)
    made.add(1.0, (NOW_H - 900) * HOUR_S)
    made.add(2.0, NOW_H * HOUR_S)
    made.add(4.0, NOW_H * HOUR_S)
    assert made.sums == {NOW_H: (6.0, 2)}
