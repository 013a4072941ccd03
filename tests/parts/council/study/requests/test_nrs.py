"""What Lustre's servers schedule: quanta in turn, offsets in order, tokens."""

from __future__ import annotations

import math
from random import Random

import pytest

from tarazu.errors import BadInput
from tarazu.parts.council.study.requests.request import Access, Piece, Request
from tarazu.parts.council.study.requests.schedulers import SERVER, server_scheduler


def access(node: int, start: int, file: int = 0) -> Access:
    return Access(node, [Piece(Request(0, node, file, start, 10, False), 0, start, 10)])


def order(name: str, waiting: list[Access], now: float = 0.0) -> list[tuple[int, int]]:
    """(node, start) of all, as they are served when they all came at once."""
    scheduler = server_scheduler(name)
    found = []
    arrived = waiting
    while isinstance(one := scheduler.next(arrived, now), Access):
        found.append((one.node, one.start))
        arrived = []
    return found


BURST = [
    access(0, 50),
    access(0, 10),
    access(0, 30),
    access(1, 20),
    access(0, 70),
    access(1, 5),
    access(1, 0),
]


def test_fifo_keeps_the_order() -> None:
    assert order("fifo", BURST) == [(one.node, one.start) for one in BURST]


def test_crrn_gives_each_client_its_quantum_in_turn() -> None:
    assert order("crrn 2", BURST) == [(0, 50), (0, 10), (1, 20), (1, 5), (0, 30), (0, 70), (1, 0)]
    assert order("crrn 100", BURST) == [(0, 50), (0, 10), (0, 30), (0, 70), (1, 20), (1, 5), (1, 0)]


def test_orr_sorts_the_quantum_of_an_object_by_offset() -> None:
    waiting = [access(one.node, one.start, file=one.node) for one in BURST]
    assert order("orr 3", waiting) == [(0, 10), (0, 30), (0, 50), (1, 0), (1, 5), (1, 20), (0, 70)]


def test_trr_sorts_what_the_target_has() -> None:
    waiting = [access(one.node, one.start, file=one.node) for one in BURST]
    assert [start for _, start in order("trr 256", waiting)] == sorted(one.start for one in BURST)
    assert [start for _, start in order("trr 3", waiting)] == [10, 30, 50, 5, 20, 70, 0]


def test_who_was_idle_comes_in_a_later_round() -> None:
    scheduler = server_scheduler("orr 2")
    first = scheduler.next([access(0, 90, file=1), access(0, 40, file=2), access(0, 50, file=2)], 0.0)
    assert isinstance(first, Access) and first.start == 90
    # File 1 is back with some of its quantum left: the batch of file 2 is not cut in two.
    served = [scheduler.next([access(0, 10, file=1)] if not i else [], 0.0) for i in range(3)]
    assert [one.start for one in served if isinstance(one, Access)] == [40, 50, 10]


def test_tbf_holds_each_client_to_its_rate() -> None:
    scheduler = server_scheduler("tbf 10")
    waiting = [access(0, i) for i in range(5)] + [access(1, 100)]
    now, served = 0.0, []
    arrived = waiting
    while (one := scheduler.next(arrived, now)) != math.inf:
        arrived = []
        if isinstance(one, Access):
            served.append((round(now, 6), one.node))
        else:
            now = one
    assert served == [(0.0, 0), (0.0, 1), (0.0, 0), (0.0, 0), (0.1, 0), (0.2, 0)], (
        "three tokens, then ten a second"
    )


@pytest.mark.parametrize("name", [*SERVER, "crrn 3", "orr 4", "trr 5", "tbf 100"])
def test_nothing_is_lost_or_served_twice(name: str) -> None:
    random = Random(5)
    scheduler = server_scheduler(name)
    now, kept, served = 0.0, 0, set()
    for _ in range(300):
        now += random.expovariate(200.0)
        arrived = [
            access(random.randrange(3), random.randrange(1000), random.randrange(4))
            for _ in range(random.randrange(3))
        ]
        kept += len(arrived)
        one = scheduler.next(arrived, now)
        if isinstance(one, Access):
            served.add(one)
        else:
            assert one > now
    while isinstance(one := scheduler.next([], math.inf), Access):
        served.add(one)
    assert len(served) == kept


@pytest.mark.parametrize(
    "name", ["cfq", "fifo 3", "crrn x", "orr 0", "trr -1", "", "tbf 1.5", "tbf 00", "orr ²"]
)
def test_what_nrs_does_not_know_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="fifo, crrn, orr, trr, tbf"):
        server_scheduler(name)
