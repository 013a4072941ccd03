"""A disk held at 500 KB/s, where 24 MiB are six I/Os of 8 s: seen before the first has ended, cleared by I/Os."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tarazu.stats.collector import Collector
from tarazu.stats.view import ViewBuilder
from tarazu.units import KIB, MIB
from tests.stats.conftest import put

BULK = 4 * MIB
OSTS = 4
SICK = 2


class Server:
    """One OST on a device of its own, as files of an OSS. Bulk writes are served one after another; `brw_stats`
    counts them at their ends, `obdfilter` at their beginnings; the device has them in flight in between.
    """

    def __init__(self, root: Path, index: int) -> None:
        self.root, self.ost = root, f"lustre-OST{index:04x}"
        self.collector = Collector(root, f"oss{index}")
        self.writes: list[tuple[float, float, float, int]] = []
        """(begin, beginning of service, end, size)."""
        self.pieces = 1
        """Requests of the device that a bulk write is split into."""
        put(root / f"sys/fs/lustre/osd-ldiskfs/{self.ost}/mntdev", "/dev/vdb")
        for size in ("kbytestotal", "kbytesfree", "kbytesavail"):
            put(root / f"sys/fs/lustre/obdfilter/{self.ost}/{size}", "1000000")

    def write(self, at: float, bytes_per_s: float, count: int = 6, size: int = BULK) -> None:
        """`count` writes at once."""
        free = self.writes[-1][2] if self.writes else at
        for _ in range(count):
            begin = max(at, free)
            free = begin + size / bytes_per_s
            self.writes.append((at, begin, free, size))

    def set(self, now: float) -> None:
        begun = [w for w in self.writes if w[0] <= now]
        ended = [w for w in begun if w[2] <= now]
        busy_ms = round(sum(min(now, end) - min(now, served) for _, served, end, _ in begun) * 1e3)
        taken_ms = [max(1, round((end - begin) * 1e3)) for begin, _, end, _ in ended]
        classes: dict[int, int] = {}
        for ms in taken_ms:
            label = 1 << (ms - 1).bit_length()
            classes[label] = classes.get(label, 0) + 1
        flights = [1 + sum(end > w[0] for *_, end, _ in begun[:at]) for at, w in enumerate(begun)]
        header = "reads   % cum % |  writes        % cum %"
        tables = {
            "pages per bulk r/w": {size // 4096: n for size, n in Counter(w[3] for w in ended).items()},
            "disk I/Os in flight": {n: flights[: len(ended)].count(n) for n in set(flights)},
            "I/O time (1/1000s)": classes,
            "disk I/O size": dict(Counter(w[3] for w in ended)),
        }
        text = f"snapshot_time: {now}\nstart_time: 1.0\nelapsed_time: {now - 1}\n"
        for title, rows in tables.items():
            text += f"\n{title:<22}{header}\n"
            text += "".join(
                f"{label}: 0 0 0 | {count} 0 0\n" for label, count in sorted(rows.items()) if count
            )
        put(self.root / f"sys/kernel/debug/lustre/osd-ldiskfs/{self.ost}/brw_stats", text)
        size = sum(w[3] for w in begun)
        put(
            self.root / f"sys/kernel/debug/lustre/obdfilter/{self.ost}/stats",
            f"snapshot_time {now} secs.nsecs\nstart_time 1.0 secs.nsecs\n"
            + (f"write_bytes {len(begun)} samples [bytes] 1 {BULK} {size}\n" if begun else "")
            + (f"write {len(begun)} samples [usecs] 1 9 {9 * len(begun)}\n" if begun else ""),
        )
        done = sum(
            int(self.pieces * min(1.0, (now - served) / (end - served)))
            for _, served, end, _ in begun
            if served < now
        )
        flight = min(8, self.pieces * len(begun) - done)
        put(
            self.root / "proc/diskstats",
            f"254 16 vdb 0 0 0 0 {done} 0 {done * BULK // self.pieces // 512} {sum(taken_ms)}"
            f" {flight} {busy_ms} {sum(taken_ms)} 0 0 0 0 0 0\n",
        )


class Site:
    def __init__(self, root: Path, interval_s: float) -> None:
        self.servers = [Server(root / f"oss{i}", i) for i in range(OSTS)]
        self.views, self.now, self.interval_s = ViewBuilder(1e9), 1000.0, interval_s

    def report(self) -> set[int]:
        """One interval later; what is sick then."""
        self.now += self.interval_s
        for i, server in enumerate(self.servers):
            at = self.now + i * self.interval_s / OSTS
            server.set(at)
            assert self.views.update(server.collector.collect(at), at)
        return {ost.index for ost in self.views.view("lustre", self.now + self.interval_s).osts if ost.sick}

    def job(self) -> float:
        """A rank on each OST, 24 MiB; when it began."""
        at = self.now + 0.6 * self.interval_s
        for i, server in enumerate(self.servers):
            server.write(at, 5e5 if i == SICK else 1e8)
        return at


@pytest.mark.parametrize("pieces", [1, 16], ids=["whole", "split"])
@pytest.mark.parametrize("interval_s", [2.0, 5.0, 10.0, 60.0])
def test_a_disk_whose_ios_take_8_s_is_seen_within_two_intervals_or_one_io(
    tmp_path: Path, interval_s: float, pieces: int
) -> None:
    site = Site(tmp_path, interval_s)
    for server in site.servers:
        server.pieces = pieces
    assert site.report() == set()
    began = site.job()
    while not (sick := site.report()):
        assert site.now < began + 2000
    assert sick == {SICK}
    assert site.now - began <= max(2 * interval_s, 8.4 + interval_s)


def test_a_disk_on_which_nothing_ends_is_seen_before_anything_has(tmp_path: Path) -> None:
    site = Site(tmp_path, 2.0)
    site.report()
    began = site.job()
    while not site.report():
        pass
    assert site.now - began < 8.3, "the first I/O takes 8.4 s"
    assert not any(w[2] <= site.now for w in site.servers[SICK].writes)


def test_a_few_objects_clear_a_disk_that_is_well_again_and_small_ios_do_not(tmp_path: Path) -> None:
    site = Site(tmp_path, 10.0)
    site.report()
    site.job()
    while not site.report():
        pass
    while site.now < 1200:
        assert site.report() == {SICK}, "silence forgives nothing"
    # As long as it is held, an object that is let through says so.
    for _ in range(3):
        site.servers[SICK].write(site.now + 1, 5e5, 1, MIB)
        assert site.report() == {SICK}
    objects = 0
    while site.report():
        site.servers[SICK].write(site.now + 1, 1e8, 1)
        objects += 1
    assert objects <= 6


@pytest.mark.parametrize("size", [4 * KIB, 16 * KIB])
def test_small_files_do_not_clear_a_disk_that_is_still_held(tmp_path: Path, size: int) -> None:
    site = Site(tmp_path, 10.0)
    site.report()
    site.job()
    while not site.report():
        pass
    while site.servers[SICK].writes[-1][2] > site.now:
        site.report()
    for _ in range(12):
        for i, server in enumerate(site.servers):
            for n in range(20):
                server.write(site.now + 1 + n / 4, 5e5 if i == SICK else size / 0.004, 1, size)
        assert site.report() == {SICK}


@pytest.mark.parametrize("late", [1, 2, 3])
def test_storage_that_stands_still_for_all_makes_no_ost_sick(tmp_path: Path, late: int) -> None:
    """Reports come one after another: when it begins and when it ends, some say so before the others."""
    site = Site(tmp_path, 10.0)
    site.report()
    for server in site.servers:
        server.write(site.now + 1, 1e8)
    assert site.report() == set()
    begin = site.now + 12.5 - 2.5 * late
    for server in site.servers:
        server.write(begin, BULK / 47.0, 1)  # all for 47 s
    for _ in range(8):
        site.now += site.interval_s
        for i, server in enumerate(site.servers):
            at = site.now + i * site.interval_s / OSTS
            server.set(at)
            site.views.update(server.collector.collect(at), at)
            assert not [ost.index for ost in site.views.view("lustre", at).osts if ost.sick]


def test_waiting_ends_when_ios_end_and_a_healthy_queue_is_no_waiting(tmp_path: Path) -> None:
    site = Site(tmp_path, 10.0)
    site.report()
    for _ in range(20):
        for server in site.servers:
            # 40 s of work in the queue, which moves.
            if len([w for w in server.writes if w[2] > site.now]) < 50:
                server.write(site.now + 1, 5e6, 50)
        assert site.report() == set()
