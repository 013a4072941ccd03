"""A sick OST is known from its counters alone, gets what it can carry, and is back soon after it recovers."""

from __future__ import annotations

import msgspec
import pytest

from tarazu.allocate import bounds, quality
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout
from tarazu.sim import badost
from tarazu.sim.allocation import policies
from tarazu.units import MIB
from tests.allocate import relearn

SICK = 14


@pytest.fixture(scope="module")
def log() -> badost.Log:
    return badost.load()


@pytest.fixture
def site(log: badost.Log) -> relearn.Site:
    """After run 1, which Lustre's own allocator placed."""
    site = relearn.Site(log)
    assert all(ost.write_bytes_per_s is None for ost in site.view().osts)
    site.replay()
    return site


def share(placed: dict[int, int]) -> float:
    """Bytes on the sick OST over the mean of the others."""
    others = [size for ost, size in placed.items() if ost != SICK]
    return placed[SICK] * len(others) / sum(others)


def test_the_replayed_counters_hold_the_whole_log(site: relearn.Site, log: badost.Log) -> None:
    writes = {report.osts[0].index: report.osts[0].writes for report, _ in site.views.servers().values()}
    assert sum(io.bytes for io in writes.values() if io) == sum(f.size_bytes for f in log.files)
    assert sum(io.ios for io in writes.values() if io) == sum(f.writes for f in log.files)
    usecs = {index: io.usecs for index, io in writes.items() if io}
    assert usecs[SICK] > 30 * max(v for i, v in usecs.items() if i != SICK)


def test_healthy_osts_are_equal_and_the_sick_one_is_not(site: relearn.Site) -> None:
    speeds = {o.index: o.write_bytes_per_s for o in site.view().osts}
    sick = speeds.pop(SICK)
    assert sick is not None
    assert len(set(speeds.values())) == 1
    assert sick < speeds[0] / 30


def test_the_second_run_takes_seconds_instead_of_minutes(site: relearn.Site, log: badost.Log) -> None:
    bound = bounds.time_bound(badost.view(log), site.requests)
    placed, seconds = site.run()
    assert sum(placed.values()) == 2048 * 256 * MIB
    assert bound <= seconds <= 20
    lsa = policies.make("lsa").allocate(site.view(), site.requests)
    assert relearn.completion_s(quality.ost_bytes(site.view(), site.requests, lsa.files), site.speeds) > 700


@pytest.mark.parametrize("sick_runs", [0, 1, 4])
def test_a_recovered_ost_has_its_share_within_three_runs(site: relearn.Site, sick_runs: int) -> None:
    for _ in range(sick_runs):
        placed, seconds = site.run()
        assert share(placed) < 0.05 and seconds <= 20
    site.recover(SICK)
    shares = [share(site.run()[0]) for _ in range(3)]
    assert shares[-1] >= 0.9


def test_an_ost_too_sick_for_any_stripe_is_back_after_a_few_small_objects(log: badost.Log) -> None:
    few = msgspec.structs.replace(log, files=log.files[:240])
    site = relearn.Site(log)
    site.replay()
    small = CreateRequest(MIB, Layout((Component(0, EOF, MIB, 1),)))
    site.requests = [*badost.requests(few), *[small] * 40]
    tried = [site.run()[0][SICK] for _ in range(20)]
    assert 0 < max(tried) <= 40 * MIB, "with small objects only"
    site.recover(SICK)
    shares = [share(site.run()[0]) for _ in range(20)]
    back = next(i for i, s in enumerate(shares) if s >= 0.9)
    assert back < 12 and all(s >= 0.9 for s in shares[back:])
