"""A disk held at a fiftieth of its speed on a real server: seen from what its server captured, and forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tarazu.stats.collector import Collector
from tarazu.stats.service import Devices
from tarazu.stats.view import ViewBuilder
from tarazu.wire import messages
from tarazu.wire.reports import OssReport

from .conftest import Series, SickDisk, put

SICK = 1 / 20


def reports(sick_disk: SickDisk, moments: Iterable[int]) -> Iterator[tuple[OssReport, float]]:
    """What the two servers send, as it would arrive."""
    collectors = {name: Collector(root, name) for name, root in sick_disk.roots.items()}
    for moment in moments:
        for name, collector in collectors.items():
            now = sick_disk.set(name, moment)
            sent = messages.decode(messages.encode(collector.collect(now)))
            assert isinstance(sent, OssReport)
            yield sent, now


def relative(views: ViewBuilder, now: float) -> dict[int, float]:
    return {o.index: o.relative_speed for o in views.view("lustre", now).osts if o.relative_speed is not None}


def sources(views: ViewBuilder, now: float) -> set[str]:
    return {o.speed_source for o in views.view("lustre", now).osts if o.speed_source}


def test_the_held_disk_is_slow_in_the_fourth_report_of_its_ios(sick_disk: SickDisk) -> None:
    views, reported = ViewBuilder(180), 0
    for report, now in reports(sick_disk, sick_disk.MOMENTS):
        assert views.update(report, now)
        found = relative(views, now)
        assert all(found.get(index, 1.0) == 1.0 for index in range(5)), "no OST of oss1"
        if report.oss == "oss3":
            reported += bool(sick_disk.SICK[0] in found)
            assert reported < 4 or all(found[index] <= SICK for index in sick_disk.SICK)
    assert reported > 10 and sources(views, now) == {"brw_stats"}


def test_the_held_disk_is_slow_at_intervals_up_to_a_minute(sick_disk: SickDisk) -> None:
    sent = list(reports(sick_disk, sick_disk.MOMENTS))
    for step, first in ((s, first) for s in (1, 4, 5, 8, 9, 12) for first in range(s)):
        views = ViewBuilder(180)
        for moment in range(first, len(sent) // 2, step):
            for report, now in sent[2 * moment : 2 * moment + 2]:
                views.update(report, now)
            assert all(relative(views, now).get(index, 1.0) == 1.0 for index in range(5)), (step, first)
        found = relative(views, now)
        if (len(sent) // 2 - 1 - first) // step < 2:
            continue  # one interval
        if {0x1, 0x3, *sick_disk.SICK} <= found.keys():
            # All five OSTs of a server lie on its one disk.
            assert all((speed <= SICK) == (index > 5) for index, speed in found.items()), (step, first)
        else:
            assert first > 4, "began in the middle"


def without(sick_disk: SickDisk, *files: str) -> None:
    """From now on these files are gone after each `set`."""
    original = sick_disk.set

    def set_and_remove(name: str, moment: int) -> float:
        now = original(name, moment)
        for pattern in files:
            for path in sick_disk.roots[name].glob(pattern):
                path.unlink()
        return now

    sick_disk.set = set_and_remove  # type: ignore[method-assign]


BRW = "sys/kernel/debug/lustre/osd-*/*/brw_stats"
MNTDEV = "sys/fs/lustre/osd-*/*/mntdev"


@pytest.mark.parametrize(("gone", "source"), [((BRW,), "diskstats"), ((BRW, MNTDEV), "ost_io")])
@pytest.mark.parametrize("moments", [range(1, 25), (1, 10, 19, 24)])
def test_the_next_best_source_sees_the_held_disk_too(
    sick_disk: SickDisk, gone: tuple[str, ...], source: str, moments: Iterable[int]
) -> None:
    without(sick_disk, *gone)
    views = ViewBuilder(180)
    for report, now in reports(sick_disk, moments):
        views.update(report, now)
    found = relative(views, now)
    assert sources(views, now) == {source}
    if source == "diskstats":  # requests wait for more than the disk, and twice 16 are too few
        assert all(found[index] <= SICK for index in sick_disk.SICK)
    assert all(speed == 1.0 for index, speed in found.items() if index < 5)


def as_of_2_12(sick_disk: SickDisk, *, disks: bool) -> None:
    """The captured files as 2.12 would have them: in procfs, without times of requests, start times and diskstats;
    `disks`: with `brw_stats`.
    """
    plain = sick_disk.set

    def set_and_move(name: str, moment: int) -> float:
        now, root = plain(name, moment), sick_disk.roots[name]
        (root / "proc/diskstats").unlink()
        debug = root / "sys/kernel/debug/lustre"
        for path in [*debug.glob("obdfilter/*/stats"), *debug.glob("osd-*/*/brw_stats")]:
            lines = [
                line
                for line in path.read_text().splitlines()
                if not line.startswith(("start_time", "elapsed_time", "read ", "write "))
            ]
            path.unlink()
            if disks or path.name != "brw_stats":
                put(root / "proc/fs/lustre" / path.relative_to(debug), "\n".join(lines))
        return now

    sick_disk.set = set_and_move  # type: ignore[method-assign]


@pytest.mark.parametrize(("disks", "source"), [(True, "brw_stats"), (False, "ost_io")])
def test_the_held_disk_is_seen_on_2_12(sick_disk: SickDisk, disks: bool, source: str) -> None:
    as_of_2_12(sick_disk, disks=disks)
    views = ViewBuilder(180)
    for report, now in reports(sick_disk, sick_disk.MOMENTS):
        assert not any(ost.write_usecs or ost.counters_start_s for ost in report.osts)
        views.update(report, now)
    found = relative(views, now)
    assert sources(views, now) == {source}
    assert not disks or all(found[index] <= SICK for index in sick_disk.SICK)
    assert all(speed == 1.0 for index, speed in found.items() if index < 5)


def test_a_source_that_comes_and_goes_gives_no_wrong_verdict(sick_disk: SickDisk) -> None:
    views = ViewBuilder(180)
    kept = sick_disk.set

    def flicker(name: str, moment: int) -> float:
        now = kept(name, moment)
        if moment % 4 == 0:
            for path in sick_disk.roots[name].glob(BRW):
                path.unlink()
        return now

    sick_disk.set = flicker  # type: ignore[method-assign]
    for report, now in reports(sick_disk, sick_disk.MOMENTS):
        views.update(report, now)
        assert all(relative(views, now).get(index, 1.0) == 1.0 for index in range(5))


def test_silence_forgives_nothing(sick_disk: SickDisk) -> None:
    views = ViewBuilder(1e9)
    for report, now in reports(sick_disk, sick_disk.MOMENTS):
        views.update(report, now)
        views.view("lustre", now)
    assert all(relative(views, now + 7 * 86400)[index] <= SICK for index in sick_disk.SICK)


def test_no_ost_of_the_captured_series_is_slow(series: Series) -> None:
    # Six writes of 2 MiB on each OST, whose mean service times differ by a factor of 2.5, all healthy.
    for interval in (1, 3):
        collector, views = Collector(series.root, "oss1"), ViewBuilder(180)
        for moment in series.MOMENTS[::interval]:
            now = series.set(moment)
            views.update(collector.collect(now), now)
            assert all(speed == 1.0 for speed in relative(views, now).values())


def test_two_osts_on_one_device_are_not_told_apart_by_it(sick_disk: SickDisk) -> None:
    without(sick_disk, BRW)
    for path in sick_disk.roots["oss3"].glob(MNTDEV):
        path.write_text("/dev/vdb\n")
    collected = {report.oss: report for report, _ in reports(sick_disk, (1,))}
    assert {o.writes.source for o in collected["oss1"].osts if o.writes} == {"diskstats"}
    assert {o.writes.source for o in collected["oss3"].osts if o.writes} == {"ost_io"}


def test_a_device_is_found_behind_its_links(sick_disk: SickDisk) -> None:
    without(sick_disk, BRW)
    root = sick_disk.roots["oss1"]
    (root / "dev/mapper").mkdir(parents=True)
    (root / "dev/mapper/ost0").symlink_to("../vdb1")
    (root / "sys/fs/lustre/osd-ldiskfs/lustre-OST0000/mntdev").write_text("/dev/mapper/ost0\n")
    (root / "sys/fs/lustre/osd-ldiskfs/lustre-OST0001/mntdev").write_text("ostpool/ost1\n")
    report = next(r for r, _ in reports(sick_disk, (5,)) if r.oss == "oss1")
    found = {o.index: o.writes.source for o in report.osts if o.writes}
    assert (found[0], found[1]) == ("diskstats", "ost_io")


def devices(root: Path, mntdev: list[str]) -> list[str]:
    """The disk of each device, as far as it is shared."""
    found = Devices(root, {f"lustre-OST{i:04x}": device for i, device in enumerate(mntdev)}, None)
    return [found.shared_disk(f"lustre-OST{i:04x}") for i in range(len(mntdev))]


def test_volumes_partitions_and_files_on_one_disk_are_found(tmp_path: Path) -> None:
    block = tmp_path / "sys/block"
    for name, below in {
        "dm-0": ["sdb1"],
        "dm-1": ["dm-2"],
        "dm-2": ["sdb"],
        "dm-3": ["sdc", "sdd"],
        "md0": [],
    }.items():
        (block / name / "slaves").mkdir(parents=True)
        for device in below:
            (block / name / "slaves" / device).mkdir()
    assert (
        devices(tmp_path, ["/dev/dm-0", "/dev/dm-1", "/dev/sdb2", "/dev/dm-3", "/dev/md0"])
        == ["sdb"] * 3 + [""] * 2
    )
    for number in range(2):
        (tmp_path / f"ost{number}.img").touch()
        (block / f"loop{number}/loop").mkdir(parents=True)
        (block / f"loop{number}/loop/backing_file").write_text(f"/ost{number}.img\n")
    first, second, gone = devices(tmp_path, ["/dev/loop0", "/dev/loop1", "/dev/loop7"])
    assert first and first == second and not gone
    assert devices(tmp_path, ["ostpool/ost0", "ostpool/ost1"]) == ["", ""]


def test_zfs_counts_its_writes_without_their_times(sick_disk: SickDisk) -> None:
    # osd-zfs tallies the sizes of its writes, but passes no elapsed time for them.
    kept = sick_disk.set

    def as_zfs(name: str, moment: int) -> float:
        now = kept(name, moment)
        for path in sick_disk.roots[name].glob(BRW):
            head, title, rest = path.read_text().partition("I/O time (1/1000s)")
            times, blank, tail = rest.partition("\n\n")
            path.write_text(head + title + times.splitlines()[0] + "\n" + blank + tail)
        for path in sick_disk.roots[name].glob(MNTDEV):
            path.write_text("ostpool/ost\n")
        return now

    sick_disk.set = as_zfs  # type: ignore[method-assign]
    views = ViewBuilder(180)
    for report, now in reports(sick_disk, sick_disk.MOMENTS):
        views.update(report, now)
        assert {o.reads.source for o in report.osts if o.reads} == {"brw_stats"}
    assert sources(views, now) == {"ost_io"}


def test_a_server_that_says_nothing_of_its_disks_is_judged_by_its_requests(sick_disk: SickDisk) -> None:
    without(sick_disk, BRW, MNTDEV, "sys/kernel/debug/lustre/ost/OSS/ost_io/stats")
    for report, _now in reports(sick_disk, (1,)):
        assert {o.writes.source for o in report.osts if o.writes} == {"obdfilter"}
