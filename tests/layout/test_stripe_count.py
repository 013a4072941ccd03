"""`stripe_count = auto`: the fewest stripes that balance a step, never worse than the site's default."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tarazu.allocate import bounds, quality, timing
from tarazu.allocate.eligible import unfit
from tarazu.allocate.problem import build
from tarazu.config import Weights
from tarazu.layout import stripe_count
from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.layout.objects import STREAM_LOSS, STREAM_SHARE, component_object_bytes, object_bytes
from tarazu.layout.setstripe import parse_layout
from tarazu.layout.stripe_count import BUSY, NOISE, OBJECT_BYTES
from tarazu.lustre import EOF
from tarazu.model import ANY_RANK, Component, CreateRequest, FileName, Forecast, Layout, Ost, SystemView
from tarazu.sim import stripe_counts
from tarazu.sim.allocation import policies
from tarazu.units import GIB, KIB, MIB, TIB

POLICY = LayoutPolicy(min_size_bytes=0)


def file(size: int, *, shared: bool = False) -> Forecast:
    rank = ANY_RANK if shared else 0
    return Forecast(FileName("/x", "/x", "/x", False, rank, 0, 0), size, writers=16 if shared else 1)


def layouts(
    forecasts: list[Forecast], osts: int, default: str = "", policy: LayoutPolicy = POLICY
) -> list[Layout]:
    site = parse_layout(default)[0] if default else None
    chosen = ConfigurationManager(policy, UsableOsts(osts), site).choose(forecasts)
    return [c.layout for c in chosen if c.layout]


def counts(forecasts: list[Forecast], osts: int, default: str = "") -> list[int]:
    return sorted({x.components[0].stripe_count for x in layouts(forecasts, osts, default)})


def view(osts: int) -> SystemView:
    size = 1 << 60
    return SystemView("lustre", 0.0, tuple(Ost(i, "oss", size, size, size) for i in range(osts)))


def test_four_files_of_40_mib_do_not_leave_half_of_the_osts_idle() -> None:
    """On 8 OSTs with the default `-c 4` they got one stripe each: OST cost 2.0 where Lustre's own had 1.0."""
    four = [file(40 * MIB)] * 4
    chosen = layouts(four, 8, "-c 4 -S 4M")
    requests = [CreateRequest(40 * MIB, layout) for layout in chosen]
    assert len(chosen) == 4 and bounds.utilization_bound(view(8), requests) == 1.0


@pytest.mark.parametrize(
    ("forecasts", "osts", "default", "expected"),
    [
        ([file(16 * GIB, shared=True)], 35, "", [35]),
        ([file(1 * GIB, shared=True)], 35, "", [32]),  # 3 more gain less than they cost
        ([file(100 * MIB)], 35, "", [8]),
        ([file(800 * 10**6)], 35, "", [8]),  # it has one writer, who keeps no more of them busy
        ([file(800 * 10**6)], 35, "-c 4 -S 1M", [8]),
        ([file(16 * MIB)], 35, "", [4]),  # and objects cost
        ([file(2 * GIB)] * 16, 35, "", [4]),  # 64 objects, two on nearly every OST
        ([file(2 * GIB)] * 140, 35, "", [1]),
        ([file(2 * GIB)] * 35, 35, "-c 4 -S 1M", [4]),  # one each would be as even, but of one object only
        ([file(2 * GIB)] * 140, 35, "-c 4 -S 1M", [1]),  # four objects on every OST anyway
        ([file(2 * GIB)] * 3, 35, "-c -1 -S 1M", [35]),
        ([file(1 * TIB)], 3600, "-c 8 -S 1M", [8]),
        ([file(1 * TIB, shared=True)], 3600, "-c 8 -S 1M", [117]),
        ([file(1 * TIB)], 3600, "-c -1 -S 1M", [2000]),
        ([file(64 * MIB)] * 800 + [file(1 * TIB, shared=True)], 8, "-c 1 -S 4M", [1, 8]),
    ],
)
def test_stripe_counts(forecasts: list[Forecast], osts: int, default: str, expected: list[int]) -> None:
    assert counts(forecasts, osts, default) == expected


def test_a_wave_of_a_stepped_writer_is_not_left_to_a_few_osts_because_the_step_has_many_files() -> None:
    """20 times 4 files: 80 together are enough for all OSTs, but only 4 are ever written side by side."""
    forecasts = [file(2 * GIB)] * 80

    def chosen(osts: int, waves: list[int]) -> set[int]:
        manager = ConfigurationManager(POLICY, UsableOsts(osts))
        choices = manager.choose(forecasts, waves)
        return {choice.layout.components[0].stripe_count for choice in choices if choice.layout}

    in_turn = [n // 4 for n in range(80)]
    assert (chosen(16, [0] * 80), chosen(16, in_turn)) == ({1}, {8})
    assert (chosen(35, [0] * 80), chosen(35, in_turn)) == ({3}, {8})
    one_before = [max(0, n - 78) for n in range(80)]
    assert chosen(16, one_before) == {1}  # of waves of unequal size the one with most files counts


def test_the_reason_says_what_is_gained_and_what_the_objects_cost() -> None:
    manager = ConfigurationManager(POLICY, UsableOsts(35))
    (choice,) = manager.choose([file(16 * GIB, shared=True)])
    assert choice.stripes_because == (
        "auto: 35 instead of 1: written in the time that an OST takes for 613.6 MiB instead of 20.8 GiB; "
        "35 objects instead of 1 count as 34.1 MiB instead of 996.4 KiB"
    )
    (kept,) = ConfigurationManager(POLICY, UsableOsts(35), parse_layout("-c 8 -S 1M")[0]).choose([file(GIB)])
    assert kept.stripes_because == "auto: 8 as by default, no other number pays for its objects"


@pytest.mark.parametrize(
    ("size", "files", "waves", "osts", "shared"),
    [
        (2 * GIB, 16, 1, 35, False),
        (GIB, 24, 6, 16, False),
        (16 * GIB, 1, 1, 35, True),
        (300 * MIB, 10, 1, 12, False),
    ],
)
def test_no_other_count_ends_sooner_by_the_allocators_estimate(
    size: int, files: int, waves: int, osts: int, shared: bool
) -> None:
    """Placed and timed as mdsd does, with the price of objects and what one process keeps busy."""
    wave = [n % waves for n in range(files)]
    kind = file(size, shared=shared)

    def seconds(count: str) -> float:
        """In bytes that an OST moves."""
        policy = LayoutPolicy(count, min_size_bytes=0)
        choices = ConfigurationManager(policy, UsableOsts(osts)).choose([kind] * files, wave)
        layout = choices[0].layout
        assert layout
        requests = [CreateRequest(size, layout, writers=kind.writers)] * files
        system = view(osts)
        placed = policies.make("tarazu").allocate(system, requests, wave).files
        problem = timing.placed(system, requests, placed, wave)
        played = timing.Timing(problem, Weights()).time_s(problem.groups)
        alone = size / min(osts, BUSY * STREAM_SHARE * kind.writers)
        stripes = layout.components[0].stripe_count
        at_once = stripes * files / waves / osts
        return max(played, waves * alone) + waves * OBJECT_BYTES * (stripes + at_once)

    assert seconds("auto") <= 1.02 * min(seconds(str(n)) for n in range(1, osts + 1))


def test_overstriping_is_kept_with_its_count() -> None:
    for default, count in (("-C 12", 12), ("-C 65535", 8), ("-C 65533", 24), ("-C 4", 4)):
        (layout,) = layouts([file(GIB)], 8, default)
        assert (layout.components[0].pattern, layout.components[0].stripe_count) == ("overstriped", count)


def test_sweep_is_nowhere_worse_than_the_default() -> None:
    """In short; the whole one stands in docs/stripe-counts.csv."""
    cases = stripe_counts.sweep((8, 56, 480), (1, 10, 1000), (64 * MIB, 1000 * 10**6, 1 * TIB))
    rows = stripe_counts.summaries(cases)
    assert [r for r in rows if r.worse] == [] and len(cases) == 3 * 3 * 3 * len(stripe_counts.DEFAULTS)
    gains = {(r.default, r.osts): r.median_gain for r in rows}
    assert gains["-c 1", 480] > 5 and gains["-c 4", 56] >= 1 and gains["PFL", 56] == 1


sizes = st.one_of(
    st.sampled_from([64 * MIB, GIB, 16 * GIB, TIB]), st.integers(1, 1 << 22).map(lambda n: n * 64 * KIB + 17)
)
DEFAULT = st.sampled_from(["", "-c 1 -S 1M", "-c 2 -S 64K", "-c 4 -S 4M", "-c 8 -S 16M", "-c -1 -S 1M"])


def as_site(size: int, osts: int, default: str) -> Layout:
    component = parse_layout(default or "-c 1 -S 4M")[0].components[0]
    count = min(osts, 2000) if component.stripe_count == -1 else min(osts, component.stripe_count)
    return Layout((Component(0, EOF, component.stripe_size_bytes, count),))


@settings(max_examples=60, deadline=None)
@given(size=sizes, files=st.integers(1, 3000), osts=st.integers(1, 300), default=DEFAULT)
def test_the_bound_is_never_above_that_under_the_default(
    size: int, files: int, osts: int, default: str
) -> None:
    chosen = layouts([file(size)] * files, osts, default)
    under = bounds.alike_bound(osts, CreateRequest(size, as_site(size, osts, default)), files)
    assert bounds.alike_bound(osts, CreateRequest(size, chosen[0]), files) <= under * NOISE


@settings(max_examples=40, deadline=None)
@example(kinds=[(8, 9)], osts=17, default="-c -1 -S 1M")
@given(
    kinds=st.lists(st.tuples(st.integers(8, 4000), st.integers(1, 12)), min_size=1, max_size=4),
    osts=st.integers(1, 24),
    default=DEFAULT,
)
def test_nor_for_files_of_several_sizes(kinds: list[tuple[int, int]], osts: int, default: str) -> None:
    forecasts = [file(size * MIB) for size, number in kinds for _ in range(number)]
    chosen = layouts(forecasts, osts, default)
    requests = [CreateRequest(f.size_bytes, x) for f, x in zip(forecasts, chosen, strict=True)]
    own = [CreateRequest(f.size_bytes, as_site(f.size_bytes, osts, default)) for f in forecasts]
    bound, under = (bounds.utilization_of(build(view(osts), r)) for r in (requests, own))
    empty = (
        osts * len(requests) / sum(r.size_bytes for r in requests)
    )  # an object that stays empty counts as a byte
    assert bound <= under * (1 + 1e-9 + empty)


@pytest.mark.parametrize(
    ("sizes_mib", "osts", "default"),
    [
        ([1024] + [70] * 7, 8, "-c -1 -S 4M"),
        ([64] * 35, 12, "-c -1 -S 4M"),
        ([50 + 7 * i for i in range(16)], 12, "-c -1 -S 1M"),
        ([50 + 7 * i for i in range(16)], 8, "-c 4 -S 64K"),
        ([1024] * 3 + [100] * 20, 35, "-c -1 -S 1M"),
    ],
)
def test_a_bound_that_no_placement_reaches_does_not_take_stripes_away(
    sizes_mib: list[int], osts: int, default: str
) -> None:
    """Under `-c -1` mixed sizes got fewer stripes by the bound, and lay up to 4 % less evenly than Lustre has them."""
    forecasts = [file(size * MIB) for size in sizes_mib]
    requests = [
        CreateRequest(f.size_bytes, x)
        for f, x in zip(forecasts, layouts(forecasts, osts, default), strict=True)
    ]
    own = [CreateRequest(f.size_bytes, as_site(f.size_bytes, osts, default)) for f in forecasts]
    system = view(osts)

    def reached(policy: str, requests: list[CreateRequest]) -> float:
        files = policies.make(policy).allocate(system, requests).files
        return quality.ost_cost(quality.ost_bytes(system, requests, files))

    assert reached("tarazu", requests) <= reached("lsa", own) * (1 + 1e-6)


@settings(max_examples=15, deadline=None)
@given(size=st.integers(64, 20_000), files=st.integers(1, 200), osts=st.integers(1, 60))
@example(1153, 9, 57)
@example(64, 9, 10)
def test_no_other_count_is_written_sooner(size: int, files: int, osts: int) -> None:
    (count,) = counts([file(size * MIB)] * files, osts)

    def cost(n: int) -> float:
        bound = bounds.alike_bound(osts, CreateRequest(size * MIB, with_count(n)), files)
        fullest = bound * size * MIB * files / osts
        (objects,) = object_bytes(with_count(n), size * MIB)
        streams = max(1, files * sum(map(bool, objects)) / osts)
        slowest = max(max(objects) / STREAM_SHARE, size * MIB / min(osts, BUSY * STREAM_SHARE))
        lost = 1 + STREAM_LOSS * (streams - 1)
        return max(fullest * lost, slowest) + OBJECT_BYTES * (n + n * files / osts)

    def laid(layout: Layout) -> int:
        """Bytes on the fullest OST once each file lies on the emptiest, its largest objects first."""
        levels = [0] * osts
        of_file = sorted(filter(None, component_object_bytes(layout.components[0], size * MIB)), reverse=True)
        for _ in range(files):
            levels.sort()
            levels[: len(of_file)] = [level + more for level, more in zip(levels, of_file)]
        return max(levels)

    def with_count(n: int) -> Layout:
        return layouts([file(size * MIB)], osts, "", LayoutPolicy(str(n), min_size_bytes=0))[0]

    one_stripe = laid(as_site(1, osts, ""))
    good = [n for n in range(1, max(2, min(osts, size))) if laid(with_count(n)) <= one_stripe]
    assert cost(count) <= 1.02 * min(map(cost, good))


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 1 << 34),
    files=st.integers(1, 40),
    osts=st.integers(1, 30),
    count=st.integers(1, 30),
    stripe=st.sampled_from([64 * KIB, MIB, 4 * MIB]),
    pattern=st.sampled_from(["raid0", "overstriped"]),
)
def test_the_bound_of_files_that_are_alike_is_the_allocators(
    size: int, files: int, osts: int, count: int, stripe: int, pattern: str
) -> None:
    number = count if pattern == "overstriped" else min(count, osts)
    request = CreateRequest(size, Layout((Component(0, EOF, stripe, number, pattern),)))
    whole = bounds.utilization_of(build(view(osts), [request] * files))
    assert bounds.alike_bound(osts, request, files) == pytest.approx(whole, rel=1e-6 + number * files / size)


def test_a_hundred_thousand_files_on_3600_osts_are_chosen_for_at_once() -> None:
    forecasts = [file(64 * MIB + 4096 * (i % 5000)) for i in range(100_000)]
    begin = time.process_time()
    chosen = Counter(x.components[0].stripe_count for x in layouts(forecasts, 3600, "-c 4 -S 4M"))
    assert sum(chosen.values()) == 100_000
    assert time.process_time() - begin < 10, "it takes less than a second where nobody else computes"


def test_a_default_wider_than_a_plan_holds_is_left_to_lustre_where_fewer_stripes_balance_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stripe_count, "MAX_STRIPES", 100)
    site = parse_layout("-c -1 -S 4M")[0]
    (choice, *_) = ConfigurationManager(POLICY, UsableOsts(35), site).choose([file(35 * GIB)] * 4)
    assert choice.layout is None and "more than a plan holds" in choice.left_because


def test_a_slow_ost_is_not_striped_over_for_the_sake_of_evenness() -> None:
    """With as many stripes as OSTs every file would wait for the slow one."""
    size = 1 << 40
    osts = [Ost(i, "oss", size, size, size, write_bytes_per_s=5e8, pools=("p",)) for i in range(8)]
    osts[3] = Ost(3, "oss", size, size, size, write_bytes_per_s=1e7, pools=("p",))
    osts[4] = Ost(4, "oss", size, size, 1 << 30, write_bytes_per_s=5e8)
    bad = unfit(osts, Weights(), 10 * GIB)
    assert bad == {"": 2, "p": 1}
    targets = UsableOsts(8, {"p": 7}, bad)
    (choice,) = ConfigurationManager(POLICY, targets, None).choose([file(16 * GIB, shared=True)])
    assert choice.layout is not None and choice.layout.components[0].stripe_count == 6


def test_healthy_disks_beside_flash_are_striped_over() -> None:
    size = 1 << 40
    flash = [Ost(i, "oss1", size, size, size, write_bytes_per_s=5e9, relative_speed=1.0) for i in range(20)]
    disks = [
        Ost(i, "oss2", size, size, size, write_bytes_per_s=2e8, relative_speed=1.0) for i in range(20, 30)
    ]
    assert unfit([*flash, *disks], Weights(), 10 * GIB) == {"": 0}
