"""One number of a statistics file that overflowed, or one file that cannot be read: everything else holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tarazu.stats import counters, diskstats, host, lnet
from tarazu.stats.collector import Collector
from tarazu.stats.view import ViewBuilder
from tarazu.wire.reports import OssReport

from .conftest import DATA, Series

SUMS = ("-1", "-9199999999999999999", "18446744073709551615")
STATS = "sys/kernel/debug/lustre/obdfilter/lustre-OST0001/stats"
OST_IO = "sys/kernel/debug/lustre/ost/OSS/ost_io/stats"
BRW = "sys/kernel/debug/lustre/osd-ldiskfs/lustre-OST0001/brw_stats"
JOBS = "proc/fs/lustre/obdfilter/lustre-OST0001/job_stats"
LNET = "sys/kernel/debug/lnet/stats"

Change = Callable[[str], str]


def with_sum(name: str, number: str) -> Change:
    def change(text: str) -> str:
        changed, times = re.subn(rf"(?m)^({name} +\d+ samples \[\w+\] \S+ \S+) \d+", rf"\1 {number}", text)
        assert times == 1, name
        return changed

    return change


def word(at: int, number: str) -> Change:
    def change(text: str) -> str:
        words = text.split()
        words[at] = number
        return " ".join(words) + "\n"

    return change


def line(expression: str, replacement: str) -> Change:
    def change(text: str) -> str:
        changed, times = re.subn(expression, replacement, text, count=1, flags=re.M)
        assert times == 1, expression
        return changed

    return change


def reports(root: Path, file: str = "", change: Change | None = None) -> list[OssReport]:
    """Of four moments; in the second and third, a file is other than it was."""
    series, collector = Series(root), Collector(root, "oss1", exports=True)
    taken = []
    for moment in series.MOMENTS:
        now = series.set(moment)
        path = root / file
        whole = path.read_text() if file else ""
        if change and moment in (2, 3):
            path.write_text(change(whole))
        taken.append(collector.collect(now))
        if file:
            path.write_text(whole)
    return taken


CUT = [
    r"\1",
    r"\1 samples",
    r"\1 12 samples [usecs] 1 2",
    r"\1 nine samples [usecs] 1 2 3",
    r"\1 -3 samples [bytes] 1 2 3",
]
"""A row of which a part is missing or odd."""


def views(taken: list[OssReport]) -> list[dict[int, tuple[float | None, float | None]]]:
    builder, rates = ViewBuilder(stale_after_s=60.0), []
    for report in taken:
        assert builder.update(report, report.sent_s)
        details = builder.details("lustre", report.sent_s)
        rates.append({i: d.moved[:2] for i, d in details.items()})
    return rates


@pytest.mark.parametrize("number", SUMS)
@pytest.mark.parametrize("name", ["ost_write", "req_waittime", "req_qdepth", "ost_fallocate"])
def test_one_overflowed_sum_of_ost_io_leaves_every_ost_as_it_was(
    oss_root: Path, number: str, name: str
) -> None:
    usual = reports(oss_root)
    taken = reports(oss_root, OST_IO, with_sum(name, number))
    assert all(report.unreadable == () for report in taken)
    assert views(taken) == views(usual)
    wait_s = [report.queue_wait_s for report in usual]
    if name == "req_waittime":
        wait_s[1:] = [0.0] * 3
    assert [report.queue_wait_s for report in taken] == wait_s


@pytest.mark.parametrize("number", SUMS)
@pytest.mark.parametrize("name", ["write_bytes", "write", "statfs"])
def test_one_overflowed_sum_of_an_ost_is_unknown_and_all_else_holds(
    oss_root: Path, number: str, name: str
) -> None:
    usual = views(reports(oss_root))
    taken = reports(oss_root, STATS, with_sum(name, number))
    assert all(report.unreadable == () for report in taken)
    rates = views(taken)
    if name == "write_bytes":
        for moment in (1, 2, 3):
            assert rates[moment].pop(1)[0] is None
            usual[moment].pop(1)
    assert rates == usual


@pytest.mark.parametrize("row", CUT)
def test_a_row_that_cannot_be_read_is_unknown_alone(oss_root: Path, row: str) -> None:
    usual = views(reports(oss_root))
    rates = views(reports(oss_root, STATS, line(r"^(write_bytes) .*", row)))
    for moment in (1, 2, 3):
        assert rates[moment].pop(1)[0] is None
        usual[moment].pop(1)
    assert rates == usual
    text = line(r"^(write_bytes) .*", row)(
        "snapshot_time 7.0 secs\nread_bytes 2 samples [bytes] 1 2 3\nwrite_bytes 1\n"
    )
    for stats in (counters.parse(text), counters.some(text, ("read_bytes", "write_bytes"))):
        assert (stats.row("read_bytes").sum, stats.unknown) == (3, {"write_bytes"})


@pytest.mark.parametrize("content", ["", "rubbish\n", "\x00" * 4096])
def test_one_file_that_cannot_be_read_blanks_its_ost_alone(oss_root: Path, content: str) -> None:
    usual = views(reports(oss_root))
    taken = reports(oss_root, STATS, lambda _: content)
    assert [report.unreadable for report in taken] == [(), *[("obdfilter.*.stats",)] * 2, ()]
    rates = views(taken)
    for moment in (1, 2, 3):
        assert rates[moment].pop(1) == (None, None)
        usual[moment].pop(1)
    assert rates == usual and any(rate for rate, _ in rates[1].values())


@pytest.mark.parametrize("number", ["9" * 19, "-5", "18446744073709551615"])
def test_an_overflowed_class_of_brw_stats_leaves_other_osts_as_they_were(oss_root: Path, number: str) -> None:
    usual = reports(oss_root)
    taken = reports(oss_root, BRW, line(r"^(4K:.*\| +)\d+", rf"\g<1>{number}"))
    for report, other in zip(taken, usual):
        assert report.unreadable == ()
        assert [o for o in report.osts if o.index != 1] == [o for o in other.osts if o.index != 1]


def job(size: str) -> str:
    return f"""job_stats:
- job_id:          bad
  snapshot_time:   7.0
  write_bytes:     {{ samples: 3, unit: bytes, min: 1, max: 4, sum: {size} }}
  statfs:          {{ samples: 3, unit: usecs, min: 1, max: 4, sum: {size} }}
- job_id:          good
  snapshot_time:   7.0
  write_bytes:     {{ samples: 3, unit: bytes, min: 1, max: 4, sum: SIZE }}
"""


@pytest.mark.parametrize("number", SUMS)
def test_a_job_whose_bytes_overflowed_hides_no_other_job(oss_root: Path, number: str) -> None:
    collector = Collector(oss_root, "oss1")
    moved = []
    for moment, size in enumerate(("1000", number, "5000")):
        (oss_root / JOBS).write_text(job(size).replace("SIZE", str(100 * moment)))
        report = collector.collect(float(moment))
        assert report.unreadable == ()
        moved.append({rate.job_id: rate.write_bytes for rate in report.jobs if rate.write_bytes})
    assert moved == [{}, {"good": 100}, {"good": 100}]


def test_a_client_whose_bytes_overflowed_hides_no_other_client(oss_root: Path) -> None:
    exports = oss_root / "proc/fs/lustre/obdfilter/lustre-OST0001/exports"
    collector = Collector(oss_root, "oss1", exports=True)
    moved = []
    for moment, size in enumerate(("1000", SUMS[2], "5000")):
        for nid, of in (("10.0.0.1@tcp", size), ("10.0.0.2@tcp", str(100 * moment))):
            (exports / nid).mkdir(parents=True, exist_ok=True)
            stats = f"snapshot_time 1.0 secs\nwrite_bytes 3 samples [bytes] 1 4 {of} 9\n"
            (exports / nid / "stats").write_text(stats)
        report = collector.collect(float(moment))
        assert report.unreadable == ()
        moved.append({rate.nid: rate.write_bytes for rate in report.clients if rate.write_bytes})
    assert moved == [{}, {"10.0.0.2@tcp": 100}, {"10.0.0.2@tcp": 100}]


@pytest.mark.parametrize("at", [0, 7, 8, 9])
@pytest.mark.parametrize("number", ["18446744073709551615", "-5"])
def test_an_lnet_counter_of_twenty_digits_is_unknown_alone(oss_root: Path, at: int, number: str) -> None:
    usual = [report.lnet_bytes_per_s for report in reports(oss_root)]
    taken = reports(oss_root, LNET, word(at, number))
    assert all(report.unreadable == () for report in taken)
    of_lengths = at in (7, 8)
    assert [r.lnet_bytes_per_s for r in taken] == ([0.0, 0.0, 0.0, 0.0] if of_lengths else usual)


@pytest.mark.parametrize("number", ["18446744073709551615", "-5"])
def test_what_overflowed_of_a_node_is_not_counted(number: str) -> None:
    meminfo = (DATA / "oss/proc/meminfo").read_text()
    assert host.parse_memory(f"{meminfo}Committed_AS: {number} kB\n") == host.parse_memory(meminfo)
    disks = diskstats.parse((DATA / "oss/proc/diskstats").read_text())
    name = next(iter(disks))
    fields = f"8 0 {name} 1 2 3 4 5 6 7 8 9 10 11".split()
    fields[4] = number  # merged reads: nobody reads them
    assert diskstats.parse(" ".join(fields))[name].reads == 1
    fields[6] = number
    other = "8 1 other 1 2 3 4 5 6 7 8 9 10 11\n"
    for row in (" ".join(fields), f"8 0 {name} 1 2 3", "", "7 0 loop0 odd 2 3 4 5 6 7 8 9 10 11"):
        assert list(diskstats.parse(f"{row}\n{other}")) == ["other"]
    assert lnet.parse(f"{number} 2 3 4 5 6 7 8 9 10 11").recv_length == 9


def test_what_is_no_number_is_refused() -> None:
    for text in ("", "-", "nine", "1.5"):
        with pytest.raises(ValueError, match="expected a count"):
            counters.known(text)
    assert [counters.known(n) for n in ("0", "9" * 18, "9" * 19, "-0")] == [0, 10**18 - 1, None, None]


def test_an_ossd_says_of_which_ost_the_counters_are_unknown(oss_root: Path) -> None:
    from tarazu.daemons.ossd.service import as_text

    (oss_root / STATS).write_text("rubbish\n")
    lines = as_text(Collector(oss_root, "oss1").collect(0.0)).splitlines()
    assert ["unknown" in line for line in lines if line.startswith("lustre-OST")] == [
        False,
        True,
        *[False] * 3,
    ]
