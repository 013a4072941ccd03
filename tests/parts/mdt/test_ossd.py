"""MDTs as an ossd on their server reads them: captured parameters, jobs, resets, what cannot be read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tarazu.parts.mdt import PART, ossd
from tarazu.parts.mdt.messages import MAX_MDTS, MdtJob, MdtOperation
from tarazu.stats import mds_load
from tarazu.wire import messages
from tests.parts.mdt.conftest import collector as collector_of
from tests.parts.mdt.conftest import mdts

MDT = "proc/fs/lustre/mdt/lustre-MDT0000"
OSD = "sys/fs/lustre/osd-ldiskfs/lustre-MDT0000"


@pytest.fixture
def mds_root(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data / "mds", tmp_path / "mds"))


def dne(data: Path, mdt: str) -> str:
    """`md_stats` of one of the two MDTs, as captured."""
    text = (data / "control/dne.txt").read_text()
    return text.partition(f"mdt.{mdt}.md_stats=\n")[2].partition("mdt.")[0]


def with_second(root: Path, data: Path) -> None:
    """A second MDT on this server."""
    for place in (MDT, OSD):
        second = root / place.replace("MDT0000", "MDT0001")
        shutil.copytree(root / place, second)
    (root / MDT.replace("MDT0000", "MDT0001") / "md_stats").write_text(dne(data, "lustre-MDT0001"))
    (root / MDT / "md_stats").write_text(dne(data, "lustre-MDT0000"))


def test_a_captured_mds_is_reported_whole(data: Path) -> None:
    report = collector_of(data / "mds", "mds1").collect(100.0)
    (mdt,) = mdts(report)
    assert (mdt.fs_name, mdt.index) == ("lustre", 0)
    assert (mdt.total_bytes, mdt.avail_bytes) == (1160264 * 1024, 1036280 * 1024)
    assert (mdt.files_total, mdt.files_free) == (838864, 838456)
    assert MdtOperation("mknod", 91, 236404) in mdt.operations
    assert mdt.counters_start_s == pytest.approx(1795165894.703, abs=1e-3)
    assert report.osts == () and report.unreadable == (), "it has no OSTs: nothing of these is missing"
    assert messages.decode(messages.encode(report)) == report


def test_an_oss_reports_no_mdt(data: Path) -> None:
    assert mdts(collector_of(data / "oss", "oss1").collect(100.0)) == ()


def test_two_captured_mdts_of_one_server(data: Path, mds_root: Path) -> None:
    with_second(mds_root, data)
    first, second = mdts(collector_of(mds_root, "mds1").collect(100.0))
    assert (first.index, second.index) == (0, 1)
    assert MdtOperation("mkdir", 171, 1082277) in first.operations
    assert second.operations == (
        MdtOperation("open", 2, 33022),
        MdtOperation("close", 2, 447),
        MdtOperation("mkdir", 4, 228362),
        MdtOperation("getattr", 3, 213),
        MdtOperation("setattr", 1, 17466),
        MdtOperation("statfs", 4, 203),
        MdtOperation("readpage", 1, 12908),
    )
    names = {of.name for of in first.operations}
    assert "rename" in names and not names & set(mds_load.COUNTED_TWICE), "each rename counts once"


def test_operations_that_are_not_timed_have_no_time(data: Path) -> None:
    (mdt,) = mdts(collector_of(data / "versions/2.12-ldiskfs/mds", "mds1").collect(1.0))
    assert mdt.operations == (MdtOperation("open", 70), MdtOperation("close", 60))
    assert ossd.parse("snapshot_time 1.0 secs\nopen 9 samples [reqs] 1 1 9\n").operations == (
        MdtOperation("open", 9),
    )


def job(name: str, operations: int) -> str:
    return (
        f"- job_id:          {name}\n  snapshot_time:   1\n"
        f"  mkdir:           {{ samples: {operations}, unit: usecs, min: 1, max: 1, sum: 1 }}\n"
    )


def test_the_busiest_jobs_of_each_mdt(data: Path, mds_root: Path) -> None:
    with_second(mds_root, data)
    collector = collector_of(mds_root, "mds1")
    files = [mds_root / MDT.replace("0000", n) / "job_stats" for n in ("0000", "0001")]
    for file in files:
        file.write_text("job_stats:\n" + job("steady", 10) + job("idle", 5) + job("dropped", 50))
    assert [mdt.jobs for mdt in mdts(collector.collect(0.0))] == [(), ()]
    files[0].write_text("job_stats:\n" + job("steady", 40) + job("idle", 5) + job("dropped", 7))
    files[1].write_text("job_stats:\n" + "".join(job(f"new{n:02}", 100 + n) for n in range(20)))
    first, second = mdts(collector.collect(60.0))
    assert first.jobs == (MdtJob("steady", 30), MdtJob("dropped", 7))
    assert second.jobs == tuple(MdtJob(f"new{n}", 100 + n) for n in range(19, 9, -1))


@pytest.mark.parametrize("file", [f"{MDT}/md_stats", f"{MDT}/job_stats", f"{OSD}/filesfree"])
def test_one_bad_source_disables_only_itself(data: Path, mds_root: Path, file: str) -> None:
    with_second(mds_root, data)
    (mds_root / file).write_text("garbage\x00")
    report = collector_of(mds_root, "mds1").collect(1.0)
    assert report.unreadable == (f"mdt.*.{file.rpartition('/')[2]}",)
    assert [mdt.index for mdt in mdts(report)] == ([1] if file.endswith("filesfree") else [0, 1])
    assert bool(mdts(report)[0].operations) is not file.endswith("md_stats")


def test_more_mdts_than_a_report_may_have(mds_root: Path) -> None:
    for number in range(1, MAX_MDTS + 5):
        for place in (MDT, OSD):
            shutil.copytree(mds_root / place, mds_root / place.replace("MDT0000", f"MDT{number:04x}"))
    report = collector_of(mds_root, "mds1").collect(1.0)
    assert len(mdts(report)) == MAX_MDTS
    assert messages.decode(messages.encode(report)) == report


@pytest.mark.parametrize("flag", ossd.FLAGS)
def test_a_closed_mdt_says_so(mds_root: Path, flag: str) -> None:
    (before,) = mdts(collector_of(mds_root, "mds1").collect(1.0))
    file = mds_root / "sys/fs/lustre/mdt/lustre-MDT0000" / flag
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("1\n")
    (after,) = mdts(collector_of(mds_root, "mds1").collect(1.0))
    assert (getattr(before, flag), getattr(after, flag)) == (False, True)


def test_a_line_for_each(data: Path) -> None:
    report = collector_of(data / "mds", "mds1").collect(1.0)
    [line] = PART.lines_of(report.parts["mdt"])
    assert line.startswith("lustre-MDT0000: 0.0% of 838864 inodes used, ")


@pytest.mark.parametrize("number", ["18446744073709551615", "-5"])
def test_what_overflowed_is_not_counted(mds_root: Path, number: str) -> None:
    path = mds_root / MDT / "md_stats"
    rows = path.read_text().splitlines()
    path.write_text("\n".join(re.sub(r"^(open +)\d+", rf"\g<1>{number}", row) for row in rows) + "\n")
    (mdt,) = mdts(collector_of(mds_root, "mds1").collect(1.0))
    assert {of.name: of.count for of in mdt.operations}.get("open", 0) == 0
