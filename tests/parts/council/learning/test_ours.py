"""What ours has beyond the contract; intervals of all that rest on sample means."""

from __future__ import annotations

import math
from random import Random

import pytest

from tarazu.parts.council.learning.learner import Learner
from tarazu.parts.council.learning.ours import Tarazu
from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study.learners import EpsilonGreedy

READ = Pattern("read", "strided", 32768)
NEAR = Pattern("read", "strided", 65536)
OTHER = Pattern("write", "strided", 32768)
SHAPE = [1.0, 0.9, 0.8, 0.6, 0.5, 0.4, 0.3]


def play(
    learner: Learner,
    pattern: Pattern,
    means: list[float],
    many: int,
    random: Random,
    noise: float = 0.1,
    arm: int = 3,
) -> list[int]:
    used = []
    for _ in range(many):
        used.append(arm)
        learner.observe("a", pattern, arm, 1e8 * means[arm] * random.lognormvariate(0, noise))
        arm = learner.choose().arm
    return used


def test_each_value_is_tried_once_then_the_best_is_used() -> None:
    used = play(Tarazu(7), READ, SHAPE, 200, Random(1), 0.05)
    assert sorted(used[:7]) == list(range(7))
    assert used[7:].count(0) > 185


def test_values_that_differ_by_less_than_matters_are_not_explored() -> None:
    def explored(learner: Learner) -> int:
        random, found, arm = Random(2), 0, 0
        for _ in range(300):
            learner.observe("a", READ, arm, 1e8 * random.lognormvariate(0, 0.05))
            arm, new = learner.choose()
            found += new
        return found

    assert explored(Tarazu(7)) < 45


def test_a_low_demand_is_no_bad_choice() -> None:
    """There is little to do for most of the time in which the best value is tried first."""

    def run(demands: bool, seed: int) -> int:
        learner, random, arm, used = Tarazu(7, seed), Random(seed), 0, []
        for turn in range(300):
            used.append(arm)
            demand = 0.5 if turn // 3 % 2 == 0 else 100.0
            reward = min(1e6 * demand, 1e8 * SHAPE[arm]) * random.lognormvariate(0, 0.05)
            learner.observe("a", READ, arm, reward, demand=demand if demands else 0.0)
            arm = learner.choose().arm
        return used[200:].count(0)

    known, unknown = (sum(run(demands, seed) for seed in range(6)) for demands in (True, False))
    assert known > unknown
    assert known > 300


def test_a_system_that_changes_is_learned_anew() -> None:
    learner, random = Tarazu(7), Random(6)
    assert play(learner, READ, SHAPE, 500, random)[-50:].count(0) > 45
    used = play(learner, READ, [0.3, 0.4, 0.5, 0.6, 0.8, 0.9, 1.0], 60, random, arm=0)
    assert used[-30:].count(6) > 25


def test_another_level_again_and_again_is_not_explored_each_time() -> None:
    """As where another application comes and goes: all values change alike."""
    learner, random, explored = Tarazu(7), Random(7), 0
    arm = 0
    for turn in range(1000):
        level = 1e8 if turn // 25 % 2 else 0.5e8
        learner.observe("a", READ, arm, level * SHAPE[arm] * random.lognormvariate(0, 0.05))
        arm, new = learner.choose()
        explored += new
    assert explored < 200


def test_nodes_with_different_patterns_share_a_value() -> None:
    """The reads lose a little by what the writes gain much by."""
    learner, random, arm, used = Tarazu(3), Random(7), 0, []
    for _ in range(150):
        used.append(arm)
        for host in "abc":
            learner.observe(host, READ, arm, 1e8 * (1.0, 0.95, 0.5)[arm] * random.lognormvariate(0, 0.05))
        learner.observe("d", OTHER, arm, 1e9 * (0.1, 1.0, 1.1)[arm] * random.lognormvariate(0, 0.05))
        arm = learner.choose().arm
    assert used[50:].count(1) > 90


@pytest.mark.parametrize("noise", [0.1, 0.4])
@pytest.mark.parametrize("kind", [EpsilonGreedy, Tarazu])
def test_intervals_hold_the_mean_as_often_as_they_say(kind: type[Learner], noise: float) -> None:
    """Also of values that were tried a few times only, where a bandit looked when it was lucky."""
    held = of = 0
    for seed in range(60):
        learner, random = kind(7, seed), Random(seed)
        play(learner, READ, SHAPE, 150, random, noise)
        for mean, belief in zip(SHAPE, learner.beliefs(READ)):
            if belief.seen > 0:
                of += 1
                held += belief.low <= 1e8 * mean * math.exp(noise**2 / 2) <= belief.high
    assert held / of >= 0.93
    assert of > 200


def test_nodes_of_one_decision_are_one_observation() -> None:
    """They see the same second: what hits all of them at once must not look certain."""
    held = 0
    for seed in range(60):
        learner, random = Tarazu(1), Random(seed)
        for _ in range(20):
            second = random.lognormvariate(0, 0.3)
            for host in range(8):
                learner.observe(str(host), READ, 0, 1e8 * second * random.lognormvariate(0, 0.05))
            learner.choose()
        (belief,) = learner.beliefs(READ)
        assert belief.seen == pytest.approx(20, rel=0.1)
        held += belief.low <= 1e8 * math.exp((0.3**2 + 0.05**2) / 2) <= belief.high
    assert held >= 54
