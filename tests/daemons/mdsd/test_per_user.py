"""What mdsd holds of users' requests: in turns, and never more than the limits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.daemons.mdsd.per_user import QUEUE_LIMITS, Limits, PerUser

WIDE = Limits(1000, 1000, 1000, 1000)


def held(limits: Limits, *items: tuple[int, int]) -> PerUser[str]:
    """Items of (user, bytes), called a0, a1, ..."""
    found: PerUser[str] = PerUser(limits)
    for number, (uid, size_bytes) in enumerate(items):
        found.add(f"a{number}", uid, f"item {number}", size_bytes)
    return found


def test_one_users_many_do_not_starve_anothers_few() -> None:
    queue = held(WIDE, *[(1, 1)] * 100, (2, 1), (3, 1), (2, 1))
    assert [queue.take() for _ in range(6)] == [f"item {i}" for i in (0, 100, 101, 1, 102, 2)]
    assert len(queue) == 97


def test_a_user_who_comes_back_waits_for_one_turn_of_the_others() -> None:
    queue = held(WIDE, (1, 1), (2, 1), (2, 1))
    assert queue.take() == "item 0"
    queue.add("again", 1, "again", 1)
    assert [queue.take() for _ in range(4)] == ["item 1", "again", "item 2", None]


def test_a_user_beyond_his_limits_gives_way_and_the_limit_is_said() -> None:
    queue = held(Limits(2, 100, 1000, 1000), (1, 1), (1, 1), (2, 1))
    assert queue.excess(1) is None
    queue.add("third", 1, "third", 1)
    assert queue.excess(1) == (1, "at most 2 of one user, found 3")
    assert queue.newest(1) == "third" and queue.oldest(1) == "a0"
    queue.add("large", 2, "large", 100)
    assert queue.excess(2) == (2, "at most 100 bytes of one user, found 101")


def test_one_large_item_is_within_its_users_limit() -> None:
    assert held(Limits(2, 100, 1000, 1000), (1, 500)).excess(1) is None


def test_who_holds_most_gives_way_when_all_together_hold_too_much() -> None:
    queue = held(Limits(100, 1000, 4, 1000), *[(1, 1)] * 4, (2, 1))
    assert queue.excess(2) == (1, "at most 4 of all users, found 5")
    queue = held(Limits(100, 1000, 100, 100), (1, 90), (2, 5), (2, 5), (2, 5))
    assert queue.excess(2) == (1, "at most 100 bytes of all users, found 105")


def test_sixty_four_steps_of_one_user_at_once_fit() -> None:
    assert held(QUEUE_LIMITS, *[(1, 1_000_000)] * 64).excess(1) is None


def test_an_id_is_held_once_and_gone_when_taken() -> None:
    queue = held(WIDE, (1, 10))
    queue.add("a0", 2, "other", 20)
    assert len(queue) == 1 and queue.bytes == 20 and queue.get("a0") == "other"
    assert queue.pop("a0") == "other" and queue.pop("a0") is None
    assert "a0" not in queue and queue.get("a0") is None and queue.first() is None and queue.bytes == 0


STEPS = st.one_of(
    st.tuples(st.integers(0, 15), st.integers(0, 3), st.integers(0, 40)),
    st.tuples(st.integers(0, 15)),
    st.tuples(),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(STEPS, max_size=60))
def test_sums_are_right_and_limits_hold_whatever_comes(steps: list[tuple[int, ...]]) -> None:
    limits = Limits(3, 60, 7, 120)
    queue: PerUser[tuple[int, int]] = PerUser(limits)
    for step in steps:
        match step:
            case (number, uid, size_bytes):
                queue.add(str(number), uid, (uid, size_bytes), size_bytes)
                while excess := queue.excess(uid):
                    assert queue.pop(queue.newest(excess.uid)) is not None
            case (number,):
                queue.pop(str(number))
            case _:
                queue.take()
        all_items = [item for _, item in queue]
        assert len(all_items) == len(queue) <= limits.number
        assert sum(size for _, size in all_items) == queue.bytes <= limits.bytes
        for uid in range(4):
            mine = [size for owner, size in all_items if owner == uid]
            assert len(mine) <= limits.user_number
            assert len(mine) <= 1 or sum(mine) <= limits.user_bytes
