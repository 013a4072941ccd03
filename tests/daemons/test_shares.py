"""How clientd divides what it has: one user never has all, and nobody waits behind another's crowd."""

from __future__ import annotations

import threading

import pytest

from tarazu.daemons.shares import Share, Turns
from tarazu.errors import Busy
from tests.daemons.listening import PATIENCE_S, until

ALICE, BOB, CAROL = 1001, 1002, 1003


def test_one_user_may_hold_as_much_as_he_leaves_free() -> None:
    share = Share(64)
    taken = {uid: sum(share.take(uid) for _ in range(100)) for uid in (ALICE, BOB, CAROL)}
    assert taken == {ALICE: 32, BOB: 16, CAROL: 8}
    assert not share.take(ALICE)
    share.give(BOB, 16)
    assert share.take(CAROL, 8)
    assert sum(share.take(0) for _ in range(100)) == 64 - 32 - 16, "root has all that is left"


def test_what_is_given_back_is_forgotten() -> None:
    share = Share(10)
    for uid in range(1, 1000):
        assert share.take(uid, 5)
        share.give(uid, 5)
    assert not share.used


class Crowd:
    """Threads that each take a turn, and note in which order they started."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.order: list[int] = []
        self.threads: list[threading.Thread] = []
        self.all_there = threading.Event()

    def come(self, uid: int, units: int = 1) -> None:
        """Who has a turn keeps it until all have come."""

        def work() -> None:
            with self.turns.turn(uid, units, PATIENCE_S):
                self.order.append(uid)
                self.all_there.wait(PATIENCE_S)

        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()
        until(lambda: len(self.order) + self.turns.waiting == len(self.threads))

    def end(self) -> list[int]:
        self.all_there.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        return self.order


def test_a_second_user_does_not_wait_behind_the_firsts_hundred() -> None:
    crowd = Crowd(Turns(4))
    for _ in range(40):
        crowd.come(ALICE)
    crowd.come(BOB)
    order = crowd.end()
    assert len(order) == 41
    assert order.index(BOB) < 20, "one of four units is never Alice's"


def test_a_large_piece_of_work_is_not_overtaken_for_ever() -> None:
    crowd = Crowd(Turns(4))
    for _ in range(4):
        crowd.come(BOB)
    crowd.come(ALICE, units=100)
    for _ in range(30):
        crowd.come(CAROL)
    order = crowd.end()
    assert len(order) == 35 and order.index(ALICE) < 34


def test_a_turn_that_does_not_come_is_busy_and_leaves_nothing_behind() -> None:
    turns = Turns(1)
    with (
        turns.turn(ALICE, 1, 1),
        pytest.raises(Busy, match="expected a turn within"),
        turns.turn(BOB, 1, 0.05),
    ):
        pass
    assert turns.waiting == 0
    with turns.turn(BOB, 1, 1):
        pass
