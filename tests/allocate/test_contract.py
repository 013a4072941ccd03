"""What every policy promises, and what `tarazu` promises beyond."""

from __future__ import annotations

import os
from itertools import pairwise
from math import ceil
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.allocate import bounds, quality
from tarazu.allocate.eligible import room_bytes
from tarazu.allocate.problem import _object_bytes
from tarazu.config import Weights
from tarazu.errors import ConfigError, InfeasibleRequest, InsufficientResources
from tarazu.layout.objects import component_object_bytes
from tarazu.lustre import EOF
from tarazu.model import Allocation, Component, CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.sim import proof
from tarazu.sim.allocation import policies
from tarazu.units import GIB, KIB, MIB

DISTINCT = ("tarazu", "lsa", "random", "round-robin", "greedy")
"""All but the paper's, whose network does not know that a file needs different OSTs."""

OFTEN = bool(os.environ.get("TARAZU_SOAK"))
PROFILE = settings(
    max_examples=25 if OFTEN else 4,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def osts(draw: st.DrawFn, index: int) -> Ost:
    total = draw(st.sampled_from((100, 200))) * GIB
    used = int(total * draw(st.floats(0, 0.8)))
    return Ost(
        index,
        f"oss{index % 3}",
        total,
        total - used,
        total - used,
        promised_bytes=draw(st.sampled_from((0, 0, GIB))),
        write_bytes_per_s=draw(st.sampled_from((None, 1e8, 1e9, 1.3e9))),
        degraded=draw(st.sampled_from((False,) * 5 + (True,))),
        no_create=draw(st.sampled_from((False,) * 9 + (True,))),
        active=draw(st.sampled_from((True,) * 9 + (False,))),
        pools=draw(st.sampled_from(((), ("flash",), ("flash", "all")))),
    )


@st.composite
def components(draw: st.DrawFn) -> tuple[Component, ...]:
    """One to three components; the ends are multiples of 64 MiB."""
    ends = sorted(draw(st.sets(st.integers(1, 40), max_size=2)))
    limits = [0, *(e * 64 * MIB for e in ends), EOF]
    parts = []
    for start, end in pairwise(limits):
        pool = draw(st.sampled_from(("", "", "", "flash")))
        count = draw(st.integers(1, 4))
        if start == 0 and end != EOF and draw(st.booleans()):
            parts.append(Component(start, end, MIB, 0, pattern="mdt"))
        else:
            parts.append(Component(start, end, draw(st.sampled_from((MIB, 4 * MIB))), count, pool=pool))
    return tuple(parts)


@st.composite
def problems(draw: st.DrawFn) -> tuple[SystemView, list[CreateRequest]]:
    indices = sorted(draw(st.sets(st.integers(0, 30), min_size=4, max_size=14)))
    servers = tuple(Oss(f"oss{i}", cpu_load=draw(st.sampled_from((0.0, 0.5, 1.0)))) for i in range(3))
    view = SystemView("lustre", 0.0, tuple(draw(osts(index=i)) for i in indices), servers)
    layouts = [
        Layout(parts, len(parts) > 1) for parts in draw(st.lists(components(), min_size=1, max_size=3))
    ]
    sizes = st.one_of(st.integers(0, 3 * GIB), st.sampled_from((0, 1, 64 * MIB, GIB)))
    wanted = [
        CreateRequest(draw(sizes), draw(st.sampled_from(layouts))) for _ in range(draw(st.integers(1, 20)))
    ]
    return view, wanted


def check(view: SystemView, requests: list[CreateRequest], allocation: Allocation, distinct: bool) -> None:
    by_index = {o.index: o for o in view.osts}
    assert len(allocation.files) == len(requests)
    placed: dict[int, int] = {}
    for request, file in zip(requests, allocation.files):
        covered = request.layout.covered(request.size_bytes)
        assert len(file.osts) == len(request.layout.components)
        for position, (component, chosen) in enumerate(zip(request.layout.components, file.osts)):
            if component.pattern == "mdt":
                assert chosen == ()
                continue
            in_pool = [o for o in view.osts if o.usable and (not component.pool or component.pool in o.pools)]
            assert len(chosen) == (component.stripe_count if position < covered else min(1, len(in_pool)))
            for index in chosen:
                ost = by_index[index]
                assert ost.usable
                if distinct:
                    assert not component.pool or component.pool in ost.pools
            if distinct:
                assert len(set(chosen)) == len(chosen)
            if position < covered:
                for index, size in zip(chosen, component_object_bytes(component, request.size_bytes)):
                    placed[index] = placed.get(index, 0) + size
    on_osts = sum(
        sum(component_object_bytes(c, r.size_bytes))
        for r in requests
        for c in r.layout.components
        if c.stripe_count
    )
    assert sum(placed.values()) == on_osts
    counted = quality.ost_bytes(view, requests, allocation.files)
    assert {i: size for i, size in counted.items() if size} == {i: size for i, size in placed.items() if size}


@pytest.mark.parametrize("name", DISTINCT)
class TestContract:
    @PROFILE
    @given(problem=problems())
    def test_places_every_stripe_once_on_distinct_osts_of_its_pool(
        self, name: str, problem: tuple[SystemView, list[CreateRequest]]
    ) -> None:
        view, requests = problem
        try:
            allocation = policies.make(name, seed=3).allocate(view, requests)
        except (InfeasibleRequest, InsufficientResources):
            smallest = min(
                sum(1 for o in view.osts if o.usable and (not c.pool or c.pool in o.pools))
                for r in requests
                for c in r.layout.components[: r.layout.covered(r.size_bytes)]
                if c.stripe_count
            )
            assert smallest < 4, "refused although every component has OSTs enough"
            return
        check(view, requests, allocation, distinct=True)
        assert allocation.policy == name
        assert allocation.ost_cost >= allocation.ost_cost_bound * (1 - 1e-9)

    @PROFILE
    @given(problem=problems())
    def test_same_seed_same_answer(self, name: str, problem: tuple[SystemView, list[CreateRequest]]) -> None:
        view, requests = problem
        try:
            answers = [policies.make(name, seed=5).allocate(view, requests).files for _ in range(2)]
        except (InfeasibleRequest, InsufficientResources):
            return
        assert answers[0] == answers[1]

    def test_nothing_to_place(self, name: str, make) -> None:
        assert policies.make(name).allocate(make.view(), []).files == ()

    def test_more_stripes_than_osts_is_never(self, name: str, make) -> None:
        with pytest.raises(InfeasibleRequest, match=r"expected 9 OSTs.*found 8"):
            policies.make(name).allocate(make.view(8), [make.plain(9, GIB)])

    def test_unknown_pool_is_never(self, name: str, make) -> None:
        with pytest.raises(InfeasibleRequest, match="pool 'flash' of lustre"):
            policies.make(name).allocate(make.view(8), [make.plain(1, GIB, pool="flash")])

    def test_object_larger_than_any_ost_is_never(self, name: str, make) -> None:
        with pytest.raises(InfeasibleRequest, match=r"OSTs of 200\.0 GiB or more"):
            policies.make(name).allocate(make.view(8), [make.plain(1, 200 * GIB)])

    def test_osts_that_are_out_make_it_later(self, name: str, make) -> None:
        view = make.view(8, each=lambda i: {"no_create": True} if i == 5 else {})
        with pytest.raises(
            InsufficientResources, match=r"expected 8 usable OSTs.*found 7.*5 \(refusing: no_create\)"
        ):
            policies.make(name).allocate(view, [make.plain(8, GIB)])

    def test_no_usable_ost_is_later(self, name: str, make) -> None:
        view = make.view(4, each=lambda i: {"active": False})
        with pytest.raises(InsufficientResources):
            policies.make(name).allocate(view, [make.plain(1, GIB)])

    def test_full_osts_make_it_later(self, name: str, make) -> None:
        view = make.view(4, each=lambda i: {"used": 100 * GIB - 4 * MIB})
        with pytest.raises(InsufficientResources):
            policies.make(name).allocate(view, [make.plain(2, GIB)])

    def test_degraded_osts_are_used_last(self, name: str, make) -> None:
        view = make.view(8, each=lambda i: {"degraded": i in (2, 6)})
        few = policies.make(name).allocate(view, [make.plain(3, 64 * MIB)] * 4)
        assert not {2, 6} & {i for f in few.files for osts in f.osts for i in osts}
        if name != "lsa":
            all_eight = policies.make(name).allocate(view, [make.plain(8, 64 * MIB)])
            assert set(all_eight.files[0].osts[0]) == set(range(8))


@pytest.mark.parametrize("name", ("tarazu", "random", "round-robin", "greedy"))
def test_promises_and_reserve_are_respected(name: str, make) -> None:
    view = make.view(6, each=lambda i: {"used": 90 * GIB, "promised_bytes": 7 * GIB if i < 3 else 0})
    allocation = policies.make(name).allocate(view, [make.plain(1, 2 * GIB)] * 12)
    placed = quality.ost_bytes(view, [make.plain(1, 2 * GIB)] * 12, allocation.files)
    weights = Weights()
    assert all(placed[o.index] <= room_bytes(o, weights) for o in view.osts)
    assert sum(placed.values()) == 24 * GIB
    with pytest.raises(InsufficientResources, match="after reserve and promises"):
        policies.make(name).allocate(view, [make.plain(1, 2 * GIB)] * 16)
    with pytest.raises(InsufficientResources, match="no room at all on OST 0-2"):
        policies.make(name).allocate(view, [make.plain(4, 16 * GIB)])


@PROFILE
@given(problem=problems())
def test_no_policy_beats_a_bound(problem: tuple[SystemView, list[CreateRequest]]) -> None:
    view, requests = problem
    requests = [r for r in requests if r.size_bytes >= 64 * MIB]
    for name in DISTINCT:
        try:
            files = policies.make(name, seed=3).allocate(view, requests).files
        except (InfeasibleRequest, InsufficientResources):
            continue
        placed = quality.ost_bytes(view, requests, files)
        if not sum(placed.values()):
            continue
        reached = quality.ost_cost(placed)
        slack = 1 - 1e-6
        assert reached >= proof.utilization_bound(view, requests) * slack
        assert quality.final_fill(view, placed) >= bounds.fill_bound(view, requests) * slack
        assert quality.completion_time_s(view, placed) >= bounds.time_bound(view, requests) * slack
        assert quality.oss_cost(view, placed) >= bounds.oss_bound(view, requests) * slack
        assert quality.oss_cost(view, placed) >= proof.oss_bound(view, requests, reached) * slack


def test_unknown_policy_is_named() -> None:
    with pytest.raises(ConfigError, match="one of tarazu"):
        policies.make("best")


def test_equal_stripes_reach_the_lowest_possible_maximum() -> None:
    random = Random(1)
    for case in range(1000 if OFTEN else 250):
        osts = random.randint(2, 100)
        per_server = random.randint(1, 10)
        targets = tuple(Ost(i, f"oss{i // per_server}", 10**13, 10**13, 10**13) for i in range(osts))
        view = SystemView("lustre", 0.0, targets)
        stripes = random.randint(1, min(osts, 12))
        files = random.randint(1, 60)
        request = CreateRequest(stripes * 64 * MIB, Layout((Component(0, EOF, MIB, stripes),)))
        allocation = policies.make("tarazu", seed=case).allocate(view, [request] * files)
        placed = quality.ost_bytes(view, [request] * files, allocation.files)
        assert max(placed.values()) == ceil(files * stripes / osts) * 64 * MIB, (osts, stripes, files)
        assert allocation.ost_cost == pytest.approx(allocation.ost_cost_bound, rel=1e-9)


def test_equal_osts_share_first_stripes_over_time(make) -> None:
    policy = policies.make("tarazu")
    view = make.view(8)
    firsts = [policy.allocate(view, [make.plain(2, GIB)]).files[0].osts[0][0] for _ in range(32)]
    assert {firsts.count(i) for i in range(8)} == {4}


def test_first_stripes_within_one_request_are_spread(make) -> None:
    view = make.view(8)
    files = policies.make("tarazu").allocate(view, [make.plain(4, GIB)] * 16).files
    firsts = [f.osts[0][0] for f in files]
    assert max(firsts.count(i) for i in range(8)) <= 4


def test_stripes_of_a_file_spread_over_servers(make) -> None:
    view = make.view(16, per_server=4)
    for file in policies.make("tarazu").allocate(view, [make.plain(4, GIB)] * 8).files:
        assert len({i // 4 for i in file.osts[0]}) >= 3


def test_overstriped_component_uses_every_ost_before_one_twice(make) -> None:
    component = Component(0, EOF, MIB, 11, pattern="overstriped")
    request = CreateRequest(11 * 64 * MIB, Layout((component,)))
    (file,) = policies.make("tarazu").allocate(make.view(4), [request]).files
    assert sorted(file.osts[0].count(i) for i in range(4)) == [2, 3, 3, 3]


def test_components_beyond_the_forecast_get_rotating_hints_on_the_emptier_osts(make) -> None:
    view = make.view(8, each=lambda i: {"used": i * 10 * GIB})
    files = policies.make("tarazu").allocate(view, [make.progressive(32 * MIB)] * 8).files
    hints = [osts for f in files for osts in f.osts[1:]]
    assert all(len(h) == 1 for h in hints)
    assert {h[0] for h in hints} <= {0, 1, 2, 3}
    assert len({h[0] for h in hints}) == 4


class TestEachCostTermMovesStripes:
    """One term differs between two otherwise equal halves of the OSTs; the other half must get more."""

    def shares(self, make, each, servers: tuple[Oss, ...] = ()) -> tuple[int, int]:
        view = make.view(8, each=each)
        view = SystemView("lustre", 0.0, view.osts, servers or view.osses)
        requests = [make.plain(2, 128 * MIB)] * 64
        placed = quality.ost_bytes(view, requests, policies.make("tarazu").allocate(view, requests).files)
        return sum(placed[i] for i in range(4)), sum(placed[i] for i in range(4, 8))

    def test_without_any_difference_both_halves_are_equal(self, make) -> None:
        first, second = self.shares(make, lambda i: {})
        assert first == second

    def test_fill(self, make) -> None:
        first, second = self.shares(make, lambda i: {"used": 60 * GIB if i < 4 else 0})
        assert 0.8 * second < first < 0.95 * second

    def test_fill_that_differs_by_less_than_lustre_minds(self, make) -> None:
        first, second = self.shares(make, lambda i: {"used": 15 * GIB if i < 4 else 0})
        assert 0.97 * second < first <= second

    def test_speed(self, make) -> None:
        first, second = self.shares(make, lambda i: {"write_bytes_per_s": 1e8 if i < 4 else 4e8})
        assert first == pytest.approx(second / 4, rel=0.1)

    def test_latency_where_speed_is_unknown(self, make) -> None:
        first, second = self.shares(make, lambda i: {"write_latency_s": 0.08 if i < 3 else 0.01})
        assert first < 0.6 * second

    def test_promises(self, make) -> None:
        first, second = self.shares(make, lambda i: {"promised_bytes": GIB if i < 4 else 0})
        assert second - first == pytest.approx(4 * GIB, rel=0.1)

    def test_oss_load(self, make) -> None:
        servers = (Oss("oss0", cpu_load=1.0), Oss("oss1"))
        first, second = self.shares(make, lambda i: {}, servers)
        assert first == pytest.approx(second / 2, rel=0.15)

    def test_degraded(self, make) -> None:
        first, second = self.shares(make, lambda i: {"degraded": i < 4})
        assert first == 0 < second

    def test_ceiling_leaves_the_fullest_half_of_what_it_has_left(self, make) -> None:
        view = make.view(8, each=lambda i: {"used": (90 if i == 0 else 10) * GIB})
        requests = [make.plain(1, GIB)] * 64
        placed = quality.ost_bytes(view, requests, policies.make("tarazu").allocate(view, requests).files)
        assert placed[0] <= 5 * GIB  # of the 10 that are left

    def test_oss_balance(self) -> None:
        """One file of two stripes on two servers of different width: one stripe on each."""
        view = SystemView(
            "lustre", 0.0, tuple(Ost(i, "a" if i < 4 else "b", 10**12, 10**12, 10**12) for i in range(8))
        )
        request = CreateRequest(GIB, Layout((Component(0, EOF, MIB, 2),)))
        for seed in range(8):
            (file,) = policies.make("tarazu", seed=seed).allocate(view, [request]).files
            assert {i // 4 for i in file.osts[0]} == {0, 1}


def test_more_than_the_whole_file_system_is_never(make) -> None:
    with pytest.raises(InfeasibleRequest, match=r"expected space for 900\.0 GiB, found OSTs of 800\.0 GiB"):
        policies.make("tarazu").allocate(make.view(8), [make.plain(1, 90 * GIB)] * 10)


def test_nearly_equal_osts_get_the_exact_search_too(make) -> None:
    """Files of 3 and 2 GiB: 7 x 3 and 4 x 2 on 5 OSTs; a little difference in fill changes nothing."""
    requests = [make.plain(1, 3 * GIB)] * 7 + [make.plain(1, 2 * GIB)] * 4
    for used in (0, GIB // 8):
        view = make.view(5, each=lambda i, used=used: {"used": i * used})
        assert policies.make("tarazu").allocate(view, requests).ost_cost == pytest.approx(6 * 5 / 29)


@PROFILE
@given(
    start=st.sampled_from((0, 64 * MIB, GIB)),
    length=st.sampled_from((64 * MIB, GIB, None)),
    stripe_size=st.sampled_from((64 * KIB, MIB, 3 * MIB)),
    stripes=st.integers(1, 9),
    beyond=st.lists(st.integers(1, 5 * GIB), min_size=8, max_size=12),
)
def test_object_sizes_of_many_files_at_once_are_those_of_each(
    start: int, length: int | None, stripe_size: int, stripes: int, beyond: list[int]
) -> None:
    component = Component(start, EOF if length is None else start + length, stripe_size, stripes)
    sizes = [start + b for b in beyond]
    assert _object_bytes(component, sizes) == [component_object_bytes(component, size) for size in sizes]
