"""Promises: made once, shrunk by closes, ended by step, release or expiry; the sums always add up."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.allocate.ledger import MAX_DEAD, MAX_ENDED, Dead, Ledger


def died(ledger: Ledger, now: float) -> list[Dead]:
    return ledger.die(ledger.silent(now), now)


def heard(ledger: Ledger, id: str, now: float) -> bool:
    """Whether it was dead."""
    dead = ledger.heard(id, now)
    ledger.revive(id, now)
    return dead


def two_files() -> Ledger:
    ledger = Ledger()
    ledger.promise("a", "fs", 1000.0, [{0: 100, 1: 100}, {1: 50, 2: 0}])
    return ledger


def test_promises_add_up_per_file_system_and_ost() -> None:
    ledger = two_files()
    ledger.promise("b", "fs", 1000.0, [{1: 7}])
    ledger.promise("c", "other", 1000.0, [{1: 9}])
    assert ledger.promised("fs") == {0: 100, 1: 157}
    assert ledger.promised("other") == {1: 9}
    assert ledger.promised("unknown") == {}
    assert len(ledger) == 3


def test_what_is_left_of_one_promise() -> None:
    ledger = two_files()
    ledger.promise("b", "fs", 1000.0, [{1: 7}], alive_s=5.0)
    assert (ledger.left_of("a"), ledger.left_of("b")) == ({0: 100, 1: 150}, {1: 7})
    ledger.closed("a", 0, 80, now=10.0, release_at_s=20.0)
    assert ledger.left_of("a") == ledger.promised("fs") | {1: ledger.promised("fs")[1] - 7}
    died(ledger, 6.0)
    assert ledger.left_of("b") == {} and ledger.left_of("unknown") == {}
    ledger.ended("a")
    assert ledger.left_of("a") == ledger.promised("fs")


def test_the_same_id_twice_counts_once() -> None:
    ledger = two_files()
    ledger.promise("a", "fs", 2000.0, [{0: 999}])
    assert ledger.promised("fs") == {0: 100, 1: 150}


def test_a_request_resent_after_its_end_is_not_entered_again() -> None:
    ledger = two_files()
    ledger.ended("a")
    ledger.promise("a", "fs", 1000.0, [{0: 100}])
    assert ledger.promised("fs") == {}
    assert "a" in ledger
    ledger.expire(1000.0)
    assert "a" not in ledger


def test_a_close_shrinks_the_promise_until_its_release() -> None:
    ledger = two_files()
    ledger.closed("a", 0, 120, now=10.0, release_at_s=130.0)
    assert ledger.promised("fs") == {0: 60, 1: 110}
    ledger.expire(129.9)
    assert ledger.promised("fs") == {0: 60, 1: 110}
    ledger.expire(130.0)
    assert ledger.promised("fs") == {1: 50}


def test_a_file_larger_than_promised_keeps_its_promise() -> None:
    ledger = two_files()
    ledger.closed("a", 0, 10**6, now=10.0, release_at_s=130.0)
    assert ledger.promised("fs") == {0: 100, 1: 150}


def test_an_empty_file_promises_nothing() -> None:
    ledger = two_files()
    ledger.closed("a", 0, 0, now=10.0, release_at_s=130.0)
    assert ledger.promised("fs") == {1: 50}


def test_a_close_whose_release_is_past_ends_at_once() -> None:
    ledger = two_files()
    ledger.closed("a", 1, 50, now=10.0, release_at_s=10.0)
    assert ledger.promised("fs") == {0: 100, 1: 100}


def test_the_end_of_the_step_ends_what_was_not_closed_and_leaves_the_rest_until_its_release() -> None:
    ledger = two_files()
    ledger.closed("a", 0, 10, now=1.0, release_at_s=5.0)
    ledger.ended("a")
    ledger.ended("a")
    assert ledger.promised("fs") == {0: 5, 1: 5}
    # What comes late changes nothing.
    ledger.closed("a", 1, 50, now=2.0, release_at_s=6.0)
    assert ledger.promised("fs") == {0: 5, 1: 5}
    ledger.expire(5.0)
    assert ledger.promised("fs") == {}
    assert len(ledger) == 0


def test_late_and_unknown_messages_are_ignored() -> None:
    ledger = two_files()
    ledger.closed("nobody", 0, 1, now=1.0, release_at_s=2.0)
    ledger.closed("a", 17, 1, now=1.0, release_at_s=2.0)
    ledger.ended("nobody")
    assert ledger.promised("fs") == {0: 100, 1: 150}


def test_expiry_says_how_many_allocations_it_ended() -> None:
    ledger = two_files()
    ledger.promise("b", "fs", 500.0, [{0: 1}])
    ledger.promise("c", "fs", 500.0, [{0: 1}])
    ledger.ended("c")
    assert ledger.expire(499.0) == 0
    assert ledger.expire(500.0) == 1
    assert ledger.promised("fs") == {0: 100, 1: 150}


def test_indices_outside_the_request_are_ignored() -> None:
    ledger = two_files()
    for index in (-1, -2, 2, 10**12):
        ledger.closed("a", index, 0, now=1.0, release_at_s=1.0)
    assert ledger.promised("fs") == {0: 100, 1: 150}


def test_a_second_close_moves_the_release() -> None:
    ledger = two_files()
    ledger.closed("a", 0, 100, now=10.0, release_at_s=130.0)
    ledger.closed("a", 0, 50, now=50.0, release_at_s=170.0)
    ledger.expire(169.0)
    assert ledger.promised("fs") == {0: 25, 1: 75}
    ledger.expire(170.0)
    assert ledger.promised("fs") == {1: 50}


def test_a_close_of_a_million_unknown_files_takes_no_memory() -> None:
    ledger = two_files()
    tracemalloc.start()
    for index in range(2, 100_000):
        ledger.closed("a", index, 1, now=1.0, release_at_s=60.0)
        ledger.closed(f"nobody{index}", 0, 1, now=1.0, release_at_s=60.0)
    # Of the allocator alone: threads of other tests allocate, too.
    ours = tracemalloc.Filter(True, "*/tarazu/allocate/*")
    held = tracemalloc.take_snapshot().filter_traces([ours])
    tracemalloc.stop()
    assert sum(trace.size for trace in held.traces) < 10_000


@pytest.mark.long
def test_a_promised_stripe_takes_no_more_than_30_bytes_also_when_its_file_is_closed() -> None:
    tracemalloc.start()
    ledger = Ledger()
    ledger.promise("many", "fs", 1e6, ({(i * 7 + k) % 100: 1 << 30 for k in range(8)} for i in range(2_500)))
    ledger.promise("single", "fs", 1e6, ({i % 100: 1 << 30} for i in range(20_000)))
    for id, count in (("many", 2_500), ("single", 20_000)):
        for index in range(count):
            ledger.closed(id, index, 1 << 20, now=1.0, release_at_s=130.0)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ledger.numbers() == (2, 40_000)
    assert held / 40_000 < 30


def test_timers_of_promises_that_ended_long_before_they_expire_do_not_pile_up() -> None:
    ledger = Ledger()
    for number in range(3 * MAX_ENDED):
        ledger.promise(f"a{number}", "fs", 1e9, [{0: 1}], alive_s=1e6)
        ledger.ended(f"a{number}")
    assert max(len(ledger._expiries), len(ledger._silences)) <= 3 * MAX_ENDED
    assert len(ledger._ended) == MAX_ENDED and not ledger.promised("fs")
    assert "a0" not in ledger and f"a{3 * MAX_ENDED - 1}" in ledger


def test_a_silent_step_dies_once_and_its_closed_files_stay_until_their_release() -> None:
    ledger = Ledger()
    ledger.promise("a", "fs", 1e6, [{0: 100}, {1: 50}], uid=7, alive_s=30.0, now=0.0)
    ledger.promise("quiet", "fs", 1e6, [{2: 1}], now=0.0)
    ledger.closed("a", 0, 60, now=5.0, release_at_s=125.0)
    assert died(ledger, 34.9) == []
    assert died(ledger, 35.0) == [Dead("a", "fs", 7, 50, 30.0, again=False)]
    assert died(ledger, 1000.0) == []
    assert ledger.promised("fs") == {0: 60, 2: 1} and len(ledger) == 1
    assert ledger.numbers(7) == (0, 0) and ledger.held_bytes(7, "fs") == 60
    ledger.expire(125.0)
    assert ledger.promised("fs") == {2: 1}


def test_a_step_that_is_heard_lives_on() -> None:
    ledger = Ledger()
    ledger.promise("a", "fs", 1e6, [{0: 100}], alive_s=30.0, now=0.0)
    for now in range(20, 2000, 20):
        assert not heard(ledger, "a", now) and died(ledger, now + 5.0) == []
    assert not heard(ledger, "nobody", 2000.0)
    assert len(died(ledger, 2030.0)) == 1


def test_a_dead_step_that_speaks_again_is_promised_what_it_has_open() -> None:
    ledger = Ledger()
    ledger.promise("a", "fs", 1e6, [{0: 100}, {1: 50}], uid=7, alive_s=30.0, now=0.0)
    ledger.closed("a", 0, 60, now=1.0, release_at_s=10.0)
    ledger.expire(10.0)
    died(ledger, 31.0)
    assert ledger.promised("fs") == {} and len(ledger) == 0
    assert heard(ledger, "a", 100.0) and not heard(ledger, "a", 101.0)
    assert ledger.promised("fs") == {1: 50} and ledger.numbers(7) == (1, 2)
    (again,) = died(ledger, 131.0)
    assert again.again
    ledger.closed("a", 1, 50, now=140.0, release_at_s=150.0)
    assert ledger.promised("fs") == {1: 50}
    ledger.expire(150.0)
    assert ledger.promised("fs") == {} and len(ledger) == 0


def test_what_ended_neither_dies_nor_comes_back() -> None:
    ledger = Ledger()
    ledger.promise("a", "fs", 1e6, [{0: 100}, {1: 50}], alive_s=30.0, now=0.0)
    ledger.promise("b", "fs", 1e6, [{0: 100}], alive_s=30.0, now=0.0)
    ledger.closed("a", 0, 60, now=5.0, release_at_s=1000.0)
    ledger.ended("a")
    assert [dead.id for dead in died(ledger, 500.0)] == ["b"]
    ledger.ended("b")
    assert not heard(ledger, "a", 600.0) and not heard(ledger, "b", 600.0)
    assert ledger.promised("fs") == {0: 60}


def test_when_the_daemon_itself_was_held_up_nobody_was_silent() -> None:
    ledger = Ledger()
    ledger.promise("a", "fs", 1e6, [{0: 100}], alive_s=30.0, now=0.0)
    ledger.excuse(3600.0)
    assert died(ledger, 3629.0) == [] and len(died(ledger, 3630.0)) == 1


def test_dead_steps_do_not_fill_the_memory() -> None:
    ledger = Ledger()
    for number in range(2 * MAX_DEAD):
        ledger.promise(f"a{number}", "fs", 1e6, [{0: 1}], alive_s=30.0, now=0.0)
    assert len(died(ledger, 30.0)) == 2 * MAX_DEAD
    assert len(ledger._promises) == MAX_DEAD and not heard(ledger, "a0", 31.0)
    assert heard(ledger, f"a{2 * MAX_DEAD - 1}", 31.0)


class Plain:
    """The ledger as one would write it without any thought of time and memory: what it must agree with."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Any]] = {}

    def promise(
        self, id: str, expires: float, files: list[dict[int, int]], alive_s: float, now: float
    ) -> None:
        if id not in self.entries:
            held = [{"osts": dict(file), "at": None, "promised": True} for file in files]
            self.entries[id] = {
                "expires": expires,
                "files": held,
                "alive": alive_s,
                "heard": now,
                "dead": False,
            }

    def heard(self, id: str, now: float) -> None:
        if entry := self.entries.get(id):
            entry |= {"heard": now, "dead": False}

    def closed(self, id: str, index: int, size: int, now: float, at: float) -> None:
        entry = self.entries.get(id)
        if not entry or index >= len(entry["files"]):
            return
        self.heard(id, now)
        file = entry["files"][index]
        total = sum(file["osts"].values())
        if file["promised"]:
            file["at"] = at
            if size < total:
                file["osts"] = {ost: b * size // total for ost, b in file["osts"].items()}

    def ended(self, id: str) -> None:
        if entry := self.entries.get(id):
            entry["alive"] = 0.0
            for file in entry["files"]:
                file["promised"] &= file["at"] is not None

    def died(self, now: float) -> None:
        for entry in self.entries.values():
            if entry["alive"] and entry["heard"] + entry["alive"] <= now:
                entry["dead"] = True

    def expire(self, now: float) -> None:
        self.entries = {id: e for id, e in self.entries.items() if e["expires"] > now}
        for entry in self.entries.values():
            for file in entry["files"]:
                file["promised"] &= file["at"] is None or file["at"] > now

    def promised(self, closed: bool = False) -> dict[int, int]:
        """`closed`: of closed files alone."""
        sums: dict[int, int] = {}
        for entry in self.entries.values():
            for file in entry["files"]:
                if closed and file["at"] is None:
                    continue
                if file["promised"] and not (entry["dead"] and entry["alive"] and file["at"] is None):
                    for ost, size in file["osts"].items():
                        sums[ost] = sums.get(ost, 0) + size
        return {ost: size for ost, size in sums.items() if size}


EVENTS = st.one_of(
    st.tuples(
        st.just("promise"),
        st.integers(0, 3),
        st.lists(st.dictionaries(st.integers(0, 4), st.integers(0, 100)), max_size=4),
        st.sampled_from([0.0, 3.0]),
    ),
    st.tuples(st.just("closed"), st.integers(0, 3), st.integers(0, 4), st.integers(0, 300)),
    st.tuples(st.just("closed"), st.integers(0, 3), st.integers(0, 4), st.integers(0, 300)),
    st.tuples(st.just("ended"), st.integers(0, 3)),
    st.tuples(st.just("heard"), st.integers(0, 3)),
    st.tuples(st.just("expire")),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(EVENTS, max_size=40))
def test_promises_are_those_of_the_plain_ledger_and_always_end(events: list[tuple]) -> None:  # type: ignore[type-arg]
    ledger, plain = Ledger(), Plain()
    for now, event in enumerate(events):
        match event:
            case ("promise", id, files, alive_s):
                ledger.promise(str(id), "fs", now + 9.0, files, alive_s=alive_s, now=now)
                plain.promise(str(id), now + 9.0, files, alive_s, now)
            case ("closed", id, index, size):
                ledger.closed(str(id), index, size, now, now + 2.0)
                plain.closed(str(id), index, size, now, now + 2.0)
            case ("ended", id):
                ledger.ended(str(id))
                plain.ended(str(id))
            case ("heard", id):
                heard(ledger, str(id), now)
                plain.heard(str(id), now)
            case _:
                ledger.expire(now)
                plain.expire(now)
                died(ledger, now)
                plain.died(now)
        assert ledger.promised("fs") == plain.promised(), event
        assert ledger.written("fs") == plain.promised(closed=True), event
        assert ledger.held_bytes(0, "fs") == sum(plain.promised().values())
    ledger.expire(len(events) + 10.0)
    assert ledger.promised("fs") == ledger.written("fs") == {}
    assert len(ledger) == 0 and ledger.numbers() == (0, 0)


def test_who_stands_on_an_ost_is_found_but_not_what_is_closed_ended_or_dead() -> None:
    ledger = Ledger()
    for id, files in (("a", [{0: 5}, {1: 5}]), ("b", [{1: 5, 2: 5}]), ("c", [{3: 5}])):
        ledger.promise(id, "lustre", 1e6, files, alive_s=10.0)
    ledger.promise("d", "other", 1e6, [{0: 5}])
    assert ledger.standing_on("lustre", [1]) == ["a", "b"]
    assert ledger.standing_on("lustre", (0, 3, 9)) == ["a", "c"]
    assert ledger.standing_on("lustre", [1], "b") == ["b"] and not ledger.standing_on("lustre", [0], "b")
    ledger.closed("a", 1, 5, now=1.0, release_at_s=50.0)
    assert ledger.standing_on("lustre", [1]) == ["b"]
    ledger.ended("b")
    ledger.die(["c"], 20.0)
    assert ledger.standing_on("lustre", [1, 2, 3]) == []
    assert ledger.standing_on("lustre", [0]) == ["a"]
