"""Who belongs into a pool of good OSTs: hysteresis, a floor, few changes, and nothing without knowledge."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tarazu.model import Ost
from tarazu.ost_state import AVOIDED, OstState, Verdict, judge
from tarazu.parts.pool.choosing import HOUR_S, LEAVE_S, MOST, WELL_S, Memory, Round, changed, choose

GIB = 1 << 30
START_S = 1_800_000_000.0


def ost(index: int, verdict: str = "ok", since_s: float = 0.0, **more: Any) -> Ost:
    fields: dict[str, Any] = {"free_bytes": 9 * GIB, "avail_bytes": 9 * GIB, **more}
    return Ost(index, "oss1", 10 * GIB, state=OstState(Verdict(verdict), since_s=since_s), **fields)


class Pool:
    """A pool that obeys each round at once."""

    def __init__(self, osts: int, members: set[int] | None = None) -> None:
        self.candidates = set(range(osts))
        self.members = set(self.candidates) if members is None else members
        self.memory: dict[int, Memory] = {}

    def round(self, now_s: float, *osts: Ost, floor: float = 0.5, full: float = 0.95) -> Round:
        made = choose(
            now_s, osts, self.members, self.candidates, self.memory, floor=floor, full=full
        )  # fmt: skip
        self.memory = changed(made.memory, made, now_s)
        self.members = (self.members | {c.ost for c in made.add}) - {c.ost for c in made.remove}
        return made


def test_a_sick_ost_leaves_once_it_is_surely_so_and_comes_back_an_hour_later() -> None:
    pool = Pool(8)
    sick = [ost(i, "sick" if i == 3 else "ok") for i in range(8)]
    well = [ost(i) for i in range(8)]
    assert pool.round(START_S, *sick).waiting[0].ost == 3
    assert [c.ost for c in pool.round(START_S + LEAVE_S, *sick).remove] == [3]
    left_s = START_S + LEAVE_S
    assert not pool.round(left_s + WELL_S + 1, *well).add  # well long enough, but it left just now
    assert "min if it stays so" in pool.round(left_s + HOUR_S - 60, *well).waiting[0].why
    assert [c.ost for c in pool.round(left_s + HOUR_S, *well).add] == [3]


def test_each_kind_that_takes_no_good_files_leaves_and_what_is_unknown_stays() -> None:
    for verdict in AVOIDED - {Verdict.NEARLY_FULL}:
        pool = Pool(8)
        seen = [ost(i, verdict if i == 3 else "ok") for i in range(8)]
        pool.round(START_S, *seen)
        assert [c.ost for c in pool.round(START_S + 60, *seen).remove] == [3], verdict
    for verdict in ("silent", "impossible", "slow", "busy"):
        for members in (set(range(8)), set(range(8)) - {3}):
            pool = Pool(8, set(members))
            seen = [ost(i, verdict if i == 3 else "ok") for i in range(8)]
            pool.round(START_S, *seen)
            pool.round(START_S + 7200, *seen)
            assert (3 in pool.members) == (3 in members or verdict in ("slow", "busy")), verdict


def test_what_mdsd_knows_for_longer_leaves_at_once() -> None:
    seen = [ost(i, "dead" if i == 3 else "ok", since_s=START_S - 100 if i == 3 else 0.0) for i in range(8)]
    assert [c.ost for c in Pool(8).round(START_S, *seen).remove] == [3]


def test_nearly_full_leaves_and_returns_with_room_only() -> None:
    def filled(share: float) -> list[Ost]:
        return [ost(i, free_bytes=int((1 - share) * 10 * GIB) if i == 3 else 9 * GIB) for i in range(8)]

    pool = Pool(8)
    pool.round(START_S, *filled(0.96))
    assert [c.ost for c in pool.round(START_S + 60, *filled(0.96)).remove] == [3]
    assert not pool.round(START_S + 8000, *filled(0.92)).add
    pool.round(START_S + 16000, *filled(0.8))
    assert 3 in pool.members


def test_the_gravest_leave_first_and_never_below_the_floor() -> None:
    verdicts: list[str] = ["sick", "dead", "full", "sick", "ok", "ok", "refusing", "degraded"]
    seen = [ost(i, v) for i, v in enumerate(verdicts)]
    pool = Pool(8)
    pool.round(START_S, *seen)
    assert [c.ost for c in pool.round(START_S + 60, *seen).remove] == [1, 6, 2, 0]
    stays = pool.round(START_S + 120, *seen)
    assert not stays.remove and "fewer than 4 would be left" in stays.waiting[0].why
    assert len(pool.members) == 4


def test_without_knowledge_of_most_nothing_is_changed() -> None:
    seen = [ost(i, "dead" if i == 0 else "silent" if i > 5 else "ok", since_s=1.0) for i in range(9)]
    made = Pool(9).round(START_S, *seen)
    assert not made.remove and made.nothing == "6 of 9 OSTs have fresh reports: at least 75% are needed"
    assert Pool(0).round(START_S).nothing


def test_no_more_than_a_few_change_in_a_round() -> None:
    seen = [ost(i, "sick" if i < 9 else "ok", since_s=1.0) for i in range(40)]
    pool = Pool(40)
    assert [len(pool.round(START_S + 60 * n, *seen).remove) for n in range(4)] == [MOST, MOST, 1, 0]


VERDICTS = st.sampled_from(["ok", "ok", "sick", "full", "dead", "silent", "degraded"])


@given(st.lists(st.tuples(st.integers(20, 1500), st.lists(VERDICTS, min_size=4, max_size=4)), max_size=60))
def test_whatever_flaps_no_ost_changes_more_than_twice_in_any_hour(rounds: list[Any]) -> None:
    pool, now_s, changes = Pool(6), START_S, {i: list[float]() for i in range(6)}
    for step_s, verdicts in rounds:
        now_s += step_s
        made = pool.round(now_s, *(ost(i, v) for i, v in enumerate([*verdicts, "ok", "ok"])))
        for change in (*made.add, *made.remove):
            changes[change.ost].append(now_s)
        assert len(pool.members) >= 3 and len(made.add) + len(made.remove) <= MOST
    for times in changes.values():
        assert all(third - first >= HOUR_S for first, third in zip(times, times[2:], strict=False))


def test_one_that_flaps_every_minute_for_a_day_changes_the_pool_little() -> None:
    pool, count = Pool(8), 0
    for minute in range(1440):
        verdict = "sick" if minute // 2 % 2 else "ok"
        made = pool.round(START_S + 60 * minute, *(ost(i, verdict if i == 3 else "ok") for i in range(8)))
        count += len(made.add) + len(made.remove)
    assert count == 1 and 3 not in pool.members  # never well for ten minutes: it stays out


def test_one_that_is_drained_and_slow_by_it_leaves_all_the_same() -> None:
    """By itself `slow` is no reason to leave, so the one word for it is `degraded`."""
    pool = Pool(4)
    drained = judge(ost(1, degraded=True, relative_speed=0.6))
    seen = [ost(0), ost(1, drained.verdict), ost(2, "slow"), ost(3)]
    for at in (START_S, START_S + LEAVE_S + 1):
        pool.round(at, *seen)
    assert pool.members == {0, 2, 3}


def test_osts_that_nobody_had_heard_of_when_the_pool_was_made_come_in_at_once() -> None:
    """mdsd has just been started, and one OSS of many has reported."""
    pool = Pool(40, members={0, 1})
    pool.round(START_S, *(ost(i, "sick" if i == 7 else "ok") for i in range(40)))
    assert pool.members == set(range(40)) - {7}
