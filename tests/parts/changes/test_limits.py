"""So many at once, a minute, an hour; and tries that come later and later."""

from __future__ import annotations

from tarazu.parts.changes.model.limits import FIRST_PAUSE_S, LONGEST_PAUSE_S, Limits, Tries


def test_so_many_at_once_a_minute_and_an_hour() -> None:
    limits = Limits(at_once=3, per_minute=2, per_hour=4)
    assert not limits.refusal(2, [], 1000.0)
    assert "at_once" in limits.refusal(3, [], 1000.0)
    assert "per_minute" in limits.refusal(0, [950.0, 990.0], 1000.0)
    assert not limits.refusal(0, [900.0, 930.0, 990.0], 1000.0)
    assert "per_hour" in limits.refusal(0, [-2000.0, 0.0, 100.0, 200.0], 1000.0)


def test_changes_of_a_clock_that_was_ahead_count_as_made_now() -> None:
    assert "per_minute" in Limits(per_minute=1).refusal(0, [9e9], 1000.0)


def test_tries_come_later_and_later_and_another_wish_at_once() -> None:
    tries, now, pauses = Tries(), 0.0, []
    for _ in range(10):
        tries.failed("key", "wish", now)
        end = now
        while tries.waits("key", "wish", end):
            end += 1.0
        pauses.append(end - now)
        now = end
    assert pauses[0] == FIRST_PAUSE_S and pauses == sorted(pauses) and pauses[-1] == LONGEST_PAUSE_S
    tries.failed("key", "wish", now)
    assert not tries.waits("key", "another wish", now)
    tries.done("key")
    assert not tries.waits("key", "wish", now)
