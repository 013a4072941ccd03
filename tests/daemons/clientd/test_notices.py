"""What clientd tells mdsd in the background: in order, merged, until it is acknowledged, and never without bounds."""

from __future__ import annotations

import time
import types

import pytest

from tarazu.daemons.clientd import notices as noticing
from tarazu.daemons.clientd.notices import Notices
from tarazu.daemons.shares import Share
from tarazu.wire.bounds import MAX_ALIVE_IDS
from tarazu.wire.messages import FileClosed, PromiseTold, StepAlive, StepEnded
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.listening import Mdsd, until


def test_files_are_told_before_the_end_of_their_step(mdsd: Mdsd, notices: Notices) -> None:
    notices.closed(1, "a", [(0, 10), (1, 20)])
    notices.ended(1, "a")
    seen = mdsd.take(lambda s: any(isinstance(m, StepEnded) for m in s))
    kinds = [type(m) for m in seen]
    assert set(kinds[: kinds.index(StepEnded)]) == {FileClosed}
    assert isinstance(seen[0], FileClosed) and seen[0].files == ((0, 10), (1, 20))
    until(lambda: notices.waiting == 0)
    assert not notices.files.used


def test_a_mdsd_that_was_silent_hears_it_all_when_it_is_back(mdsd: Mdsd, notices: Notices) -> None:
    notices.closed(1, "a", [(0, 10)])
    mdsd.take(lambda s: len(s) >= 1, answer=False)
    notices.closed(1, "a", [(0, 99), (1, 1)])  # while the first is on its way
    notices.ended(1, "a")
    seen = mdsd.take(lambda s: any(isinstance(m, StepEnded) for m in s))
    last = {index: size for m in seen if isinstance(m, FileClosed) for index, size in m.files}
    assert last == {0: 99, 1: 1}
    until(lambda: notices.waiting == 0)


def test_signs_of_life_of_many_steps_are_one_message(mdsd: Mdsd, notices: Notices) -> None:
    for number in range(50):
        notices.alive(1, [f"id{number}"], 4.0)
    seen = mdsd.take(lambda s: len({id for m in s if isinstance(m, StepAlive) for id in m.ids}) == 50)
    assert len({m.message_id for m in seen if isinstance(m, StepAlive)}) <= 3


def test_an_ended_step_gives_no_sign_of_life(mdsd: Mdsd, notices: Notices) -> None:
    notices.alive(1, ["dead", "lives"], 4.0)
    notices.ended(1, "dead")
    seen = mdsd.take(lambda s: any(isinstance(m, StepAlive) for m in s))
    assert [m.ids for m in seen if isinstance(m, StepAlive)][-1] == ("lives",)


def test_what_mdsd_does_not_know_is_told_once_and_before_what_came_of_it(
    mdsd: Mdsd, notices: Notices
) -> None:
    mdsd.unknown = ("a", "never alive")
    notices.alive(1, ["a", "b"], 0.1)
    mdsd.take(lambda s: s)
    until(lambda: notices.wanted(1, ["a", "b", "never alive"]) == ["a"])
    assert not notices.wanted(2, ["a"]), "another user's"
    notices.promised(PromiseTold("a", "", "lustre", 1, 60.0, 4.0, b"12", b"12345678", bytes(8)))
    notices.closed(1, "a", [(0, 10)])
    notices.ended(1, "a")
    seen = mdsd.take(lambda s: any(isinstance(m, StepEnded) for m in s))
    of = [m for m in seen if isinstance(m, PromiseTold | FileClosed | StepEnded)]
    kinds = [type(m) for m in dict.fromkeys(of)]
    assert kinds == [PromiseTold, FileClosed, StepEnded] and isinstance(of[0], PromiseTold)
    assert (of[0].uid, of[0].osts) == (1, b"12")
    until(lambda: notices.waiting == 0)
    assert not notices.promises.used and not notices.wanted(1, ["a"])


def test_what_nobody_takes_is_given_up(mdsd: Mdsd, notices: Notices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noticing, "GIVE_UP_S", 0.5)
    notices.closed(1, "a", [(0, 10)])
    mdsd.take(lambda s: len(s) >= 1, answer=False)
    until(lambda: notices.waiting == 0)
    assert notices.counts["given_up"] == 1 and not notices.files.used


def test_what_one_user_sends_is_bounded_and_leaves_room_for_others() -> None:
    notices = Notices(lambda fd: ZmqTransport(None, wake_fd=fd), "tcp://127.0.0.1:1")  # never started
    notices.files = Share(1000)
    for number in range(200):
        notices.closed(1, f"a{number}", [(i, 1) for i in range(100)])
    assert notices.files.used[1] <= 500 and notices.counts["dropped"] > 0
    notices.closed(2, "b", [(0, 1)])
    assert len(notices._pending["b"].closed) == 1
    for number in range(3 * noticing.MAX_ALIVE // 1000):
        notices.alive(1, [f"{number}.{n}" for n in range(1000)], 1.0)
    assert len(notices._alive) <= noticing.MAX_ALIVE


def test_closes_that_find_no_room_do_not_end_their_step(mdsd: Mdsd, notices: Notices) -> None:
    notices.files = Share(10)
    notices.closed(1, "full", [(i, 1) for i in range(100)])
    notices.closed(1, "empty", [])
    notices.closed(1, "fits", [(0, 1)])
    seen = mdsd.take(lambda s: s)
    until(lambda: notices.waiting == 0)
    assert [m.id for m in seen if isinstance(m, FileClosed | StepEnded)] == ["fits"]


def test_steps_beyond_what_one_message_holds_all_give_signs_of_life(mdsd: Mdsd, notices: Notices) -> None:
    """mdsd dropped the one long message, and all steps of the node counted as dead."""
    for number in range(25):
        notices.alive(number % 5 + 1, [f"{number}.{n}" for n in range(1000)], 1.0)
    seen = mdsd.take(lambda s: len({id for m in s if isinstance(m, StepAlive) for id in m.ids}) == 25_000)
    assert max(len(m.ids) for m in seen if isinstance(m, StepAlive)) <= MAX_ALIVE_IDS
    until(lambda: not notices.signs.used)


def test_a_newer_sign_of_life_does_not_forget_steps_of_one_that_was_lost(
    mdsd: Mdsd, notices: Notices
) -> None:
    notices.alive(1, ["lost"], 0.1)
    mdsd.take(lambda s: s, answer=False)
    notices.alive(1, ["newer"], 0.1)
    mdsd.take(lambda s: any("newer" in m.ids for m in s if isinstance(m, StepAlive)), answer=False)
    mdsd.seen.clear()
    mdsd.take(lambda s: {id for m in s if isinstance(m, StepAlive) for id in m.ids} == {"lost", "newer"})
    until(lambda: not notices.signs.used)


def test_signs_of_life_survive_a_lost_connection() -> None:
    notices = Notices(lambda fd: ZmqTransport(None, wake_fd=fd), "tcp://127.0.0.1:1")  # never started
    transport = ZmqTransport(None)
    try:
        notices.alive(1, ["a", "b"], 0.0)
        notices.closed(1, "c", [(0, 1)])
        notices._submit(transport.requester("tcp://127.0.0.1:1"), time.monotonic())
        notices.alive(1, ["b"], 0.0)
        assert set(notices._alive) == {"b"} and not notices._ready
        notices._all_anew()
    finally:
        transport.close()
    assert set(notices._alive) == {"a", "b"} and notices.signs.used[1] == 2
    assert [p.id for p in notices._ready[1]] == ["c"] and not notices.open.used


def test_one_users_flood_of_signs_does_not_discard_those_of_others() -> None:
    notices = Notices(lambda fd: ZmqTransport(None, wake_fd=fd), "tcp://127.0.0.1:1")  # never started
    for number in range(2 * noticing.MAX_ALIVE // 1000):
        notices.alive(1, [f"{number}.{n}" for n in range(1000)], 1.0)
    assert len(notices._alive) == noticing.MAX_ALIVE // 2
    notices.alive(2, ["other"], 1.0)
    assert "other" in notices._alive


def test_very_many_ended_steps_of_one_user_do_not_delay_those_of_another(
    mdsd: Mdsd, notices: Notices
) -> None:
    """200,000 that waited were looked through each round: the other's was told after more than 20 s."""
    notices.ended(3, "connected")
    mdsd.take(lambda s: s)
    until(lambda: not notices.waiting)
    for number in range(50_000):
        notices.ended(1, f"a{number}")
    notices.ended(2, "b")
    assert notices.allocations.used[1] <= noticing.MAX_ALLOCATIONS // 2
    seen = mdsd.take(lambda s: any(isinstance(m, StepEnded) and m.id == "b" for m in s))
    assert len({m.id for m in seen if isinstance(m, StepEnded)}) <= noticing.MAX_OPEN


def test_what_mdsd_takes_slowly_is_not_given_up(
    mdsd: Mdsd, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e6]
    monkeypatch.setattr(
        noticing, "time", types.SimpleNamespace(**{**vars(time), "monotonic": lambda: now[0]})
    )
    monkeypatch.setattr(noticing, "MAX_FILES_A_MESSAGE", 1)
    notices.closed(1, "a", [(n, 10) for n in range(18)])
    for number in range(18):
        mdsd.take(lambda s: len({m.message_id for m in s}) > number)  # noqa: B023
        until(lambda: notices.counts["told"] > number)  # noqa: B023
        now[0] += noticing.GIVE_UP_S / 2
    until(lambda: notices.waiting == 0)
    assert notices.counts["given_up"] == 0
    assert {i for m in mdsd.seen if isinstance(m, FileClosed) for i, _ in m.files} == set(range(18))
    assert not notices.files.used and not notices.allocations.used and not notices.open.used
