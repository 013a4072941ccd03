"""The collector on captured roots: rates, resets, and that one bad source harms no other."""

from __future__ import annotations

import logging
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from tarazu.stats.collector import Collector
from tarazu.wire import messages
from tarazu.wire.reports import JobRate

from .conftest import Series

DEBUG = "sys/kernel/debug/lustre"
JOBS = "proc/fs/lustre/obdfilter/lustre-OST0000/job_stats"


def test_a_captured_oss_is_reported_whole(data: Path) -> None:
    report = Collector(data / "oss", "oss1").collect(100.0)
    assert (report.oss, report.sequence, report.sent_s, report.interval_s) == ("oss1", 1, 100.0, 0.0)
    assert [(ost.fs_name, ost.index) for ost in report.osts] == [("lustre", i) for i in range(5)]
    first = report.osts[0]
    assert (first.total_bytes, first.free_bytes, first.avail_bytes, first.files_free) == (
        954304 * 1024,
        933184 * 1024,
        864372 * 1024,
        65235,
    )
    assert (first.write_bytes, first.write_samples, first.write_usecs) == (27508736, 141, 2357618)
    assert (first.io_size_samples, first.io_large_samples) == (264, 13)
    assert first.nonrotational is False and first.disk == ""
    assert first.writes and (first.writes.source, first.writes.ios) == ("brw_stats", 141)
    assert not (first.degraded or first.no_create or first.readonly)
    assert report.unreadable == () and report.jobs == () and 0.2 < report.memory_load < 0.3
    assert messages.decode(messages.encode(report)) == report


def test_rates_over_the_captured_series(series: Series) -> None:
    collector = Collector(series.root, "oss1")
    reports = [collector.collect(series.set(moment)) for moment in series.MOMENTS]
    assert [r.sequence for r in reports] == list(series.MOMENTS)
    second = reports[1]
    assert second.interval_s == pytest.approx(7.2165, abs=1e-3)
    moved = (68487408 + 680571320) - (68478720 + 662737824)
    assert second.lnet_bytes_per_s == pytest.approx(moved / second.interval_s)
    assert all(0 <= r.cpu_load <= 1 for r in reports) and any(r.cpu_load > 0.01 for r in reports)
    assert all(0.1 < r.memory_load < 0.5 for r in reports)
    assert reports[0].queue_wait_s == 0 and any(r.queue_wait_s > 0 for r in reports)
    written = [[ost.write_bytes for ost in r.osts] for r in reports]
    assert all(a <= b for before, after in pairwise(written) for a, b in zip(before, after))
    assert sum(written[-1]) > sum(written[0])


def test_cpu_share_is_that_of_the_interval(oss_root: Path) -> None:
    collector = Collector(oss_root, "oss1")
    stat = oss_root / "proc/stat"
    stat.write_text("cpu  100 0 100 800 0 0 0 0 0 0\n")
    collector.collect(0.0)
    stat.write_text("cpu  150 0 125 820 5 0 0 0 0 0\n")
    assert collector.collect(1.0).cpu_load == pytest.approx(0.75)


def job_stats(**entries: tuple[float, int]) -> str:
    return "job_stats:\n" + "".join(
        f"- job_id:          {job}\n  start_time:      {start} secs.nsecs\n"
        f"  write_bytes:     {{ samples: 1, unit: bytes, min: 1, max: 1, sum: {size} }}\n"
        for job, (start, size) in entries.items()
    )


def test_bytes_per_job_in_the_interval(oss_root: Path) -> None:
    collector = Collector(oss_root, "oss1")
    path = oss_root / JOBS
    path.write_text(job_stats(steady=(1.0, 100), restarted=(1.0, 50), idle=(1.0, 9), shrunk=(0, 70)))
    assert collector.collect(0.0).jobs == ()
    path.write_text(
        job_stats(steady=(1.0, 130), restarted=(2.0, 60), idle=(1.0, 9), shrunk=(0, 7), new=(3, 5))
    )
    assert collector.collect(60.0).jobs == (
        JobRate("restarted", 60, 0, 1),
        JobRate("steady", 30, 0),
        JobRate("shrunk", 7, 0, 1),
        JobRate("new", 5, 0, 1),
    )


def test_an_ost_that_failed_over_brings_no_jobs_of_its_past(oss_root: Path) -> None:
    collector = Collector(oss_root, "oss1")
    taken = oss_root / JOBS
    kept = taken.read_text()
    taken.unlink()
    collector.collect(0.0)
    taken.write_text(kept)
    assert collector.collect(60.0).jobs == ()


def break_file(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("parameter", "file", "lost"),
    [
        ("obdfilter.*.stats", f"{DEBUG}/obdfilter/lustre-OST0002/stats", "write_bytes"),
        ("osd-*.*.brw_stats", f"{DEBUG}/osd-ldiskfs/lustre-OST0002/brw_stats", "io_size_samples"),
        ("obdfilter.*.filesfree", "sys/fs/lustre/obdfilter/lustre-OST0002/filesfree", "files_free"),
        ("ost.OSS.ost_io.stats", f"{DEBUG}/ost/OSS/ost_io/stats", ""),
        ("lnet.stats", "sys/kernel/debug/lnet/stats", ""),
        ("diskstats", "proc/diskstats", ""),
        ("host", "proc/meminfo", ""),
        ("obdfilter.*.job_stats", JOBS, ""),
    ],
)
@pytest.mark.parametrize("garbage", [None, "garbage\x00\xff"])
def test_one_bad_source_disables_only_itself_and_says_so_once(
    oss_root: Path,
    caplog: pytest.LogCaptureFixture,
    parameter: str,
    file: str,
    lost: str,
    garbage: str | None,
) -> None:
    good = Collector(oss_root, "oss1").collect(0.0)
    saved = oss_root / "saved"
    shutil.copy(oss_root / file, saved)
    if garbage is None:
        break_file(oss_root / file)
    else:
        (oss_root / file).write_text(garbage)
    collector = Collector(oss_root, "oss1")
    with caplog.at_level(logging.INFO, "tarazu.stats"):
        first, second = collector.collect(0.0), collector.collect(60.0)
        assert first.unreadable == second.unreadable == (parameter,)
        assert [r.getMessage().split(" is ")[0] for r in caplog.records] == [parameter]
        assert file in caplog.text or parameter == "host"
        for ost, whole in zip(first.osts, good.osts, strict=True):
            changed = {f for f in ost.__struct_fields__ if getattr(ost, f) != getattr(whole, f)}
            assert changed == set() or (ost.index == 2 and lost in changed)
        if garbage is None:
            (oss_root / file).rmdir()
        shutil.copy(saved, oss_root / file)
        assert collector.collect(120.0).unreadable == ()
        assert caplog.records[-1].getMessage() == f"{parameter} can be read again"


def test_an_ost_of_unknown_capacity_is_left_out(oss_root: Path) -> None:
    for path in oss_root.glob("sys/fs/lustre/*/lustre-OST0003/kbytesavail"):
        path.write_text("many\n")
    report = Collector(oss_root, "oss1").collect(0.0)
    assert [ost.index for ost in report.osts] == [0, 1, 2, 4]
    assert report.unreadable == ("obdfilter.*.kbytesavail",)


def test_an_empty_root_is_an_empty_report(tmp_path: Path) -> None:
    report = Collector(tmp_path, "oss1").collect(0.0)
    assert report.osts == () and "host" in report.unreadable and "lnet.stats" in report.unreadable


def test_states_of_an_ost(oss_root: Path) -> None:
    for name in ("degraded", "no_create", "readonly"):
        (oss_root / f"sys/fs/lustre/obdfilter/lustre-OST0001/{name}").write_text("1\n")
        (oss_root / f"sys/fs/lustre/obdfilter/lustre-OST0002/{name}").unlink()
    _, one, two, *_ = Collector(oss_root, "oss1").collect(0.0).osts
    assert one.degraded and one.no_create and one.readonly
    assert not (two.degraded or two.no_create or two.readonly)


def test_the_places_of_2_12_do_as_well(oss_root: Path) -> None:
    old = oss_root / "proc/fs/lustre"
    for kind in ("stats", "brw_stats"):
        for path in sorted((oss_root / DEBUG).glob(f"*/lustre-OST*/{kind}")):
            target = old / path.parent.parent.name / path.parent.name / kind
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    (oss_root / "proc/sys/lnet").mkdir(parents=True)
    (oss_root / "sys/kernel/debug/lnet/stats").rename(oss_root / "proc/sys/lnet/stats")
    report = Collector(oss_root, "oss1").collect(0.0)
    assert report.unreadable == ()
    assert report.osts[0].write_bytes == 27508736 and report.osts[0].io_large_samples == 13
