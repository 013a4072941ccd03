"""What clientd tells mdsd of where steps run: the newest word of each, until it is acknowledged, within bounds."""

from __future__ import annotations

import pytest

from tarazu.daemons.clientd import node_notices as noticing
from tarazu.daemons.clientd.notices import Notices
from tarazu.daemons.shares import Share
from tarazu.wire.messages import StepEnded, StepNodes
from tests.daemons.listening import Mdsd, until


def word(id: str, nids: str, uid: int = 1) -> StepNodes:
    return StepNodes(id, "", "4711", uid, "lustre", nids, 30.0)


def told(seen: list[object]) -> list[str]:
    return [m.nids for m in seen if isinstance(m, StepNodes)]


def test_the_newest_word_of_a_step_is_told_until_it_is_heard(mdsd: Mdsd, notices: Notices) -> None:
    notices.runs_on(word("s", "10.0.0.1@tcp"))
    mdsd.take(lambda s: len(s) >= 1, answer=False)
    for number in range(2, 5):
        notices.runs_on(word("s", f"10.0.0.{number}@tcp"))
    notices.runs_on(word("s", "10.0.0.9@tcp", uid=2))
    seen = mdsd.take(lambda s: "10.0.0.4@tcp" in told(s))  # type: ignore[arg-type]
    assert set(told(seen)) == {"10.0.0.1@tcp", "10.0.0.4@tcp"}  # type: ignore[arg-type]
    until(lambda: not len(notices.nodes))
    assert not notices.nodes.steps.used and notices.counts["told"] == 2


def test_of_a_step_that_has_ended_only_that_is_told(mdsd: Mdsd, notices: Notices) -> None:
    notices.runs_on(word("s", "10.0.0.1@tcp"))
    mdsd.take(lambda s: len(s) >= 1, answer=False)
    notices.ended(1, "s")
    seen = mdsd.take(lambda s: any(isinstance(m, StepEnded) for m in s))
    assert isinstance(seen[-1], StepEnded) and seen[-1].id == "s"
    until(lambda: not len(notices.nodes) and notices.waiting == 0)


def test_a_user_leaves_room_for_others_and_what_nobody_takes_is_given_up(
    mdsd: Mdsd, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an mdsd of before, which knows no such message."""
    notices.nodes.steps = Share(4)
    for number in range(4):
        notices.runs_on(word(f"s{number}", "10.0.0.1@tcp"))
    assert notices.counts["dropped"] == 2
    monkeypatch.setattr(noticing, "GIVE_UP_S", 0.0)
    notices.nodes.give_up(float("inf"))
    assert not len(notices.nodes) and not notices.nodes.steps.used
