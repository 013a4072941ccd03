"""Files that are written together get one number: by pauses between steps, else by the nth of each rank."""

from __future__ import annotations

from random import Random

import pytest

from tarazu.predict.waves import waves


def stepped(
    ranks: int, steps: int, period_s: float, jitter_s: float, first_s: float = 0.0
) -> tuple[list, list]:
    random = Random(ranks)
    return (
        [
            first_s + step * period_s + random.uniform(0, jitter_s)
            for step in range(steps)
            for _ in range(ranks)
        ],
        list(range(ranks)) * steps,
    )


@pytest.mark.parametrize(("ranks", "jitter_s"), [(2, 0.0), (4, 3.0), (64, 20.0), (1000, 1.0)])
def test_steps_far_apart_are_told_by_their_pauses(ranks: int, jitter_s: float) -> None:
    at_s, of_rank = stepped(ranks, 10, 60.0, jitter_s)
    assert waves(at_s, of_rank) == [step for step in range(10) for _ in range(ranks)]


def test_pauses_of_very_different_length() -> None:
    at_s = [start + 0.01 * rank for start in (0, 300, 360, 370) for rank in range(16)]
    assert waves(at_s, list(range(16)) * 4) == [step for step in range(4) for _ in range(16)]


def test_jitter_longer_than_the_pauses_leaves_the_nth_of_each_rank() -> None:
    at_s, ranks = stepped(64, 10, 5.0, 4.9)
    assert waves(at_s, ranks) == [step for step in range(10) for _ in range(64)]


def test_what_a_rank_creates_one_after_another_within_a_step() -> None:
    at_s = [step * 600.0 + nth * 4.0 for step in range(3) for nth in range(2) for _ in range(8)]
    assert waves(at_s, list(range(8)) * 6) == [wave for wave in range(6) for _ in range(8)]


def test_files_that_a_rank_opens_together_are_one_wave() -> None:
    at_s = [step * 60.0 + nth * 0.001 for step in range(3) for nth in range(2) for _ in range(8)]
    assert waves(at_s, list(range(8)) * 6) == [step for step in range(3) for _ in range(16)]


def test_the_order_of_the_files_does_not_matter() -> None:
    at_s, ranks = stepped(8, 5, 60.0, 2.0)
    order = list(range(40))
    Random(4).shuffle(order)
    expected = waves(at_s, ranks)
    assert waves([at_s[i] for i in order], [ranks[i] for i in order]) == [expected[i] for i in order]


def test_nothing_known_is_one_wave() -> None:
    assert waves([], []) == []
    assert waves([3.0], [0]) == [0]
    assert waves([0.0] * 6, [0, 1, 2] * 2) == [0] * 6
