"""Learners whose observations show what is detected: what is not known teaches nothing, what is taken for another
pattern is learned as that one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tarazu.sim.requests.situation import SITUATIONS, TABLE_III, WINDOWS
from tarazu.sim.requests.situations import SHORT_PART
from tarazu.sim.tuning import detected, with_detection
from tarazu.sim.tuning.learning import named
from tarazu.sim.tuning.measured import Measured, Sample
from tarazu.tune.learner import Learner
from tarazu.tune.pattern import Pattern

PATTERN = Pattern("write", "strided", 1, 32768)
OTHER = PATTERN._replace(spatiality="contiguous")
F = SITUATIONS.index(TABLE_III["F"])


def situation() -> Measured:
    """The last of three windows is twice as good as the others."""
    samples = tuple(Sample(np.full(50, reward), np.full(50, 8.0)) for reward in (1e6, 1e6, 2e6))
    return Measured("made up", PATTERN, samples)


def greedy(seed: int) -> Learner:
    return named("epsilon-greedy", 3, seed)


def test_perfect_detection_is_the_evaluation_as_it_is() -> None:
    one = (situation(),)
    found = with_detection.evaluated(one, with_detection.perfect(one, [0]), greedy, 200, 5, seed=1)
    assert found.performance > 0.9 and found.precision > 0.8 and found.observations < 200


def test_an_interval_that_shows_nothing_changes_nothing() -> None:
    arms = with_detection.used(situation(), [[(None, 1.0)]] * 3, greedy, 1, 50, 2, seed=1)
    assert (arms == 1).all()


def test_what_is_confused_takes_longer_to_learn() -> None:
    one = (situation(),)
    mixed = {0: [[(PATTERN, 0.4), (OTHER, 0.3), (None, 0.3)]] * 3}
    true = with_detection.evaluated(one, with_detection.perfect(one, [0]), greedy, 100, 30, seed=1)
    got = with_detection.evaluated(one, mixed, greedy, 100, 30, seed=1)
    assert got.observations >= true.observations
    assert got.performance > 0.8, "it is learned all the same"


def test_situations_that_are_taken_for_one_another_share_what_they_learn() -> None:
    """One is best with the last window, the other with the first."""
    one = situation()
    other = Measured("other", OTHER, one.samples[::-1])
    true = with_detection.perfect((one, other), [0, 1])
    same = {number: [[(PATTERN, 1.0)]] * 3 for number in (0, 1)}
    apart = with_detection.together((one, other), true, greedy, 300, seed=2)
    mixed = with_detection.together((one, other), same, greedy, 300, seed=2)
    assert apart.performance > 0.9 > mixed.performance
    assert apart.precision > mixed.precision


@pytest.fixture(scope="module")
def rows() -> list[detected.DetectedRow]:
    return detected.rows(detected.DetectedCase(F, 1, SHORT_PART, ""))


def test_what_is_detected_in_a_situation(rows: list[detected.DetectedRow]) -> None:
    assert [row.window for row in rows] == list(range(len(WINDOWS)))
    seen = detected.spatiality(rows)
    assert seen.total > 50 and seen.accuracy > 0.85, f"\n{seen}"
    assert detected.patterns(rows).accuracy <= seen.accuracy
    assert not detected.spatiality(rows, lambda one: not one.shared).total
    head, line = detected.table(rows).splitlines()
    assert "pattern" in head and line.startswith(str(SITUATIONS[F]))
    shares = with_detection.by_situation(rows, len(WINDOWS))
    assert list(shares) == [F] and len(shares[F]) == len(WINDOWS)
    assert all(abs(sum(share for _, share in of) - 1) < 1e-9 for of in shares[F])
    assert with_detection.by_situation(rows[1:], len(WINDOWS)) == {}


def test_rows_come_back_from_their_folder(rows: list[detected.DetectedRow], tmp_path: Path) -> None:
    for _ in range(2):
        found = detected.run(tmp_path, [F], part=SHORT_PART, jobs=1)
        assert [(row.found, row.nothing) for row in found.rows] == [(row.found, row.nothing) for row in rows]
    assert found.computed == 0
