"""Promises: made once, shrunk by closes, ended by step, release or expiry; the sums always add up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.allocate.ledger import Ledger


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


EVENTS = st.one_of(
    st.tuples(
        st.just("promise"),
        st.integers(0, 3),
        st.lists(st.dictionaries(st.integers(0, 4), st.integers(0, 100)), max_size=3),
    ),
    st.tuples(st.just("closed"), st.integers(0, 3), st.integers(0, 3), st.integers(0, 300)),
    st.tuples(st.just("ended"), st.integers(0, 3)),
    st.tuples(st.just("expire")),
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(EVENTS, max_size=30))
def test_promises_are_never_negative_and_always_end(events: list[tuple]) -> None:  # type: ignore[type-arg]
    ledger = Ledger()
    for now, event in enumerate(events):
        if event[0] == "promise":
            ledger.promise(str(event[1]), "fs", now + 7.0, event[2])
        elif event[0] == "closed":
            ledger.closed(str(event[1]), event[2], event[3], now, now + 2.0)
        elif event[0] == "ended":
            ledger.ended(str(event[1]))
        else:
            ledger.expire(now)
        assert all(size > 0 for size in ledger.promised("fs").values())
    ledger.expire(len(events) + 10.0)
    assert ledger.promised("fs") == {}
    assert len(ledger) == 0
