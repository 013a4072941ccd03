"""Hard goals before soft ones, and soft ones in the site's order."""

from __future__ import annotations

import msgspec
import pytest

from tarazu.parts.changes.model.change import Change, Score
from tarazu.parts.changes.model.goals import HARD, ranked, refusal


def change(*scores: Score, target: str = "a", mends: bool = False) -> Change:
    return Change(lever="pool", target=target, wanted={"3": "out"}, scores=scores, mends=mends)


@pytest.mark.parametrize("hard", sorted(HARD))
def test_nothing_soft_outweighs_a_hard_goal(hard: str) -> None:
    told = refusal(change(Score(hard, 0, 1), Score("time", 9, 1), Score("evenness", 9, 1)))
    assert HARD[hard] in told


def test_the_first_soft_goal_that_differs_decides() -> None:
    worse_time = change(Score("time", 1.0, 1.5), Score("evenness", 3.0, 1.0), Score("changes", 0, 1))
    assert "time would be worse" in refusal(worse_time)
    assert not refusal(worse_time, ("evenness", "time", "changes"))


def test_what_differs_too_little_is_the_same() -> None:
    assert not refusal(change(Score("time", 1.0, 1.001), Score("evenness", 2.0, 1.0)))


def test_what_gives_nothing_is_not_made() -> None:
    assert refusal(change(Score("time", 1.0, 1.0), Score("changes", 0, 3))) == "it gains nothing"
    assert not refusal(change(Score("time", 1.0, 1.0), Score("dead", 1, 0), Score("changes", 0, 1)))


def test_what_a_person_asks_for_is_not_scored() -> None:
    assert not refusal(change())


def test_what_mends_comes_first_then_what_gives_most() -> None:
    little = change(Score("time", 2.0, 1.9), target="little")
    much = change(Score("time", 2.0, 1.0), target="much")
    mends = change(Score("dead", 1, 0), target="mends", mends=True)
    assert [each.target for each in ranked([little, much, mends])] == ["mends", "much", "little"]


def test_what_never_ends_can_be_noted() -> None:
    endless = change(Score("time", float("inf"), 1.0), Score("evenness", float("nan"), 0.0))
    assert msgspec.json.decode(msgspec.json.encode(endless), type=Change) == endless
    assert not refusal(endless)


def test_what_takes_work_from_a_dead_target_is_made_though_it_is_less_even() -> None:
    assert not refusal(change(Score("dead", 1.0, 0.0), Score("time", 1.0, 1.1), Score("evenness", 0.1, 0.2)))
