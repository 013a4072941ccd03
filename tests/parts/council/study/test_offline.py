"""The offline evaluation's own arithmetic, and that a learner which knows the answer loses nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study import measured, offline
from tarazu.parts.council.study.learning.epsilon import EpsilonGreedy
from tarazu.parts.council.study.measured import Measured, Sample

READ = Pattern("read", "strided", 1, 32768)


def of(*means: float) -> Measured:
    return Measured("", READ, tuple(Sample(np.array([mean, mean]), np.zeros(2)) for mean in means))


def test_greed_without_exploration_stays_where_it_starts() -> None:
    windows = offline.used(of(1.0, 2.0, 4.0), lambda seed: EpsilonGreedy(3, seed, 0.0), 1, 30, 4, 7)
    assert windows.shape == (4, 30)
    assert (windows == 1).all()


def test_the_best_window_from_the_start_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline.learning, "named", lambda name, arms, seed: EpsilonGreedy(arms, seed, 0.0))
    best = offline.scenario(of(1.0, 2.0, 4.0), "any", 2, 3, 1, 40)
    assert best.regret == 0.0
    assert (best.performance == 1.0).all() and (best.precision == 1.0).all()
    worst = offline.scenario(of(1.0, 2.0, 4.0), "any", 0, 3, 1, 40)
    assert worst.regret == pytest.approx(40 * 0.75)
    assert (worst.performance == 0.25).all() and (worst.precision == 0.0).all()


def test_same_seed_same_windows() -> None:
    one = measured.generated(1, 20)[5]
    first, again, other = (offline.scenario(one, "tarazu", 0, 2, seed, 60) for seed in (1, 1, 2))
    assert first.regret == again.regret != other.regret


@pytest.mark.parametrize(
    ("performance", "observations"),
    [
        ([0.9, 0.96, 0.97], 20.0),
        ([0.96, 0.5, 0.97, 0.98], 30.0),
        ([0.96, 0.94, 0.97], 10.0),
        ([0.9, 0.94], math.inf),
    ],
)
def test_reached_is_where_it_stays(performance: list[float], observations: float) -> None:
    assert offline.reached(np.array(performance)) == observations


def test_each_situation_keeps_its_own_window() -> None:
    several = [of(4.0, 1.0), of(1.0, 4.0)._replace(pattern=READ._replace(operation="write"))]
    which, windows = offline.together(several, EpsilonGreedy(2, 1, 0.1), 400, 3)
    late = slice(200, 400)
    assert (windows[late][which[late] == 0] == 0).mean() > 0.85
    assert (windows[late][which[late] == 1] == 1).mean() > 0.85


def test_generated_situations_are_those_of_the_paper() -> None:
    found = measured.generated(3, 10)
    assert len(found) == 144
    assert len({one.name for one in found}) == 144
    assert all(one.shares.max() == 1.0 and one.lead >= 0 for one in found)


def test_a_change_is_seen_in_what_is_lost() -> None:
    one = of(4.0, 1.0)
    stays = EpsilonGreedy(2, 1, 0.0)
    before, after = offline.through([(one, 30), (offline.mirrored(one, 0.5), 5)], stays, 1)
    assert (before == 1.0).all()
    assert (after == 0.25).all()
