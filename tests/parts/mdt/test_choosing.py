"""Which MDT new subdirectories go to: by time, beside Lustre's own balance and the bound."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.model.goals import refusal
from tarazu.parts.mdt.choosing import (
    LEAST_GAIN,
    SPREAD,
    MdtChoice,
    MdtDirectory,
    choose,
    choose_new,
    lustre_shares,
    times_of,
)
from tarazu.parts.mdt.lmv import DefaultLmv
from tarazu.parts.mdt.model import Mdt

ROUND_ROBIN = DefaultLmv(max_inherit_rr=1)


def mdt(index: int, creates_per_s: float = 0.0, create_s: float | None = 0.001, **more: object) -> Mdt:
    fields = {"total_bytes": 10**12, "avail_bytes": 9 * 10**11, "files_total": 10**8, "files_free": 9 * 10**7}
    return Mdt(index, f"mds{index}", creates_per_s=creates_per_s, create_s=create_s, **{**fields, **more})  # type: ignore[arg-type]


def project(path: str = "/s/p", own: str = "", **more: object) -> MdtDirectory:
    return MdtDirectory(path, 0, 4, own, more.pop("default", None), **more)  # type: ignore[arg-type]


def test_all_projects_on_one_mdt_are_spread_by_time() -> None:
    mdts = [mdt(0, 900), mdt(1, 0), mdt(2, 0, 0.003)]
    projects = [
        project(f"/s/{name}", moving={0: rate}) for name, rate in (("a", 300), ("b", 300), ("c", 150))
    ]
    choices, times = choose(projects, mdts, 0.05), times_of(mdts)
    assert times.unevenness == pytest.approx(3.0)
    by = {c.directory: c for c in choices}
    assert any(c.words for c in choices)
    # 750 of 900 creates a second can go: 150 stay. In any parts: (0.9 s) / (1/1 + 1/1 + 1/3) each.
    assert choices[0].bound_s == pytest.approx(0.9 / (1 + 1 + 1 / 3))
    assert by["/s/a"].before_s == pytest.approx(0.9) and by["/s/a"].lustre_s == pytest.approx(0.9)
    last = min(c.after_s for c in choices if c.words)
    assert choices[0].bound_s <= last < 0.6
    for choice in choices:
        (score,) = choice.scores
        assert not choice.words or (score.measure == "time" and score.before > score.after == choice.after_s)


def test_thousands_of_small_projects_help_together() -> None:
    """Each by itself gives next to nothing."""
    projects = [project(f"/s/{n}", moving={0: 1.0}) for n in range(2000)]
    choices = choose(projects, [mdt(0, 2000), mdt(1), mdt(2), mdt(3)], 0.05)
    assert choices[0].after_s <= 1.01 * choices[0].bound_s == pytest.approx(0.505)
    assert 1400 < sum(bool(c.words) for c in choices) <= 2000 and not any(
        refusal(c) for c in changes_of(choices)
    )


def changes_of(choices: list[MdtChoice]) -> list[Change]:
    return [
        Change(lever="mdt", target=c.directory, wanted={"": c.words}, scores=c.scores)
        for c in choices
        if c.words
    ]


def test_a_single_hot_project_is_spread_where_lustre_does_not() -> None:
    (choice,) = choose([project(moving={0: 800.0})], [mdt(0, 800), mdt(1)], 0.05)
    assert choice.words == str(SPREAD) == "-c 1 -i -1 -X 1 --max-inherit-rr 1"
    assert choice.after_s == pytest.approx(0.4) == choice.bound_s


def test_where_lustre_s_round_robin_is_as_good_nothing_is_done() -> None:
    mdts = [mdt(0, 400), mdt(1, 400)]
    (choice,) = choose([project(default=ROUND_ROBIN, moving={0: 400.0, 1: 400.0})], mdts, 0.05)
    assert not choice.words and choice.why == "Lustre's own choice is as good: over MDTs 0, 1"
    assert choice.lustre_s == choice.before_s == pytest.approx(0.4)


def test_round_robin_gives_a_slow_mdt_too_much() -> None:
    mdts = [mdt(0, 400), mdt(1, 400, 0.01)]
    (choice,) = choose([project(default=ROUND_ROBIN, moving={0: 400.0, 1: 400.0})], mdts, 0.05)
    assert choice.words == "-c 1 -i 0" and choice.after_s == pytest.approx(0.8) and choice.lustre_s == 4.0


def test_speed_beside_peers_stands_for_a_time_that_is_not_known() -> None:
    times = times_of(
        [mdt(0, create_s=0.002), mdt(1, create_s=None, relative_speed=0.25), mdt(2, create_s=None)]
    )
    assert times.create_s == {0: 0.002, 1: 0.008, 2: 0.002} and times.known
    assert not times_of([mdt(0, create_s=None), mdt(1, create_s=None)]).known


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (project(own="-c 1 -i 1", default=DefaultLmv(1), moving={1: 500.0}), "somebody has chosen its MDT"),
        (project(own="a default of another form", moving={0: 500.0}), "could not be restored"),
        (project(default=DefaultLmv(-1, 2), moving={0: 500.0}), "striped over MDTs: -c 2"),
        (project(staying_per_s=7.0), "no recorded creates in directories made below it; 7 a second stay"),
    ],
)
def test_why_nothing_is_done(of: MdtDirectory, why: str) -> None:
    (choice,) = choose([of], [mdt(0, 500), mdt(1)], 0.05)
    assert not choice.words and why in choice.why


def test_nothing_goes_to_mdts_that_are_away_stale_or_full() -> None:
    others = [
        mdt(1, active=False), mdt(2, stale=True), mdt(3, files_free=0), mdt(4, files_free=10**6),
    ]  # fmt: skip
    (choice,) = choose([project(moving={0: 500.0})], [mdt(0, 500), *others], 0.05)
    assert choice.why == "1 of 5 MDTs can take directories"
    (choice,) = choose([project(moving={0: 500.0})], [mdt(0, 500), *others, mdt(5)], 0.05)
    assert choice.words in (str(SPREAD), "-c 1 -i 5") and choice.after_s == pytest.approx(0.25)


def test_a_default_of_its_own_is_not_replaced_by_one_that_is_not_copied() -> None:
    """What is made meanwhile would miss what it had got a copy of."""
    own = DefaultLmv(max_inherit=3)
    (choice,) = choose([project(own=str(own), default=own, moving={0: 800.0})], [mdt(0, 800), mdt(1)], 0.05)
    assert not choice.words and choice.why == "Lustre's own choice is as good: to MDT 0"


def test_lustre_s_own_choice() -> None:
    even, uneven = times_of([mdt(0), mdt(1)]), times_of([mdt(0), mdt(1, files_free=10**7)])
    plain, balanced, by_name = project(), project(default=DefaultLmv()), project(default=DefaultLmv(1))
    spread = project(default=ROUND_ROBIN)
    assert lustre_shares(plain, even, 0.05) == lustre_shares(plain, uneven, 0.05) == {0: 1.0}
    assert lustre_shares(by_name, uneven, 0.05) == {1: 1.0}
    assert lustre_shares(balanced, even, 0.05) == {0: 1.0}, "it makes no remote directory without need"
    assert lustre_shares(balanced, uneven, 0.05) == {0: 1.0}, "its own MDT has more space than most"
    assert lustre_shares(spread, even, 0.05) == {0: 0.5, 1: 0.5}
    assert lustre_shares(spread, uneven, 0.05) == pytest.approx({0: 0.9, 1: 0.1})
    assert lustre_shares(spread, uneven, 0.95) == {0: 0.5, 1: 0.5}
    full = times_of([mdt(0, files_free=10**7), mdt(1)])
    assert lustre_shares(balanced, full, 0.05) == pytest.approx({0: 0.1, 1: 0.9})


def test_a_new_directory_goes_to_the_least_busy_one() -> None:
    mdts = [mdt(0, 400), mdt(1, 100), mdt(2, 50, 0.01)]
    choice = choose_new(project(), mdts, 0.05, 200)
    assert choice.words == "-i 1"
    assert (choice.lustre_s, choice.after_s) == (pytest.approx(0.6), pytest.approx(0.5))
    assert choice_of(mdts, 200, mdt_of=1).why == "Lustre's own choice is the same: MDT 1"
    unknown = choose_new(project(), mdts, 0.05, 0.0)
    assert unknown.words == "-i 1" and "not known" in unknown.why
    same = choose_new(project(default=ROUND_ROBIN), [mdt(0, 400), mdt(1, 400)], 0.05, 100)
    assert not same.words and same.why == "Lustre's own choice is as good: over MDTs 0, 1"


def choice_of(mdts: list[Mdt], rate: float, mdt_of: int):  # type: ignore[no-untyped-def]
    return choose_new(MdtDirectory("/s", mdt_of, 1, "", None), mdts, 0.05, rate)


rates = st.lists(st.tuples(st.floats(0, 1000), st.floats(1e-4, 1e-2)), min_size=2, max_size=4)


@given(rates, st.lists(st.floats(1, 500), min_size=1, max_size=4))
def test_no_way_beats_the_bound_and_no_proposal_is_worse(
    mdts: list[tuple[float, float]], moving: list[float]
) -> None:
    view = [mdt(i, rate, seconds) for i, (rate, seconds) in enumerate(mdts)]
    projects = [project(f"/s/{i}", moving={0: rate}) for i, rate in enumerate(moving)]
    choices, times = choose(projects, view, 0.05), times_of(view, [each.moving for each in projects])
    bound = times.bound_s([each.moving for each in projects])
    less = {0: sum(moving)}
    best = min(
        times.busiest_s(
            {m: sum(r for r, on in zip(moving, ways, strict=True) if on == m) for m in range(len(view))}, less
        )
        for ways in itertools.product(range(len(view)), repeat=len(moving))
    )
    assert bound <= best * (1 + 1e-9)
    for choice in choices:
        assert choice.bound_s == bound
        if choice.words:
            assert (
                bound * (1 - 1e-9)
                <= choice.after_s
                <= (1 - LEAST_GAIN) * min(choice.before_s, choice.lustre_s)
            )
