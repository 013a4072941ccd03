"""The paper's algorithm 1, line by line."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

import pytest

from tarazu.parts.council.learning.learner import Choice
from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study.learners import EpsilonGreedy, Forgetting

READ = Pattern("read", "strided", 32768)
WRITE = Pattern("write", "strided", 32768)


def algorithm_1(rounds: list[list[tuple[str, Pattern, float]]], seed: int, epsilon: float) -> list[int]:
    """As it is printed, with tables."""
    random, window = Random(seed), 0
    q: defaultdict[tuple[Pattern, int], float] = defaultdict(float)
    n: Counter[tuple[Pattern, int]] = Counter()
    announced = []
    for metrics in rounds:
        choices = {}
        for host, pattern, reward in metrics:
            n[pattern, window] += 1
            q[pattern, window] += (reward * (1 + window) - q[pattern, window]) / n[pattern, window]
            choices[host] = max(range(7), key=lambda arm: q[pattern, arm])
        if random.random() <= epsilon:
            window = int(random.random() * 7)
        else:
            window = Counter(choices.values()).most_common(1)[0][0]
        announced.append(window)
    return announced


@pytest.mark.parametrize("epsilon", [0.0, 0.15, 1.0])
@pytest.mark.parametrize("hosts", [1, 4])
def test_it_is_algorithm_1(hosts: int, epsilon: float) -> None:
    random = Random(hosts)
    rounds = [
        [(f"ion{h}", random.choice((READ, WRITE)), random.uniform(1, 2)) for h in range(hosts)]
        for _ in range(300)
    ]
    learner, arm, announced = EpsilonGreedy(7, 5, epsilon), 0, []
    for metrics in rounds:
        for host, pattern, reward in metrics:
            learner.observe(host, pattern, arm, reward * (1 + arm))
        arm = learner.choose().arm
        announced.append(arm)
    assert announced == algorithm_1(rounds, 5, epsilon)


def test_a_host_s_choice_is_of_the_time_when_its_metrics_came() -> None:
    learner = EpsilonGreedy(2, epsilon=0.0)
    learner.observe("a", READ, 0, 5.0)
    learner.observe("b", READ, 1, 9.0)
    learner.observe("c", READ, 1, 8.0)
    assert learner.choose() == Choice(1, False)
    learner.observe("a", READ, 1, 1.0)  # mean of 1: 6, above 5
    learner.observe("b", READ, 1, 1.0)  # 4.75: b wants 0
    assert learner.choose() == Choice(1, False), "of as many, the choice of the host that came first"


def test_an_exploration_takes_any_value_as_often() -> None:
    learner = EpsilonGreedy(4, epsilon=1.0)
    chosen: Counter[int] = Counter()
    for _ in range(4000):
        learner.observe("a", READ, 0, 1.0)
        choice = learner.choose()
        assert choice.explored
        chosen[choice.arm] += 1
    assert all(900 < chosen[arm] < 1100 for arm in range(4))


def test_what_is_long_ago_counts_less() -> None:
    slow, fast = EpsilonGreedy(1), Forgetting(1, memory=10.0)
    for learner in (slow, fast):
        for reward in [10.0] * 100 + [20.0] * 30:
            learner.observe("a", READ, 0, reward)
    assert slow.beliefs(READ)[0].mean < 13
    assert fast.beliefs(READ)[0].mean > 19
    assert fast.beliefs(READ)[0].seen == pytest.approx(10, abs=0.1)
