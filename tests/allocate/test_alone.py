"""What an mdsd gives away that does not know what the other one does."""

from __future__ import annotations

import random

import pytest

from tarazu.allocate.alone import LONGEST_S, AloneCount
from tarazu.allocate.ledger import Ledger, pack
from tarazu.allocate.records import Alone, Closed, Ended, Joined, Passed, Promised, apply, packed
from tarazu.model import Ost, SystemView

FREE = 1_000_000


class Side:
    """One mdsd's promises and counts; it sees what is available, and not the other side."""

    def __init__(self) -> None:
        self.ledger, self.count = Ledger(), AloneCount()

    def note(self, record: object) -> None:
        self.count.apply(record, self.ledger)  # type: ignore[arg-type]
        apply(self.ledger, record, 0.0)  # type: ignore[arg-type]

    def room(self, avail: int) -> int:
        promised = self.ledger.promised("fs").get(0, 0)
        ost = Ost(0, "oss", 10 * FREE, avail, avail, promised_bytes=promised)
        (shared,) = self.count.share(SystemView("fs", 0.0, (ost,), ())).osts
        return shared.avail_bytes - promised

    def promise(self, id: str, size: int, now: float, life_s: float = LONGEST_S) -> None:
        stripes = packed(pack([{0: size}]))
        self.note(Promised(id, "fs", 1, now, now + life_s, 0.0, *stripes, b"", now + life_s))


def parted(known: int = 0) -> tuple[Side, Side]:
    sides = Side(), Side()
    for side in sides:
        if known:
            side.promise("before", known, 0.0, 1e6)
        side.note(Alone(2, 0.0))
    return sides


def test_alone_it_gives_away_half_and_joined_again_all() -> None:
    side, _ = parted(known=200_000)
    assert side.room(FREE) == 400_000
    side.promise("a", 300_000, 1.0)
    assert side.room(FREE) == 100_000
    side.note(Joined(2, 2.0))
    assert side.room(FREE) == 500_000


def test_what_it_promised_just_before_it_was_killed_counts_twice_since_the_other_side_may_not_know_it() -> (
    None
):
    side = Side()
    side.note(Joined(2, 0.0))
    side.promise("long ago", 100_000, 0.0)
    side.promise("just now", 200_000, 100.0)
    side.note(Alone(4, 101.0, doubted=True))
    assert side.room(FREE) == (FREE - 300_000 - 200_000) // 2
    assert side.count.is_recent("just now") and not side.count.is_recent("long ago")
    side.note(Joined(4, 102.0))
    assert side.room(FREE) == FREE - 300_000 and not side.count.is_recent("just now")


def test_what_it_wrote_stays_counted_until_the_other_side_has_forgotten_too() -> None:
    side, _ = parted()
    side.promise("a", 400_000, 0.0)
    side.note(Closed("a", 10.0, 20.0, ((0, 400_000),)))
    side.note(Passed(21.0))
    assert side.ledger.promised("fs") == {}
    assert side.room(FREE - 400_000) == 100_000
    side.note(Passed(2 * LONGEST_S + 1000.0))
    assert side.room(FREE - 400_000) == 300_000


@pytest.mark.parametrize("seed", range(20))
def test_two_sides_never_promise_more_than_there_is(seed: int) -> None:
    rng = random.Random(seed)
    sides, avail, now = parted(rng.randint(0, FREE // 2)), FREE, 0.0
    open_files: dict[str, tuple[Side, int, float]] = {}
    if held := sides[0].ledger.promised("fs"):
        open_files["before"] = (sides[0], held[0], 1e6)
    for number in range(300):
        now += rng.expovariate(1 / 200)
        for side in sides:
            side.note(Passed(now))
        open_files = {id: file for id, file in open_files.items() if file[2] > now}
        side = rng.choice(sides)
        room = side.room(avail)
        if rng.random() < 0.5 and room > 0:
            size = rng.choice((room, rng.randint(1, room)))
            life_s = rng.uniform(1.0, LONGEST_S)
            side.promise(f"r{number}", size, now, life_s)
            open_files[f"r{number}"] = (side, size, now + life_s)
        elif open_files and rng.random() < 0.7:
            id = rng.choice(list(open_files))
            side, size, _ = open_files.pop(id)
            written = rng.randint(0, size)
            avail -= written
            if id == "before":
                side = rng.choice(sides)  # its leader talks to either
            side.note(Closed(id, now, now + 60.0, ((0, written),)))
            if rng.random() < 0.3:
                side.note(Ended(id, now))
        else:
            avail += rng.randint(0, FREE // 20)  # users delete
        assert sum(size for _, size, _ in open_files.values()) <= avail


def test_its_state_makes_an_equal_one() -> None:
    side, _ = parted(known=1000)
    side.promise("a", 5000, 1.0)
    side.note(Closed("before", 2.0, 62.0, ((0, 10),)))
    side.note(Ended("before", 3.0))
    copy = Side()
    for record in side.count.state():
        copy.note(record)
    assert list(copy.count.state()) == list(side.count.state())
    assert "a" in copy.count and copy.count.counted("fs") == {0: 5000}
    assert [type(record) for record in copy.count.told()] == [Closed, Ended]
