"""What learners promise."""

from __future__ import annotations

import json
import math
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.council.learning import learner as module
from tarazu.parts.council.learning.careful import Careful
from tarazu.parts.council.learning.learner import Choice, Learner
from tarazu.parts.council.learning.ours import Tarazu
from tarazu.parts.council.pattern import Pattern

PROFILE = settings(max_examples=10, deadline=None, derandomize=True)
READ = Pattern("read", "strided", 32768)
WRITE = Pattern("write", "contiguous", 262144)

patterns = st.builds(
    Pattern,
    st.sampled_from(("read", "write", "both")),
    st.sampled_from(("contiguous", "strided", "unknown")),
    st.sampled_from((0, 1, 4096, 1 << 30)),
)
observations = st.tuples(
    st.sampled_from("abcd"),
    patterns,
    st.integers(0, 6),
    st.floats(1e-300, 1e18),
    st.sampled_from((0.0, 0.3, 5.0, 1e12)),
)
rounds = st.lists(st.lists(observations, max_size=6), max_size=30)


def run(learner: Learner, played: list[list[tuple[str, Pattern, int, float, float]]]) -> list[Choice]:
    choices = []
    for seen in played:
        for host, pattern, arm, reward, demand in seen:
            learner.observe(host, pattern, arm, reward, demand=demand)
        choices.append(learner.choose())
    return choices


def learn(learner: Learner, means: list[float], many: int, seed: int = 0) -> list[int]:
    random, arm, chosen = Random(seed), 0, []
    for _ in range(many):
        for host in "ab":
            learner.observe(host, READ, arm, means[arm] * random.uniform(0.9, 1.1))
        arm = learner.choose().arm
        chosen.append(arm)
    return chosen


@pytest.mark.parametrize("kind", [Tarazu, Careful])
class TestLearner:
    def test_what_no_node_takes_is_not_chosen(self, kind: type[Learner]) -> None:
        for without in (frozenset({0, 3}), frozenset({0, 1, 2})):
            learner, noise = kind(4, 5), Random(2)
            learner.without = without
            allowed = [arm for arm in range(4) if arm not in without]
            arm, chosen = allowed[0], []
            for _ in range(60):
                for host in "ab":
                    learner.observe(host, READ, arm, (4 - arm) * noise.uniform(9e6, 11e6))
                chosen.append(arm := learner.choose().arm)
            assert set(chosen) <= set(allowed) and chosen.count(allowed[0]) > 30

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_what_it_learns_of_absurd_rewards_it_takes_back_from_the_disk(
        self, kind: type[Learner], seed: int
    ) -> None:
        """A mean that a change had multiplied was more than any reward, and all that was learned was set aside."""
        random, learner = Random(seed), kind(3, seed)
        for _ in range(60):
            level, demand = random.choice((1e-3, 1.0, 1.4e9, 1e18)), random.choice((0.0, 1.0, 900.0))
            for _ in range(random.choice((1, 40))):
                learner.observe("a", READ, 0, level, demand=demand)
                learner.choose()
            kind(3).restore(learner.knowledge())

    @PROFILE
    @given(played=rounds)
    def test_whatever_comes(
        self, kind: type[Learner], played: list[list[tuple[str, Pattern, int, float, float]]]
    ) -> None:
        learner, again = (kind(7, 3) for _ in range(2))
        choices = run(learner, played)
        assert choices == run(again, played), "same seed and calls, same choices"
        assert all(0 <= arm < 7 and type(arm) is int and type(explored) is bool for arm, explored in choices)
        assert set(learner.patterns()) == {pattern for seen in played for _, pattern, *_ in seen}
        for pattern in (*learner.patterns(), Pattern("both", "unknown", 7)):
            beliefs = learner.beliefs(pattern)
            assert len(beliefs) == 7
            for belief in beliefs:
                assert 0 <= belief.low <= belief.mean <= belief.high
                assert math.isfinite(belief.mean) and belief.seen >= 0
        knowledge = learner.knowledge()
        again = kind(7, 3)
        again.restore(knowledge)
        assert bytes(again.knowledge()) == bytes(knowledge)
        assert again.patterns() == learner.patterns()
        for pattern in again.patterns():
            assert again.beliefs(pattern) == learner.beliefs(pattern)
        run(again, played)

    def test_it_finds_the_best(self, kind: type[Learner]) -> None:
        for best in (0, 3, 6):
            means = [1.0] * 7
            means[best] = 2.0
            chosen = learn(kind(7, 1), [1e8 * mean for mean in means], 400)
            assert sum(arm == best for arm in chosen[-100:]) >= 75

    def test_knowledge_is_bounded(self, kind: type[Learner], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_PATTERNS", 8)
        learner = kind(7)
        for size in range(12):
            for demand in (0.0, *(4.0**k for k in range(-5, 14))):
                learner.observe("a", Pattern("read", "strided", size), size % 7, 1.0 + size, demand=demand)
                learner.choose()
            learner.observe("a", READ, 0, 5.0)
            learner.choose()
        assert set(learner.patterns()) == {
            READ,
            *(Pattern("read", "strided", size) for size in range(5, 12)),
        }
        assert len(bytes(learner.knowledge())) < 8 * 8192
        kind(7).restore(learner.knowledge())

    def test_restored_it_goes_on(self, kind: type[Learner]) -> None:
        learner = kind(7, 1)
        means = [1e8, 1e8, 1e8, 3e8, 1e8, 1e8, 1e8]
        learn(learner, means, 300)
        after = kind(7, 2)
        after.restore(learner.knowledge())
        assert sum(arm == 3 for arm in learn(after, means, 40)) >= 28

    @PROFILE
    @given(data=st.data())
    def test_malformed_knowledge_is_bad_input(self, kind: type[Learner], data: st.DataObject) -> None:
        learner = kind(7, 1)
        learn(learner, [1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0], 30)
        before = bytes(learner.knowledge())
        after = msgspec.Raw(changed(before, data))
        try:
            learner.restore(after)
        except BadInput:
            assert bytes(learner.knowledge()) == before, "what is refused changes nothing"
        else:
            learn(learner, [1.0] * 7, 10)
            kind(7).restore(learner.knowledge())

    def test_knowledge_of_another_is_refused(self, kind: type[Learner]) -> None:
        with pytest.raises(BadInput, match="number of values"):
            kind(7).restore(kind(6).knowledge())
        with pytest.raises(BadInput):
            kind(7).restore((Careful if kind is Tarazu else Tarazu)(7).knowledge())


def changed(text: bytes, data: st.DataObject) -> bytes:
    """With another value at one place of the JSON, or other bytes."""
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(text)))
        return text[:at] + data.draw(st.binary(max_size=4)) + text[at + data.draw(st.integers(0, 4)) :]
    tree = {"": json.loads(text)}
    node, key = tree, ""
    while isinstance(node[key], dict | list) and node[key] and data.draw(st.integers(0, 9)):
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    node[key] = data.draw(
        st.sampled_from((None, -1, 0, 1e300, -1e300, 10**30, 10**400, "read", [], {}, True, 0.5, [0.0] * 7))
    )
    return json.dumps(tree[""]).encode()
