"""Generated disks serve one I/O after another, and are slow when and as far as they are told to be."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.evidence import _judging
from tests.benchmarks.evidence._disks import Counters, Floats, Ios, Pace, play
from tests.benchmarks.evidence._incidents import DEPTH, SICK, SYSTEMS, WELL, Site

END_S = 600.0
NEVER = {0: Pace(np.array([0.0]), np.array([1.0]))}


def load(osts: int, seed: int = 1) -> tuple[Ios, Floats]:
    """(I/Os, and how long each takes alone)."""
    random = np.random.default_rng(seed)
    count = 300 * osts
    ios = Ios(
        random.integers(0, osts, count),
        random.uniform(0, END_S, count),
        np.full(count, float(1 << 20)),
        np.ones(count, bool),
    )
    return ios, random.exponential(1.5, count)


def test_many_disks_at_once_are_as_each_alone() -> None:
    ios, service_s = load(3)
    depth = np.full(3, DEPTH)
    _, written = play(ios, service_s, np.zeros(len(service_s)), np.inf, NEVER, depth)
    counters = Counters(3, np.ones(3, bool))
    at_s = np.tile(np.arange(60.0, END_S, 60.0), (3, 1))
    reports = list(counters.reports((play(ios, service_s, service_s, 0.0, {}, depth)[0], written), at_s))
    for index in range(3):
        mine = np.flatnonzero(ios.ost == index)
        mine = mine[np.argsort(ios.at_s[mine], kind="stable")]
        free, begun, ended = -np.inf, list[float](), list[float]()
        for n, (at, lasts_s) in enumerate(zip(ios.at_s[mine].tolist(), service_s[mine].tolist())):
            begin = at if n < DEPTH else max(at, ended[n - DEPTH])
            free = max(begin, free) + lasts_s
            begun.append(begin)
            ended.append(free)
        for k, now_s in enumerate(at_s[index].tolist()):
            writes = reports[k][index].writes
            assert writes and writes.ios == sum(e <= now_s for e in ended)
            assert reports[k][index].write_samples == sum(b <= now_s for b in begun)


def test_a_disk_that_stands_still_ends_nothing_meanwhile() -> None:
    ios, service_s = load(1)
    pace = Pace(np.array([0.0, 100.0, 200.0]), np.array([1.0, 0.0, 1.0]))
    _, written = play(ios, service_s / 100, service_s, END_S, {0: pace}, np.array([8]))
    assert not ((written.ended > 100.001) & (written.ended < 200)).any()
    assert len(written.ended) == len(ios.ost)


@pytest.mark.parametrize("factor", [2.0, 20.0])
def test_a_slow_disk_takes_as_many_times_longer(factor: float) -> None:
    ios, service_s = load(1)
    service_s = np.full(len(service_s), 1e-3)
    pace = Pace(np.array([0.0, 300.0]), np.array([1.0, 1 / factor]))
    _, written = play(ios, service_s, service_s, END_S, {0: pace}, np.array([8]))
    taken = written.ended - written.begun
    assert np.median(taken[written.begun < 299]) == pytest.approx(1e-3, rel=1e-3)
    assert np.median(taken[written.begun > 301]) == pytest.approx(factor * 1e-3, rel=1e-2)


def test_a_site_is_the_same_again_with_its_seed() -> None:
    once, again = (Site(SYSTEMS[35], 7).stretch("two") for _ in range(2))
    assert once.incident == again.incident and once.rounds[-1] == again.rounds[-1]


def test_every_kind_of_incident_concerns_osts_that_have_io() -> None:
    site = Site(SYSTEMS[35], 8)
    for kind in (*SICK, *WELL):
        stretch = site.stretch(kind)
        assert stretch.incident.osts and stretch.incident.sick == (
            stretch.incident.osts if kind in SICK else frozenset()
        )
        assert sum(stretch.busy.values()) > 0
        before, after = stretch.rounds[0][1], stretch.rounds[-1][1]
        assert all(
            b.write_bytes <= a.write_bytes and b.read_bytes <= a.read_bytes for b, a in zip(before, after)
        )


def test_the_rule_of_another_project_sees_a_grave_one() -> None:
    task = _judging.Task(35, 9, ("rack",) * 3, (_judging.BROKER,), warm_up=2)
    found = [o for o in _judging.live(task) if o.factor > 10]
    assert sum(len(o.delays_s) for o in found) > 0
