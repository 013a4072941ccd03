"""Who is told of a target's health, how often, and until when; and the leaders that wait for it in clientd."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tarazu.allocate.ledger import Ledger
from tarazu.daemons.clientd.leaders import Leaders
from tarazu.daemons.mdsd.target_news import TargetNews
from tarazu.errors import Busy
from tarazu.wire import local
from tarazu.wire.channel import Channel
from tarazu.wire.messages import TargetsChanged
from tarazu.wire.transport import Peer

NODE, OTHER = Peer(b"1", "node1"), Peer(b"2", "node2")


class Told:
    """News over a ledger with three steps: a on OSTs 0 and 1, b on 1 and 2, c on 1 of another file system."""

    def __init__(self) -> None:
        self.sent: list[tuple[Peer, TargetsChanged]] = []
        self.ledger = Ledger()
        for id, fs, osts in (("a", "lustre", (0, 1)), ("b", "lustre", (1, 2)), ("c", "other", (1,))):
            self.ledger.promise(id, fs, 1e9, [dict.fromkeys(osts, 100)])
        self.news = TargetNews(self.ledger, lambda peer, message: self.sent.append((peer, message)))

    def tell(self, now: float) -> list[tuple[str, tuple[str, ...], dict[int, str]]]:
        self.sent.clear()
        self.news.tell(now)
        return [(peer.name, message.ids, dict(message.osts)) for peer, message in self.sent]


@pytest.fixture
def told() -> Told:
    found = Told()
    found.news.heard("a", NODE, 0.0)
    found.news.heard("bc", OTHER, 0.0)
    return found


def test_only_those_are_told_that_have_promises_there(told: Told) -> None:
    assert told.news.changed("lustre", {0: "dead", 7: "dead"}) == 1
    assert told.tell(1.0) == [("node1", ("a",), {0: "dead", 7: "dead"})]


def test_it_is_said_again_until_a_leader_has_heard_it(told: Told) -> None:
    told.news.changed("lustre", {1: "dead"})
    said = [now for now in range(1, 121) if told.tell(float(now))]
    assert said[:4] == [1, 2, 3, 4] and 8 <= len(said) < 14, "more and more rarely"
    told.news.told(["a"], told.news._generation)
    assert told.tell(200.0) == [("node2", ("b",), {1: "dead"})]
    told.ledger.ended("b")
    assert not told.tell(300.0) and not len(told.news)


def test_an_answer_to_older_news_does_not_hide_newer(told: Told) -> None:
    told.news.changed("lustre", {0: "dead"})
    told.tell(1.0)
    older = told.sent[0][1].generation
    told.news.changed("lustre", {1: "full"})
    told.news.changed("lustre", {0: ""})
    told.news.told(["a"], older)
    assert ("node1", ("a",), {0: "", 1: "full"}) in told.tell(2.0)


def test_an_answer_to_an_earlier_mdsd_hides_nothing(told: Told) -> None:
    told.news.changed("lustre", {0: "dead"})
    told.tell(1.0)
    late = told.sent[0][1].generation + 1000
    told.news = TargetNews(told.ledger, told.news._send)
    told.news.heard("a", NODE, 2.0)
    told.news.changed("lustre", {1: "dead"})
    told.news.told(["a"], late)
    assert told.tell(3.0) == [("node1", ("a",), {1: "dead"})]


def test_a_step_of_which_nobody_has_spoken_is_told_with_its_next_sign_of_life(told: Told) -> None:
    told.news.changed("lustre", {2: "dead"})
    fresh = TargetNews(told.ledger, told.news._send)  # mdsd was started anew
    fresh.changed("lustre", {2: "dead"})
    told.news = fresh
    assert not told.tell(1.0)
    fresh.heard("b", NODE, 2.0)
    assert told.tell(2.0) == [("node1", ("b",), {2: "dead"})]


def test_a_plan_made_from_an_older_view_hears_of_it_too(told: Told) -> None:
    told.ledger.promise("late", "lustre", 1e9, [{2: 100}])
    told.news.heard(["late"], NODE, 0.0)
    told.news.promised("late", "lustre", {2: "dead"})
    told.news.promised("a", "lustre", {2: "dead"})
    assert told.tell(1.0) == [("node1", ("late",), {2: "dead"})]


@pytest.fixture
def leaders() -> Iterator[Leaders]:
    found = Leaders()
    yield found
    found.close()
    assert not found.room.used


def waiting(leaders: Leaders, *ids: str, uid: int = 1000) -> Channel:
    here, there = socket.socketpair()
    there.settimeout(120)
    with Channel(here) as channel:
        leaders.wait(uid, local.TargetsWait("lustre", ids), channel)
    return Channel(there)


def changed(*ids: str) -> TargetsChanged:
    return TargetsChanged("m", "lustre", ids, ((3, "dead"),), 1)


def test_a_leader_that_waits_is_answered_and_one_that_has_gone_has_heard_nothing(leaders: Leaders) -> None:
    with waiting(leaders, "a", "b") as one, waiting(leaders, "c") as other:
        waiting(leaders, "d").close()
        assert set(leaders.tell(changed("a", "c2", "d"))) == {"a"}
        assert one.receive() == local.TargetsNews(((3, "dead"),))
        assert not other.wait(0.0) and len(leaders) == 1
        assert leaders.tell(changed("a")) == ()
    assert leaders.room.used.total() == 1


def test_one_user_cannot_take_all_the_room_of_leaders(leaders: Leaders) -> None:
    leaders.room.limit = 8
    kept = [waiting(leaders, str(n)) for n in range(4)]
    here, there = socket.socketpair()
    with Channel(here) as channel, there, pytest.raises(Busy):
        leaders.wait(1000, local.TargetsWait("lustre", ("more",)), channel)
    kept.append(waiting(leaders, "other", uid=1001))
    for channel in kept:
        channel.close()
    here, there = socket.socketpair()
    many = tuple(map(str, range(100)))
    with Channel(here) as channel, there, pytest.raises(Busy):
        leaders.wait(1002, local.TargetsWait("lustre", many), channel)
    with waiting(leaders, "again"):
        assert len(leaders) == 1, "those who have hung up are forgotten"
