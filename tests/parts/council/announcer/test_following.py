"""Whose decisions count."""

from __future__ import annotations

from tarazu.parts.council.announcer.following import NOTHING, Following, least
from tarazu.parts.council.exchange import Decided


def decided(council: str = "mds1", group: str = "g") -> Decided:
    return Decided("", council, group, 1, "apply", {"nrs": "fifo"})


def test_the_first_council_that_answers_is_followed_until_it_is_silent() -> None:
    following = Following("g", 30.0, 0.0)
    assert following.take(decided(), 1.0) == ""
    assert following.take(decided("mds2"), 2.0) == "expected the council mds1, which is followed, found mds2"
    assert not following.is_silent(31.0) and following.council == "mds1" and following.refused == 1
    assert following.is_silent(31.1) and following.decided == NOTHING
    assert not following.is_silent(99.0)
    assert following.take(decided("mds2"), 100.0) == "" and following.council == "mds2"


def test_another_ones_word_is_no_sign_of_life() -> None:
    following = Following("g", 30.0, 0.0)
    following.take(decided(), 0.0)
    for second in range(1, 31):
        assert following.take(decided("mds2"), float(second))
    assert following.is_silent(30.5)


def test_another_groups_decision_is_refused() -> None:
    assert "expected the group g, found other" in Following("g", 30.0, 0.0).take(decided(group="other"), 0.0)


def test_the_least_of_the_modes_counts() -> None:
    assert least("apply", "advise") == "advise"
    assert least("apply", "apply") == "apply" and least("advise", "observe", "apply") == "observe"
