"""Files of one wave lie evenly on all OSTs, and so do the job's bytes."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.allocate import bounds, quality
from tarazu.allocate.flow import alternating
from tarazu.errors import TarazuError
from tarazu.model import CreateRequest, FilePlacement, Oss, Ost, SystemView
from tarazu.sim.allocation import policies
from tarazu.units import GIB, MIB, TIB
from tests.allocate.test_contract import PROFILE, check, problems

STEPS = [step for step in range(10) for _ in range(48)]
"""48 ranks, ten steps."""
WHOLE = 1.03
"""OST cost of all waves together."""


def osts(count: int, slow: tuple[int, ...] = ()) -> SystemView:
    targets = tuple(
        Ost(i, f"oss{i // 8}", 10 * TIB, 10 * TIB, 10 * TIB, write_bytes_per_s=5e8 if i in slow else 1e9)
        for i in range(count)
    )
    return SystemView("lustre", 0.0, targets, tuple(Oss(f"oss{i}") for i in range(-(-count // 8))))


def placed(
    view: SystemView, requests: list[CreateRequest], waves: list[int] | None, policy: str = "tarazu"
) -> tuple[FilePlacement, ...]:
    return policies.make(policy).allocate(view, requests, waves or ()).files


def of_waves(
    view: SystemView, requests: list[CreateRequest], files: tuple[FilePlacement, ...], waves: list[int]
) -> dict[int, dict[int, int]]:
    """Wave → bytes of its files on each OST."""
    members: dict[int, list[int]] = {}
    for i, wave in enumerate(waves):
        members.setdefault(wave, []).append(i)
    return {
        wave: quality.ost_bytes(view, [requests[i] for i in of], [files[i] for i in of])
        for wave, of in sorted(members.items())
    }


def highest_cost(waves: dict[int, dict[int, int]]) -> float:
    return max(map(quality.ost_cost, waves.values()))


def time_s(view: SystemView, waves: dict[int, dict[int, int]]) -> float:
    """When the last wave has been written, if each begins when the one before has ended."""
    return sum(quality.completion_time_s(view, placed) for placed in waves.values())


def sizes(kind: str) -> list[int]:
    random = Random(1)
    if kind == "alike":
        return [78_000_000] * len(STEPS)
    own = [int(78e6 * random.uniform(0.9, 1.1)) for _ in STEPS]
    return own if kind == "all differ" else [own[i % 48] for i in range(len(STEPS))]


@pytest.mark.parametrize("kind", ("alike", "of each rank", "all differ"))
def test_steps_of_a_writer_are_as_even_as_under_lustres_allocator(make, kind: str) -> None:
    view = osts(120)
    requests = [make.plain(8, size) for size in sizes(kind)]
    before, after, lsa = (
        placed(view, requests, waves, policy)
        for waves, policy in ((None, "tarazu"), (STEPS, "tarazu"), (None, "lsa"))
    )
    cost = {name: highest_cost(of_waves(view, requests, f, STEPS)) for name, f in
            (("before", before), ("after", after), ("lsa", lsa))}  # fmt: skip
    assert cost["before"] > 1.1 * cost["after"]
    assert cost["after"] <= cost["lsa"] * 1.02
    assert quality.ost_cost(quality.ost_bytes(view, requests, after)) <= WHOLE
    assert (
        time_s(view, of_waves(view, requests, after, STEPS))
        <= time_s(view, of_waves(view, requests, lsa, STEPS)) * 1.01
    )


def test_servers_of_each_step_are_even(make) -> None:
    view = osts(120)
    requests = [make.plain(8, 78_000_000)] * len(STEPS)
    for files, most in ((placed(view, requests, None), 99.0), (placed(view, requests, STEPS), 1.15)):
        costs = [quality.oss_cost(view, of) for of in of_waves(view, requests, files, STEPS).values()]
        assert max(costs) <= most


def test_a_slow_ost_gets_less_in_every_step(make) -> None:
    view = osts(120, slow=(7, 80))
    requests = [make.plain(8, 78_000_000)] * len(STEPS)
    files = placed(view, requests, STEPS)
    waves = of_waves(view, requests, files, STEPS)
    lsa = of_waves(view, requests, placed(view, requests, None, "lsa"), STEPS)
    assert time_s(view, waves) < 0.75 * time_s(view, lsa)
    assert all(of[7] <= 2 * 10 * MIB for of in waves.values())


def test_components_of_progressive_files(make) -> None:
    view = osts(120)
    requests = [make.progressive(200 * MIB, (1, 8))] * len(STEPS)
    before, after = placed(view, requests, None), placed(view, requests, STEPS)
    assert quality.ost_cost(quality.ost_bytes(view, requests, after)) <= WHOLE
    check(view, requests, policies.make("tarazu").allocate(view, requests, STEPS), distinct=True)
    cost = [highest_cost(of_waves(view, requests, f, STEPS)) for f in (before, after)]
    assert cost[1] <= cost[0]


def test_steps_of_different_widths(make) -> None:
    view = osts(64)
    waves = [wave for wave, files in enumerate((4, 100, 33, 57, 64, 1)) for _ in range(files)]
    requests = [make.plain(4, GIB)] * len(waves)
    files = placed(view, requests, waves)
    for number, of in of_waves(view, requests, files, waves).items():
        # Each OST has its share of the step's objects, rounded up, or one more.
        most = -(-4 * waves.count(number) // 64)
        assert max(of.values()) <= (most + (number not in (0, 5))) * 256 * MIB


def test_files_on_every_ost_have_nothing_to_exchange(make) -> None:
    view = osts(16)
    requests = [make.plain(16, GIB)] * 40
    files = placed(view, requests, [i // 4 for i in range(40)])
    assert all(sorted(f.osts[0]) == list(range(16)) for f in files)


def test_one_wave_is_what_no_wave_is(make) -> None:
    view = osts(48)
    requests = [make.plain(3, size) for size in (GIB, 2 * GIB, GIB + 1, 5 * MIB) * 9]
    assert placed(view, requests, None) == placed(view, requests, [3] * 36)


@PROFILE
@given(problem=problems(), data=st.data())
def test_files_of_waves_are_placed_as_others_are(
    problem: tuple[SystemView, list[CreateRequest]], data: st.DataObject
) -> None:
    view, requests = problem
    waves = data.draw(st.lists(st.integers(0, 4), min_size=len(requests), max_size=len(requests)))
    try:
        allocation = policies.make("tarazu", seed=3).allocate(view, requests, waves)
    except TarazuError:
        return
    check(view, requests, allocation, distinct=True)


@PROFILE
@given(
    osts_=st.integers(4, 40),
    stripes=st.integers(1, 4),
    widths=st.lists(st.integers(1, 12), min_size=2, max_size=8),
)
def test_waves_of_alike_files_take_no_longer(osts_: int, stripes: int, widths: list[int]) -> None:
    from tests.allocate.conftest import Make

    view = osts(osts_)
    waves = [wave for wave, width in enumerate(widths) for _ in range(width)]
    requests = [Make.plain(stripes, stripes * 64 * MIB)] * len(waves)
    before, after = placed(view, requests, None), placed(view, requests, waves)
    times = [time_s(view, of_waves(view, requests, f, waves)) for f in (before, after)]
    assert times[1] <= times[0] * (1 + 1e-9)


def test_alternating_takes_from_every_wave_in_equal_distances() -> None:
    waves = np.repeat([0, 1, 2], [12, 6, 6])
    order = alternating(waves)
    assert sorted(order.tolist()) == list(range(24))
    for start in range(0, 24, 4):
        assert np.bincount(waves[order][start : start + 4], minlength=3).tolist() == [2, 1, 1]
    assert alternating(np.full(5, 7)).tolist() == [0, 1, 2, 3, 4]


def test_waves_cost_little_beside_the_allocation(make) -> None:
    view = osts(960)
    random = Random(2)
    requests = [make.plain(8, int(78e6 * random.uniform(0.9, 1.1))) for _ in range(4_000)]
    seconds = []
    for waves in (None, [i // 400 for i in range(4_000)]):
        start = time.process_time()
        placed(view, requests, waves)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 6 * seconds[0] + 0.2


@pytest.mark.parametrize("stripes", (2, 4))
@pytest.mark.parametrize("waves", (None, [n // 16 for n in range(48)]))
def test_files_written_stripe_after_stripe_do_not_wait_for_one_another(make, stripes: int, waves) -> None:
    """Sixteen writers on sixteen OSTs: while each writes its first stripe, and each next one, every OST has one."""
    files = placed(osts(16), [make.plain(stripes, 24 * MIB)] * (16 if waves is None else 48), waves)
    for wave in range(0, len(files), 16):
        together = [placement.osts[0] for placement in files[wave : wave + 16]]
        for column in range(stripes):
            assert len({of[column] for of in together}) >= (16 if stripes == 2 else 12)


def test_no_wave_is_bounded_once_somebody_waits(make, monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 files of different sizes in 125 waves took 47 s, of which the bounds of waves took 42."""
    asked = []
    bound = bounds.utilization_of

    def counted(*args, **options):
        asked.append(args)
        return bound(*args, **options)

    monkeypatch.setattr(bounds, "utilization_of", counted)
    policy = policies.make("tarazu")
    policy.limit_s = -1.0
    requests = [make.plain(1, size) for size in sizes("all differ")]
    assert len(policy.allocate(osts(8), requests, STEPS).files) == len(requests)
    assert len(asked) == 1, "that of all together"
