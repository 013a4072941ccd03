"""Which OST is slow: disks that are held, busy, shared, rebuilt, of other kinds, under one load and another."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from tarazu.stats import peers
from tarazu.stats.evidence import MAX_SILENCE_S
from tarazu.stats.slow_osts import SlowOstFinder
from tarazu.units import GIB, KIB, MIB
from tarazu.wire.reports import IoCounters, OstReport
from tests.stats.watched import Watched

INTERVAL_S = 60.0
INTERVALS = 3
SICK = 3


class Ost:
    """A target on one disk: an I/O takes a seek and its transfer, and waits for those before it in the queue."""

    def __init__(
        self,
        index: int,
        bytes_per_s: float = 200e6,
        seek_s: float = 0.004,
        channels: int = 1,
        source: str = "brw_stats",
    ) -> None:
        self.index, self.source = index, source
        self.bytes_per_s, self.seek_s, self.channels = bytes_per_s, seek_s, channels
        self.held = 1.0
        """How many times slower than it was made."""
        self.nonrotational: bool | None = None
        self.reads, self.writes = [0] * 5, [0] * 5
        self.random = random.Random(index)

    def io(
        self, ios: int, size: int = 4 * MIB, depth: int = 1, reads: bool = False, noise: float = 0.3
    ) -> None:
        """Let it serve `ios` of `size` bytes, `depth` at a time."""
        alone_s = self.held * (self.seek_s + size / self.bytes_per_s) * max(1.0, depth / self.channels)
        taken_s = sum(alone_s * self.random.lognormvariate(-(noise**2) / 2, noise) for _ in range(ios))
        counts = self.reads if reads else self.writes
        for i, more in enumerate((ios, ios * size, round(taken_s * 1e6), ios * depth, ios)):
            counts[i] += more

    def report(self) -> OstReport:
        reads, writes = IoCounters(self.source, *self.reads), IoCounters(self.source, *self.writes)
        return OstReport(
            "lustre", self.index, GIB, GIB, GIB, reads=reads, writes=writes, nonrotational=self.nonrotational
        )


class Site(Watched[Ost]):
    """12 OSTs on 4 servers."""

    def __init__(self, count: int = 12, per_server: int = 3) -> None:
        self.servers = {i: f"oss{i // per_server}" for i in range(count)}
        self.pools: Mapping[int, Sequence[str]] = {}
        super().__init__([Ost(i) for i in range(count)], INTERVAL_S)

    def run(self, ios: int = 60, size: int = 4 * MIB, times: int = INTERVALS, reads: bool = False) -> None:
        for _ in range(times):
            for ost in self.osts:
                ost.io(ios, size, reads=reads)
            self.tick()

    def relative(self) -> dict[int, float]:
        estimates = self.finder.estimates(self.pools, self.servers)
        return {index: estimate.relative for index, estimate in estimates.items()}

    def slow(self) -> set[int]:
        return {index for index, relative in self.relative().items() if relative < 1}


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize("times", [3, 10, 50])
def test_a_held_disk_is_noticed_in_proportion(site: Site, times: int) -> None:
    site.osts[SICK].held = times
    site.run(times=10 if times == 3 else 2)
    assert site.slow() == {SICK}
    assert site.relative()[SICK] == pytest.approx(1 / times, rel=0.25)


@pytest.mark.parametrize("size", [4 * KIB, 64 * KIB])
@pytest.mark.parametrize("reads", [False, True])
def test_small_ios_show_a_slow_disk(site: Site, size: int, reads: bool) -> None:
    site.osts[SICK].held = 10
    site.run(size=size, reads=reads)
    assert site.slow() == {SICK}


def test_reads_alone_show_a_slow_disk(site: Site) -> None:
    site.osts[SICK].held = 10
    site.run(reads=True)
    assert site.slow() == {SICK} and site.relative()[SICK] == pytest.approx(0.1, rel=0.25)


def test_a_disk_that_is_slow_on_reads_only_is_slow(site: Site) -> None:
    site.run()
    site.osts[SICK].held = 10
    site.run(reads=True)
    assert site.slow() == {SICK}


@pytest.mark.parametrize("size", [4 * KIB, 64 * KIB, 256 * KIB])
def test_small_ios_beside_large_ones_are_not_slowness(site: Site, size: int) -> None:
    for _ in range(INTERVALS):
        for ost in site.osts:
            ost.io(60, size if ost.index in (SICK, 4, 5) else 4 * MIB)
        site.tick()
    assert site.slow() == set()


def test_peers_whose_few_reads_had_many_writes_beside_make_no_queue_slow(site: Site) -> None:
    for _ in range(3 * INTERVALS):
        for ost in site.osts:
            deep = ost.index in (SICK, 4)
            ost.io(400 if deep else 1, 4 * KIB, depth=64 if deep else 1, reads=True)
            ost.io(100)
        site.tick()
        assert site.slow() == set()
    site.osts[SICK].held = 20
    site.run(size=4 * KIB, reads=True)
    assert site.slow() == {SICK}


def test_sync_heavy_writers_are_not_slow_and_a_slow_one_is(site: Site) -> None:
    # Each small write waits for the disk's own cache to be emptied: two more revolutions.
    def write_everywhere() -> None:
        for _ in range(INTERVALS):
            for ost in site.osts:
                synced = ost.index in (SICK, 4)
                ost.seek_s = 0.012 if synced else 0.004
                ost.io(200 if synced else 60, 4 * KIB if synced else 4 * MIB)
            site.tick()

    write_everywhere()
    assert site.slow() == set()
    site.osts[SICK].held = 20
    write_everywhere()
    assert site.slow() == {SICK}


@pytest.mark.parametrize("channels", [1, 32], ids=["disk", "flash"])
@pytest.mark.parametrize(
    "busy", [{SICK}, set(range(12)) - {SICK}, {SICK, 4, 5, 6, 7, 8}], ids=["one", "others", "half"]
)
def test_a_busy_healthy_disk_beside_idle_ones_is_not_slow(site: Site, channels: int, busy: set[int]) -> None:
    for ost in site.osts:
        ost.channels = channels
    for _ in range(INTERVALS):
        for ost in site.osts:
            ost.io(600 if ost.index in busy else 15, depth=32 if ost.index in busy else 1)
        site.tick()
    assert site.slow() == set()


@pytest.mark.parametrize("depth", [1, 32])
def test_a_slow_disk_is_slow_under_any_load(site: Site, depth: int) -> None:
    site.osts[SICK].held = 20
    for _ in range(INTERVALS):
        for ost in site.osts:
            ost.io(30, depth=depth if ost.index == SICK else 2)
        site.tick()
    assert site.slow() == {SICK}


def test_idle_osts_are_not_slow_and_a_verdict_outlives_the_clock(site: Site) -> None:
    for _ in range(2):
        for ost in site.osts[:6]:
            ost.held = 20 if ost.index == SICK else 1
            ost.io(60)
        site.tick()
    assert set(site.relative()) == set(range(6)) and site.slow() == {SICK}
    for later in (30 * 86400, -365 * 86400):
        site.now += later
        site.tick()
        assert site.slow() == {SICK}
    for ost in site.osts[:6]:
        ost.held = 1
    site.run(times=2)
    assert site.slow() == set()


def test_a_well_disk_is_back_after_two_intervals(site: Site) -> None:
    site.osts[SICK].held = 50
    site.run()
    site.osts[SICK].held = 1
    site.run(times=1)
    assert site.slow() == {SICK}
    site.run(times=1)
    assert site.slow() == set()


def test_an_array_is_slow_while_its_rebuild_slows_it(site: Site) -> None:
    # md's own counters hold the OST's I/Os only; the rebuild goes to the member disks.
    for ost in site.osts:
        ost.source = "diskstats"
    site.osts[SICK].held = 6
    site.run()
    assert site.slow() == {SICK} and site.relative()[SICK] == pytest.approx(1 / 6, rel=0.25)
    site.osts[SICK].held = 1
    site.run()
    assert site.slow() == set()


def device(ost: int, own: int, others: int, busy_ms: int, io_ms: float) -> OstReport:
    """Counters of `diskstats`: `own` writes of 1 MiB, and reads of someone else."""
    writes, reads = (
        IoCounters(
            "diskstats", ios, ios * MIB, round(ios * io_ms * 1e3), round((own + others) * io_ms), busy_ms
        )
        for ios in (own, others)
    )
    return OstReport(
        "lustre", ost, GIB, GIB, GIB, reads=reads, writes=writes, write_bytes=own * MIB, write_samples=own
    )


@pytest.mark.parametrize(("io_ms", "slow"), [(8.0, set()), (80.0, {SICK})])
def test_others_on_the_device_count_as_far_as_they_slow_the_ost(io_ms: float, slow: set[int]) -> None:
    # A scrub reads 2,000 MiB from the OST's own device, politely or not; its writes take 8 ms elsewhere.
    finder = SlowOstFinder("lustre")
    for now, factor in ((0.0, 0), (60.0, 1), (120.0, 2)):
        for ost in range(8):
            own, others, each = (100, 2000, io_ms) if ost == SICK else (100, 0, 8.0)
            busy = round((own + others) * each / 16) if ost == SICK else 800
            finder.update_server([device(ost, factor * own, factor * others, factor * busy, each)], now)
    estimates = finder.estimates()
    assert {i for i, e in estimates.items() if e.relative < 1} == slow


@pytest.mark.parametrize(("count", "per_server"), [(10, 5), (15, 5), (12, 3)])
def test_a_whole_slow_server_is_slow(count: int, per_server: int) -> None:
    site = Site(count, per_server)
    slow = set(range(per_server))
    for index in slow:
        site.osts[index].held = 10
    site.run()
    assert site.slow() == slow


def test_one_slow_disk_and_the_server_that_cannot_tell_its_disks_apart(site: Site) -> None:
    for ost in site.osts:
        ost.source = "ost_io"
        ost.held = 10 if ost.index // 3 == 1 else 1
    site.run()
    assert site.slow() == {3, 4, 5}


def mixed() -> Site:
    """10 healthy disk OSTs on 2 servers beside 20 of flash on 4."""
    site = Site(30, 5)
    for ost in site.osts[10:]:
        ost.bytes_per_s, ost.seek_s = 3e9, 0.0001
    return site


@pytest.mark.parametrize("known", ["pools", "overlapping", "one pool", "kind", "nothing"])
def test_disks_beside_flash_are_not_slow(known: str) -> None:
    site = mixed()
    disk, flash, everything = ("disk",), ("flash",), ("all",)
    if known == "pools":
        site.pools = {i: disk if i < 10 else flash for i in range(30)}
    elif known == "overlapping":
        site.pools = {i: everything + (disk if i < 10 else flash) for i in range(30)}
    elif known == "one pool":
        site.pools = dict.fromkeys(range(10, 30), flash)
    elif known == "kind":
        for ost in site.osts:
            ost.nonrotational = ost.index >= 10
    site.run()
    assert site.slow() == set()
    site.osts[SICK].held, site.osts[15].held = 20, 400 if known == "nothing" else 20
    site.run()
    assert site.slow() == {SICK, 15}, "one of each kind; unless it is told, flash as slow as a disk is a disk"


def test_values_of_different_sources_are_not_compared(site: Site) -> None:
    for ost in site.osts[:4]:
        ost.source, ost.held = "ost_io", 20
    site.run()
    assert site.slow() == set()


def test_reset_counters_are_no_new_speed(site: Site) -> None:
    site.run()
    for ost in site.osts:
        ost.reads, ost.writes = [0] * 5, [0] * 5
    site.run(times=2)
    assert site.slow() == set() and len(site.relative()) == 12


def test_a_source_that_comes_back_starts_anew(site: Site) -> None:
    site.run()
    for source in ("diskstats", "brw_stats"):
        for ost in site.osts:
            ost.source = source
        site.run(times=1)
        assert site.slow() == set()


def test_noise_of_busy_healthy_disks_is_no_sickness() -> None:
    # 24 I/Os whose times vary by 1.5 times their mean, as captured; a thousand OSTs.
    site = Site(1000, 8)
    for ost in site.osts:
        ost.io(24, noise=1.1)
    site.tick()
    assert len(site.slow()) <= 10
    site.run(times=1)
    site.run(times=1)
    assert len(site.slow()) <= 1


class SharedDisks(Site):
    """As `Site`, all OSTs of a server on its one disk."""

    def tick(self) -> None:
        for server in sorted(set(self.servers.values())):
            here = [o for o in self.osts if self.servers[o.index] == server]
            self.finder.update_server(
                [msgspec.structs.replace(o.report(), disk="sdb") for o in here], self.now
            )
        self.now += INTERVAL_S

    def hold(self, server: int, times: float) -> None:
        for ost in self.osts:
            ost.held = times if self.servers[ost.index] == f"oss{server}" else 1

    def write(self, osts: Sequence[int], ios: int = 24, noise: float = 0.3) -> None:
        for i in osts:
            self.osts[i].io(ios, noise=noise)
        self.tick()


@pytest.fixture
def shared() -> SharedDisks:
    return SharedDisks(35, 5)


ONE_OF_FIVE = tuple(range(0, 35, 5))


@pytest.mark.parametrize("times", [3, 10, 50])
def test_osts_of_a_held_disk_that_showed_nothing_are_slow_too(shared: SharedDisks, times: int) -> None:
    shared.hold(2, times)
    for _ in range(10 if times == 3 else 2):
        shared.write([o + more for o in ONE_OF_FIVE for more in (0, 1)])
    assert shared.slow() == set(range(10, 15))


@pytest.mark.parametrize("times", [3, 10, 50])
def test_osts_that_were_well_on_a_disk_that_is_held_now_are_slow_too(shared: SharedDisks, times: int) -> None:
    for _ in range(INTERVALS):
        shared.write(range(35))
    assert shared.slow() == set()
    shared.hold(2, times)
    for _ in range(10 if times == 3 else 2):
        shared.write([o + more for o in ONE_OF_FIVE for more in (0, 1)])
    assert shared.slow() == set(range(10, 15))
    if times > 3:  # at a third of its speed, one writer where there were two explains it
        shared.hold(2, 1)
        for _ in range(3):
            shared.write(ONE_OF_FIVE)
        assert shared.slow() == set(), "one OST's probe speaks for the disk"


def test_a_third_of_the_speed_shows_in_few_noisy_ios_of_each_ost() -> None:
    # 12 I/Os on each of five OSTs, whose times vary by 1.5 times their mean: too few of each, enough of the disk.
    noticed, falsely = 0, 0
    for seed in range(30):
        site = SharedDisks(35, 5)
        for ost in site.osts:
            ost.random.seed(f"{seed}.{ost.index}")
        site.hold(2, 3.5)
        for _ in range(8):
            site.write(range(35), 12, noise=1.1)
            site.slow()
        noticed += set(range(10, 15)) <= site.slow()
        falsely += bool(site.slow() - set(range(10, 15)))
    assert noticed >= 24 and falsely <= 2


def test_one_slow_volume_does_not_make_its_neighbours_on_the_disk_slow(shared: SharedDisks) -> None:
    shared.osts[12].held = 30
    for _ in range(INTERVALS):
        shared.write(range(35))
    assert shared.slow() == {12}


def test_a_week_of_silence_is_no_evidence(shared: SharedDisks) -> None:
    site = Site()
    for watched in (shared, site):
        watched.tick()
        watched.osts[SICK].held = 50
        for ost in watched.osts:
            ost.io(1000)
        watched.now += 7 * 86400
        watched.tick()
        assert watched.relative() == {}
        watched.osts[SICK].held = 1
        watched.run(times=1)
        assert watched.slow() == set()


def test_a_device_on_another_server_is_counted_from_when_its_ost_came_there(site: Site) -> None:
    # After a failover `diskstats` is of another node, where the device was busy before.
    def at(index: int, start_s: float, ios: int, ms: int) -> OstReport:
        io = IoCounters("diskstats", ios, ios * MIB, ios * ms * 1000, start_s=start_s)
        return OstReport("lustre", index, GIB, GIB, GIB, writes=io)

    for second, ios in enumerate((0, 100, 200)):
        for index in range(6):
            moved = index == SICK and second
            report = at(index, 2.0, 9000, 500) if moved else at(index, 1.0, ios, 8)
            site.finder.update_server([report], float(second))
    assert all(e.relative == 1 for e in site.finder.estimates().values())


def test_references_of_no_or_one_ost() -> None:
    assert peers.references({}, {}) == {}
    assert peers.references({7: 2.0}, {}) == {7: 2.0}
    assert peers.references({1: 1.0, 2: 1.0, 3: 5.0}, {1: "a", 2: "a", 3: "b"})[1] == 1.0, "an odd one"
    assert peers.references({1: 1.0, 2: 1.0, 3: 100.0}, {1: "a", 2: "a", 3: "b"})[1] == 100.0
    assert peers.groups([7], {}) == []
    assert peers.groups([1, 2, 3], {1: ("a",), 2: ("a",), 3: ("b",)}) == [[1, 2], [1, 2, 3]]


def test_osts_that_are_gone_while_they_waited_hold_up_no_verdict(site: Site) -> None:
    gone = [msgspec.structs.replace(ost.report(), waiting_s=30.0, waiting_ios=4) for ost in site.osts[5:]]
    site.finder.update_server(gone, site.now)
    del site.osts[5:]
    site.osts[SICK].held = 10
    site.run(times=2)
    assert site.slow() == set(), "all storage may stand still"
    site.now += MAX_SILENCE_S
    site.run(times=INTERVALS)
    assert site.slow() == {SICK}
