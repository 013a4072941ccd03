"""What is dispatched when: each scheduler against small traces by hand, and what all of them must keep."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from tarazu.parts.council.study.requests.request import Piece, Request
from tarazu.parts.council.study.requests.schedulers import Twins, node_scheduler

SIZE = 100
FAR = 10_000


def piece(server: int, start: int, file: int = 0, write: bool = True) -> Piece:
    return Piece(Request(0, 0, file, start, SIZE, write), server, start, SIZE)


def starts(batch: list[Piece] | float) -> list[int]:
    assert isinstance(batch, list), f"nothing before {batch}"
    assert len({one.server for one in batch}) == 1
    return [one.start for one in batch]


def test_fifo_takes_the_oldest_and_what_lies_beside_it() -> None:
    scheduler = node_scheduler("fifo", 0, 2, 1.0, 3)
    waiting = [
        piece(0, 500),
        piece(1, FAR),
        *(piece(0, 100 * i) for i in (6, 7, 8)),
        piece(0, 900, write=False),
        piece(0, 2000),
    ]
    assert starts(scheduler.next(waiting, 0.0)) == [500, 600, 700], "three at most, and in order"
    assert starts(scheduler.next([], 0.0)) == [FAR]
    assert starts(scheduler.next([piece(0, 1900)], 0.0)) == [800], "a read is no neighbour of a write"
    assert starts(scheduler.next([], 0.0)) == [900]
    assert starts(scheduler.next([], 0.0)) == [1900, 2000], "what lies before it, too"
    assert scheduler.next([], 0.0) == math.inf


def test_hbrr_gives_each_file_its_quantum_in_the_order_of_offsets() -> None:
    scheduler = node_scheduler("hbrr", 0, 1, 1.0, 1)
    waiting = [piece(0, FAR * i, file=1) for i in range(10, 0, -1)] + [piece(0, FAR * 20, file=2)]
    found = [starts(scheduler.next(waiting if not i else [], 0.0))[0] // FAR for i in range(11)]
    assert found == [3, 4, 5, 6, 7, 8, 9, 10, 20, 1, 2], (
        "eight of the first file, one of the second, the rest"
    )


def test_twins_serves_one_server_in_a_window_and_waits_for_it() -> None:
    twins = Twins(0, 4, 1e-3, 16)
    assert twins.next([], 7.0) == math.inf
    # The first request begins the first window, which is server 0's on node 0.
    assert twins.next([piece(2, 0), piece(1, FAR)], 10.0) == pytest.approx(10.001), "server 1 is next"
    assert starts(twins.next([piece(0, 300)], 10.0002)) == [300], "what comes in the window goes at once"
    assert twins.next([], 10.0003) == pytest.approx(10.001), "and then it waits, whatever the others hold"
    assert starts(twins.next([piece(2, 100), piece(1, 5)], 10.0011)) == [FAR], "in the order of arrival"
    assert starts(twins.next([], 10.0012)) == [5]
    assert twins.next([], 10.0013) == pytest.approx(10.002)
    assert starts(twins.next([], 10.002)) == [0, 100], "side by side: one dispatch"
    assert twins.next([], 10.002) == math.inf
    assert twins.next([piece(2, 700)], 10.0035) == pytest.approx(10.006), "after servers 3, 0 and 1"


def test_each_node_visits_the_servers_in_another_order() -> None:
    orders = []
    for node in range(4):
        twins = Twins(node, 4, 1.0, 16)
        waiting = [piece(server, 0) for server in range(4)]
        batches = [twins.next(waiting if not turn else [], 5.0 + turn) for turn in range(4)]
        orders.append([batch[0].server for batch in batches if isinstance(batch, list)])
    assert orders == [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]
    assert all(len(set(at_once)) == 4 for at_once in zip(*orders)), "no two are at one server"


def test_a_new_window_begins_where_the_old_one_was() -> None:
    twins = Twins(0, 4, 1.0, 16)
    assert twins.next([piece(3, 0)], 0.0) == pytest.approx(3.0)
    twins.change_window(0.1, 1.5)  # in server 1's
    assert twins.next([], 1.5) == pytest.approx(1.7)
    assert starts(twins.next([], 1.7)) == [0]


def test_late_in_a_long_run_twins_is_not_asked_in_one_moment_for_ever() -> None:
    """After an hour a time is rounded by more than the billionth of a window."""
    random = Random(1)
    for _ in range(500):
        twins = Twins(0, 4, 125e-6, 16)
        began = random.uniform(0, 5000)
        twins.next([piece(0, 0)], began)
        wake = twins.next([piece(3, 0)], began + random.uniform(0, 5000))
        if isinstance(wake, float):
            assert starts(twins.next([], wake)) == [0], "when its window begins it is served"


@pytest.mark.parametrize("name", ["fifo", "hbrr", "twins"])
def test_nothing_is_lost_or_dispatched_twice(name: str) -> None:
    random = Random(3)
    scheduler = node_scheduler(name, 1, 3, 0.01, 4)
    sent: Counter[int] = Counter()
    kept = []
    now = 0.0
    for _ in range(300):
        now += random.expovariate(1 / 0.003)
        arrived = [
            piece(
                random.randrange(3), SIZE * random.randrange(30), random.randrange(3), random.random() < 0.5
            )
            for _ in range(random.randrange(4))
        ]
        kept += arrived
        batch = scheduler.next(arrived, now)
        if isinstance(batch, list):
            assert all(a.end == b.start and a.write == b.write for a, b in pairwise(batch))
            assert 1 <= len(batch) <= 4
            sent.update(map(id, batch))
    while (batch := scheduler.next([], now)) != math.inf:
        if isinstance(batch, list):
            sent.update(map(id, batch))
        else:
            assert batch > now, "it must not be asked for ever"
            now = batch
    assert sent == Counter(map(id, kept))
