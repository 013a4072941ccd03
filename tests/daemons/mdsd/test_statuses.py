"""One status for all who ask, in a bounded share of mdsd's time, behind all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tarazu.daemons.mdsd.status import LONGEST_S, MOST_ASKERS, SHARE, Statuses
from tarazu.wire import messages
from tarazu.wire.messages import StatusReply, StatusRequest
from tarazu.wire.transport import Peer

TAKES_S = 0.2


class World:
    """A status takes `TAKES_S`."""

    def __init__(self) -> None:
        self.now, self.made, self.sending_s = 100.0, 0, 0.0
        self.told: dict[str, dict[str, Any]] = {}
        self.statuses = Statuses(self._make, self._promises, self._send, lambda: self.now)

    def _make(self, _now: float) -> dict[str, Any]:
        self.now += TAKES_S
        self.made += 1
        return {"number": self.made}

    def _promises(self, ids: Sequence[str]) -> dict[str, Any]:
        return {"promises_of": dict.fromkeys(ids, 1)}

    def _send(self, peer: Peer, data: bytes) -> None:
        self.now += self.sending_s
        reply = messages.decode(data)
        assert isinstance(reply, StatusReply) and peer.name == "somebody"
        self.told[reply.message_id] = reply.status

    def ask(self, *ids: str, promises: tuple[str, ...] = ()) -> None:
        for id in ids:
            self.statuses.ask(Peer(b"", "somebody"), StatusRequest(id, {}, promises))


@pytest.fixture
def world() -> World:
    return World()


def test_six_loops_of_tarazu_status_take_no_more_than_their_share(world: World) -> None:
    begin = world.now
    for turn in range(3_000):
        world.ask(*(f"{turn}-{n}" for n in range(6)))
        world.statuses.look(idle=True)
        world.now += 0.01
    assert len(world.told) > 6 * 2_700, "all are answered"
    assert 2 < world.made <= 1 + (world.now - begin) * SHARE / TAKES_S


def test_all_who_ask_together_get_the_same_and_each_what_is_his(world: World) -> None:
    world.ask("a", "b")
    world.ask("c", promises=("p",))
    world.statuses.look(idle=True)
    assert world.told == {
        "a": {"number": 1},
        "b": {"number": 1},
        "c": {"number": 1, "promises_of": {"p": 1}},
    }


def test_nobody_waits_longer_than_a_second_and_who_asks_in_time_gets_a_new_one(world: World) -> None:
    world.ask("a")
    world.statuses.look(idle=True)
    world.ask("b")
    world.statuses.look(idle=True)
    assert "b" not in world.told and world.statuses.due() == pytest.approx(world.now + LONGEST_S)
    world.now += LONGEST_S
    world.statuses.look(idle=True)
    assert world.told["b"] == {"number": 1}
    world.now += TAKES_S / SHARE
    world.ask("c")
    world.statuses.look(idle=True)
    assert world.told["c"] == {"number": 2}


def test_it_is_made_when_nothing_else_waits_or_after_a_second(world: World) -> None:
    world.ask("a")
    world.statuses.look(idle=False)
    assert not world.told
    world.now += LONGEST_S
    world.statuses.look(idle=False)
    assert world.told["a"] == {"number": 1}


def test_a_crowd_is_answered_in_turns_so_that_views_get_theirs(world: World) -> None:
    world.sending_s = 0.01
    world.ask(*map(str, range(100)))
    for _ in range(60):
        before = len(world.told)
        world.statuses.look(idle=True)
        assert len(world.told) - before <= 6
        world.now += 1.0
    assert len(world.told) == 100


def test_a_crowd_of_askers_is_bounded(world: World) -> None:
    world.ask(*(str(n) for n in range(2 * MOST_ASKERS)))
    world.statuses.look(idle=True)
    assert len(world.told) == MOST_ASKERS
