"""What clientd hands on to parts of mdsd: the newest word of each id, until it is acknowledged, within bounds."""

from __future__ import annotations

import pytest

from tarazu.daemons.clientd import part_notices as noticing
from tarazu.daemons.clientd.notices import Notices
from tarazu.daemons.shares import Share
from tarazu.wire.messages import PartRequest
from tests.daemons.listening import Mdsd, until


def bodies(seen: list[object]) -> list[bytes]:
    return [m.body for m in seen if isinstance(m, PartRequest)]


def test_the_newest_word_is_told_until_it_is_heard(mdsd: Mdsd, notices: Notices) -> None:
    notices.part_told("example", "s", 1, b"1")
    mdsd.take(lambda s: len(s) >= 1, answer=False)
    for number in range(2, 5):
        notices.part_told("example", "s", 1, b"%d" % number)
    notices.part_told("example", "s", 2, b"another user's")
    seen = mdsd.take(lambda s: b"4" in bodies(s))  # type: ignore[arg-type]
    assert {*bodies(seen)} == {b"1", b"4"}  # type: ignore[arg-type]
    until(lambda: not len(notices.parts))
    assert not notices.parts.words.used and not notices.parts.bytes.used
    assert notices.counts["told"] == 2 and notices.counts["dropped"] == 1


def test_a_user_leaves_room_for_others_and_what_nobody_takes_is_given_up(
    mdsd: Mdsd, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices.parts.words = Share(4)
    for number in range(4):
        notices.part_told("example", f"s{number}", 1, b"word")
    assert notices.counts["dropped"] == 2
    mdsd.take(lambda s: len(s) >= 2, answer=False)
    monkeypatch.setattr(noticing, "GIVE_UP_S", 0.0)

    class Nobody:
        def forget(self, message_id: str) -> None: ...

    with notices._lock:
        notices.parts.give_up(Nobody(), float("inf"))  # type: ignore[arg-type]
    assert not len(notices.parts) and not notices.parts.words.used and not notices.parts.bytes.used
