"""What is moved, what it brings, and that all that is said of it holds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.rebalance.advice import Advice, RebalanceOptions, advise
from tarazu.parts.rebalance.datasets import Dataset, of_directories
from tarazu.parts.rebalance.files import Files
from tarazu.parts.rebalance.orders import widening
from tarazu.parts.rebalance.targets import Targets, targets
from tests.parts.rebalance.made import NOW_S, add, view_of

FOR_EVER = RebalanceOptions(days=1e9)
GB = 10**9


def all_of(files: Files, per_day: float = 1.0) -> list[Dataset]:
    return of_directories(files, per_day, NOW_S)


def seconds(files: Files, to: Targets, advice: Advice | None = None, dataset: Dataset | None = None) -> float:
    """What the slowest OST needs, computed from scratch, after all that is advised."""
    osts = [list(files.osts(i)) for i in range(len(files))]
    if advice:
        for move in (m for w in advice.steps for m in w.step.moves):
            assert [int(to.index[p]) for p in move.before] == osts[move.file], (
                "moved twice, or not from there"
            )
            osts[move.file] = [int(to.index[p]) for p in move.after]
    objects = files.objects()
    place = to.places(np.array([o for of in osts for o in of], np.int64))
    chosen = np.isin(objects.file, dataset.files if dataset else np.arange(len(files)))
    load = np.bincount(place[chosen], objects.stored[chosen], len(to.index))
    return float((load / to.speed).max())


def test_files_of_one_ost_are_spread() -> None:
    files = Files()
    for i in range(8):
        add(files, f"/scratch/set/{i}", GB, [3])
    to = targets(view_of(8))
    advice = advise(files, to, all_of(files), FOR_EVER)
    (outlook,) = advice.outlooks
    assert (outlook.before_s, outlook.after_s, outlook.bound_s) == pytest.approx((8.0, 1.0, 1.0), rel=1e-3)
    assert outlook.slowest == 3
    moves = [m for w in advice.steps for m in w.step.moves]
    assert len(moves) == 7 and len({m.after for m in moves}) == 7, "one stays"
    assert seconds(files, to, advice) == pytest.approx(1.0)


def test_a_sick_ost_is_emptied_of_what_is_read() -> None:
    files = Files()
    for i in range(32):
        add(files, f"/scratch/set/{i}", GB, [i % 8])
    to = targets(view_of(8, slow={5: 0.05}))
    advice = advise(files, to, all_of(files), FOR_EVER)
    (outlook,) = advice.outlooks
    assert outlook.before_s == pytest.approx(80.0) and outlook.after_s == pytest.approx(5.0)
    assert {m.before for w in advice.steps for m in w.step.moves} == {(5,)}, (
        "the others are well where they are"
    )
    assert advice.size_bytes == 4 * GB


def test_moving_stops_where_it_costs_more_than_it_saves() -> None:
    files = Files()
    for i in range(40):
        add(files, f"/scratch/often/{i}", GB, [0])
        add(files, f"/scratch/seldom/{i}", GB, [1])
    to = targets(view_of(8))
    often, seldom = (
        Dataset(d.name, d.files, d.times, rate, "told")
        for d, rate in zip(all_of(files), (24.0, 0.001), strict=True)
    )
    advice = advise(files, to, [often, seldom], RebalanceOptions(days=1.0, bytes_per_s=1e9))
    assert advice.outlooks[0].after_s < 0.2 * advice.outlooks[0].before_s
    assert advice.outlooks[1].after_s == advice.outlooks[1].before_s
    assert {w.dataset for w in advice.unpaid} == {1}
    assert not advise(files, to, [seldom], RebalanceOptions(days=1.0, bytes_per_s=1e9)).steps


def test_what_is_never_read_is_never_moved_for_time() -> None:
    files = Files()
    for i in range(8):
        add(files, f"/scratch/set/{i}", GB, [3])
    advice = advise(files, targets(view_of(8)), all_of(files, 0.0), FOR_EVER)
    assert not advice.steps and not advice.unpaid


def test_objects_stay_among_osts_of_their_pools() -> None:
    files = Files()
    for i in range(8):
        add(files, f"/scratch/set/{i}", GB, [0])
        add(files, f"/scratch/set/x{i}", GB, [4])
    flash = dict.fromkeys(range(4), ("flash",))
    to = targets(view_of(8, pools=flash))
    for move in (m for w in advise(files, to, all_of(files), FOR_EVER).steps for m in w.step.moves):
        assert (move.before[0] < 4) == (move.after[0] < 4)
    good = {i: ("tarazu",) for i in range(8) if i != 4}
    kept = targets(view_of(8, pools=good), own_pools=frozenset({"tarazu"}))
    advice = advise(files, kept, all_of(files), FOR_EVER)
    assert any(m.before == (4,) for w in advice.steps for m in w.step.moves), (
        "out of tarazu's own pool: still movable"
    )
    assert kept.room[4] == 0 < kept.room[5], "Lustre refuses it to files of that pool"
    assert (targets(view_of(8, pools=flash), own_pools=frozenset({"tarazu"})).room > 0).all(), "no such pool"
    only = targets(view_of(8, pools=flash), pool="flash")
    moves = [m for w in advise(files, only, all_of(files), FOR_EVER).steps for m in w.step.moves]
    assert moves and {m.after[0] for m in moves} <= {0, 1, 2, 3}


def test_the_fullest_ost_is_lowered_to_near_the_mean() -> None:
    files = Files()
    for i in range(400):
        add(files, f"/scratch/set/{i}", 5 * GB, [2])
    to = targets(view_of(8, used=[0.3, 0.3, 0.85, 0.3, 0.3, 0.3, 0.3, 0.3]))
    advice = advise(files, to, all_of(files), RebalanceOptions(goal="space"))
    assert advice.fill_before == pytest.approx(0.85)
    assert advice.fill_after == pytest.approx(0.65, abs=0.01), (
        "all 2 TB are gone, the rest is not of these files"
    )
    assert advice.fill_bound == pytest.approx(0.65)
    told = advise(files, to, all_of(files), RebalanceOptions(goal="space", until_fill=0.75))
    assert told.fill_after == pytest.approx(0.75, abs=0.02) and told.size_bytes < advice.size_bytes


def test_a_full_ost_gets_nothing_and_no_copy_without_its_space() -> None:
    files = Files()
    for i in range(20):
        add(files, f"/scratch/set/{i}", 100 * GB, [0])
    to = targets(view_of(4, used=[0.2, 0.89, 0.2, 0.95], total=10**13))
    advice = advise(files, to, all_of(files), FOR_EVER)
    gone = [m.after[0] for w in advice.steps for m in w.step.moves]
    assert gone.count(1) <= 1 and 3 not in gone and 2 in gone


def test_a_file_with_one_large_object_needs_more_stripes() -> None:
    files = Files()
    add(files, "/scratch/set/large", 100 * GB, [2])
    for i in range(8):
        add(files, f"/scratch/set/{i}", GB, [i])
    (outlook,) = advise(files, targets(view_of(8)), all_of(files), FOR_EVER).outlooks
    assert outlook.after_s == pytest.approx(100.0, rel=0.02) and outlook.bound_s == pytest.approx(
        100.0, rel=0.01
    )
    (wide,) = outlook.wider
    assert (wide.file, wide.stripe_count) == (0, 8) and wide.after_s == pytest.approx(100 / 8)
    assert widening(files, wide, "-W 190M") == "lfs migrate --non-block -W 190M -c 8 -S 1M /scratch/set/large"


@settings(max_examples=40)
@given(
    st.integers(4, 12).flatmap(
        lambda osts: st.tuples(
            st.just(osts),
            st.lists(
                st.tuples(
                    st.integers(1, 400),
                    st.lists(st.integers(0, osts - 1), min_size=1, max_size=4, unique=True),
                    st.integers(0, 2),
                ),
                min_size=1,
                max_size=40,
            ),
            st.dictionaries(st.integers(0, osts - 1), st.floats(0.05, 4), max_size=3),
            st.sampled_from(["time", "space"]),
        )
    )
)
def test_all_that_is_said_holds(
    case: tuple[int, list[tuple[int, list[int], int]], dict[int, float], str],
) -> None:
    osts, made, slow, goal = case
    files = Files()
    for i, (size, on, directory) in enumerate(made):
        add(files, f"/scratch/{directory}/{i}", size * 10**7, on)
    to = targets(view_of(osts, slow=slow, total=2 * 10**10))
    sets = all_of(files)
    advice = advise(files, to, sets, RebalanceOptions(goal=goal, days=1e9))  # type: ignore[arg-type]
    moves = [m for w in advice.steps for m in w.step.moves]
    assert len({m.file for m in moves}) == len(moves)
    room = to.room.copy()
    for move in moves:
        assert len(set(move.after)) == len(move.after) and move.after != move.before
        stored = files.objects().stored[files.objects().file == move.file]
        for before, after, size in zip(move.before, move.after, stored.tolist(), strict=True):
            room[after] -= size if before != after else 0
    assert (room >= 0).all()
    rates = [(w.saves_s_per_day + w.lowers_fill) / w.step.size_bytes for w in advice.steps]
    assert all(a >= b * (1 - 1e-9) for a, b in pairwise(rates)), "the largest gain per byte first"
    for outlook in advice.outlooks:
        assert outlook.before_s == pytest.approx(seconds(files, to, None, outlook.dataset))
        assert outlook.after_s == pytest.approx(seconds(files, to, advice, outlook.dataset))
        assert outlook.bound_s <= outlook.after_s * (1 + 1e-6)
        assert goal == "space" or outlook.after_s <= outlook.before_s * (1 + 1e-9)
    if goal == "time":
        saved = sum(o.before_s - o.after_s for o in advice.outlooks)
        assert saved == pytest.approx(advice.saves_s_per_day)
    else:
        assert advice.fill_bound <= advice.fill_after + 1e-9 <= advice.fill_before + 2e-9
