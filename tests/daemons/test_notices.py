"""What clientd tells mdsd in the background: in order, merged, until it is acknowledged, and never without bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tarazu.daemons import notices as noticing
from tarazu.daemons.notices import Notices
from tarazu.daemons.shares import Share
from tarazu.wire.messages import Acknowledged, FileClosed, StepAlive, StepEnded
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Request

PATIENCE_S = 30.0


class Mdsd:
    """The other end: acknowledges what it is asked to, and remembers all of it."""

    def __init__(self) -> None:
        self.transport = ZmqTransport(None)
        self.replier = self.transport.replier("tcp://127.0.0.1:*")
        self.seen: list[Request] = []

    def take(self, holds: Callable[[list[Request]], object], answer: bool = True) -> list[Request]:
        """Receive until it holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds(self.seen):
            assert time.monotonic() < deadline, self.seen
            asked = self.replier.receive(0.05)
            if asked:
                self.seen.append(asked[1])
                if answer:
                    self.replier.reply(asked[0], Acknowledged(asked[1].message_id))  # type: ignore[union-attr]
        return self.seen


@pytest.fixture
def mdsd() -> Iterator[Mdsd]:
    end = Mdsd()
    yield end
    end.transport.close()


@pytest.fixture
def notices(mdsd: Mdsd) -> Iterator[Notices]:
    told = Notices(lambda fd: ZmqTransport(None, wake_fd=fd), mdsd.replier.address)
    told.start()
    yield told
    told.stop()
    told._thread.join(10)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_files_are_told_before_the_end_of_their_step(mdsd: Mdsd, notices: Notices) -> None:
    notices.closed(1, "a", [(0, 10), (1, 20)])
    notices.ended(1, "a")
    seen = mdsd.take(lambda s: any(isinstance(m, StepEnded) for m in s))
    kinds = [type(m) for m in seen]
    assert set(kinds[: kinds.index(StepEnded)]) == {FileClosed}
    assert isinstance(seen[0], FileClosed) and seen[0].files == ((0, 10), (1, 20))
    until(lambda: notices.waiting == 0)
    assert not notices.share.used


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
        notices.alive([f"id{number}"], 4.0)
    seen = mdsd.take(lambda s: len({id for m in s if isinstance(m, StepAlive) for id in m.ids}) == 50)
    assert len({m.message_id for m in seen if isinstance(m, StepAlive)}) <= 3


def test_an_ended_step_gives_no_sign_of_life(mdsd: Mdsd, notices: Notices) -> None:
    notices.alive(["dead", "lives"], 4.0)
    notices.ended(1, "dead")
    seen = mdsd.take(lambda s: any(isinstance(m, StepAlive) for m in s))
    assert [m.ids for m in seen if isinstance(m, StepAlive)][-1] == ("lives",)


def test_what_nobody_takes_is_given_up(mdsd: Mdsd, notices: Notices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noticing, "GIVE_UP_S", 0.5)
    notices.closed(1, "a", [(0, 10)])
    mdsd.take(lambda s: len(s) >= 1, answer=False)
    until(lambda: notices.waiting == 0)
    assert notices.counts["given_up"] == 1 and not notices.share.used


def test_what_one_user_sends_is_bounded_and_leaves_room_for_others() -> None:
    notices = Notices(lambda fd: ZmqTransport(None, wake_fd=fd), "tcp://127.0.0.1:1")  # never started
    notices.share = Share(1000)
    for number in range(200):
        notices.closed(1, f"a{number}", [(i, 1) for i in range(100)])
    assert notices.share.used[1] <= 500 and notices.counts["dropped"] > 0
    notices.closed(2, "b", [(0, 1)])
    assert len(notices._pending["b"].closed) == 1
    for number in range(3 * noticing.MAX_ALIVE // 1000):
        notices.alive([f"{number}.{n}" for n in range(1000)], 1.0)
    assert len(notices._alive) <= noticing.MAX_ALIVE


def test_closes_that_find_no_room_do_not_end_their_step(mdsd: Mdsd, notices: Notices) -> None:
    notices.share = Share(10)
    notices.closed(1, "full", [(i, 1) for i in range(100)])
    notices.closed(1, "empty", [])
    notices.closed(1, "fits", [(0, 1)])
    seen = mdsd.take(lambda s: s)
    until(lambda: notices.waiting == 0)
    assert [m.id for m in seen if isinstance(m, FileClosed | StepEnded)] == ["fits"]
