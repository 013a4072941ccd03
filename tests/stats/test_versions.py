"""One collector, the trees of every version: what it reports, against numbers reckoned by hand from the files."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tarazu.stats import job_stats, mds, osp, reading
from tarazu.stats.collector import Collector
from tarazu.stats.mds_load import MdsCollector
from tarazu.stats.params import PARAMETERS
from tarazu.stats.sources import survey
from tarazu.wire import messages
from tarazu.wire.reports import ClientRate, IoCounters, JobRate, OstReport

START = 1700000000.000000002
MIB = 1 << 20


class Expected(NamedTuple):
    osts: tuple[tuple[str, int], ...]
    times: bool
    """`obdfilter` tells how long requests took (2.15 and later)."""
    start_s: float
    writes: str
    """Source of the times of writes."""
    no_create: tuple[bool, ...]
    jobs: tuple[str, str]
    forms: tuple[str, str]
    """Of `obdfilter.*.stats` and of `job_stats`, as they begin."""


EXPECTED = {
    "2.12-ldiskfs": Expected(
        (("scratch", 0), ("scratch", 1)),
        False,
        0.0,
        "brw_stats",
        (False, False),
        ("4711", "my job?.1000"),
        ("2.12", "2.12: no start_time"),
    ),
    "2.15-ldiskfs": Expected(
        (("home", 0), ("scratch", 2)),
        True,
        START,
        "brw_stats",
        (False, False),
        ("4711", "my job:.1000"),
        ("2.15", "2.15 and later: start_time"),
    ),
    "2.16-ldiskfs": Expected(
        (("scratch", 31),),
        True,
        START,
        "brw_stats",
        (False,),
        ("4711:0", "a/b.1000"),
        ("2.15", "2.16 and later: histograms"),
    ),
    "2.16-zfs": Expected(
        (("scratch", 3), ("scratch", 4)),
        True,
        START,
        "ost_io",
        (False, True),
        ("4711:0", "a/b.1000"),
        ("2.15", "2.16 and later: histograms"),
    ),
}
VERSIONS = sorted(EXPECTED)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(version: str, data: Path, tmp_path: Path) -> Path:
    """A copy of that version's OSS."""
    return Path(shutil.copytree(data / "versions" / version / "oss", tmp_path / "oss"))


def of_scale(scale: int, expected: Expected) -> dict[str, object]:
    """What `make.py` wrote of the first, second OST of a server."""
    return {
        "total_bytes": 4_096_000 * scale,
        "free_bytes": 3_072_000 * scale,
        "avail_bytes": 2_048_000 * scale,
        "files_free": 500 * scale,
        "degraded": scale == 2,
        "readonly": False,
        "write_bytes": 83_886_080 * scale,
        "write_samples": 20 * scale,
        "write_usecs": 50_000 * scale if expected.times else 0,
        "read_bytes": 10_485_760 * scale,
        "read_samples": 10 * scale,
        "read_usecs": 10_000 * scale if expected.times else 0,
        "counters_start_s": expected.start_s,
        "io_size_samples": 80,
        "io_large_samples": 80,
        "nonrotational": True,
        "disk": "",
        # 10 disk reads of 1 MiB in the class of 8 ms, which counts for 6; 6 alone, 4 with another.
        "reads": IoCounters("brw_stats", 10, 10 * MIB, 60_000, 14, 10, expected.start_s),
    }


def test_every_version_is_reported_alike(version: str, root: Path) -> None:
    expected = EXPECTED[version]
    report = Collector(root, "oss1").collect(1000.0)
    assert [(o.fs_name, o.index) for o in report.osts] == list(expected.osts)
    scales = (2, 1) if version == "2.15-ldiskfs" else (1, 2)
    for ost, scale, no_create in zip(report.osts, scales, expected.no_create, strict=False):
        wanted = of_scale(scale, expected)
        assert {f: getattr(ost, f) for f in wanted} == wanted
        assert ost.no_create is no_create
        assert ost.writes and ost.writes == of_writes(expected, len(report.osts))
    assert report.unreadable == ()
    # 300 MB of a GB: 400 free, 100 in buffers, 200 in the page cache (250 with slab, without 50 shared).
    assert report.memory_load == pytest.approx(0.3)
    assert messages.decode(messages.encode(report)) == report


def of_writes(expected: Expected, osts: int) -> IoCounters:
    if expected.writes == "brw_stats":
        # 80 of 4 MiB: 40 in the class of 8 ms (6 ms), 40 in that of 16 ms (12 ms).
        return IoCounters("brw_stats", 80, 320 * MIB, 720_000, 100, 80, expected.start_s)
    # ZFS does not time writes: the server's 60 bulk writes, with the bytes of both OSTs.
    return IoCounters("ost_io", 60, 3 * 83_886_080, 600_000, 600, 300, expected.start_s)


def test_rates_of_every_version(version: str, root: Path, data: Path) -> None:
    collector = Collector(root, "oss1", exports=True)
    collector.collect(1000.0, clock_s=10.0)
    shutil.copytree(data / "versions" / version / "oss", root, dirs_exist_ok=True)
    for path in root.glob("**/job_stats"):
        path.write_text(re.sub(r"sum: *8388608", "sum: 9437184", path.read_text()))
    for path in root.glob("**/exports/*/stats"):
        grown = path.read_text().replace("20 samples [bytes]", "21 samples [bytes]")
        path.write_text(grown.replace(" 83886080", " 84934656"))
    lnet = root / "sys/kernel/debug/lnet/stats"
    # The counts are u32 and wrap, the lengths are u64 and do not.
    lnet.write_text("5 400 0 100 300 0 0 123956789 988154321 0 0\n")
    (root / "proc/stat").write_text("cpu  1300 0 600 8100 500 0 0 0 0 0\n")
    ost_io = root / "sys/kernel/debug/lustre/ost/OSS/ost_io/stats"
    ost_io.write_text(
        ost_io.read_text().replace("300 samples", "400 samples").replace(" 600000 ", " 1600000 ")
    )
    report = collector.collect(5000.0, clock_s=70.0)
    osts = len(EXPECTED[version].osts)
    assert report.interval_s == 60.0 and report.sent_s == 5000.0
    assert report.lnet_bytes_per_s == pytest.approx(1_000_000 / 60)
    assert report.cpu_load == pytest.approx(0.8)
    assert report.queue_wait_s == pytest.approx(0.01)
    assert report.jobs == (JobRate(EXPECTED[version].jobs[0], MIB * osts, 0),)
    assert report.clients == (ClientRate("10.0.0.7@o2ib", MIB * osts, 0, osts, 0),)


def test_the_usual_order_of_rows_is_known_and_another_gives_the_same(root: Path) -> None:
    for path in root.glob("**/obdfilter/*/job_stats"):
        for text, begin, end in job_stats.spans(reading.chunks(path, MIB, 300)):
            usual, rows = job_stats.usual((text, begin, end)), job_stats.parse_entry(text[begin:end]).rows
            both = rows["read_bytes"], rows["write_bytes"]
            numbers = [*(row.sum for row in both), *(row.samples for row in both)]
            assert usual and [int(n) for n in usual[2:]] == numbers


def test_the_mds_of_every_version(version: str, data: Path) -> None:
    root = data / "versions" / version / "mds"
    state = mds.read(root)
    assert state.pools == {("scratch", 1): ("flash",), ("scratch", 2): ("flash",)}
    seen = osp.Osps(root).look()
    assert len(seen.known) == 4 and not seen.lost
    assert seen.refusing == {("scratch", 1): "max_create_count 0", ("scratch", 3): "inactive"}
    assert seen.full == {("scratch", 2)}, "prealloc_status ENOSPC"
    maxage = "5 Sec" if version.startswith("2.12") else "5"
    qos = {"qos_prio_free": "91%", "qos_threshold_rr": "17%", "qos_maxage": maxage}
    assert state.qos == {"scratch-MDT0000-mdtlov": qos}
    load = MdsCollector(root).collect(0.0)
    assert load.files_free == {"scratch-MDT0000": 4321} and load.unreadable == ()


def test_metadata_operations_per_second(version: str, data: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(data / "versions" / version / "mds", tmp_path / "mds"))
    collector = MdsCollector(root)
    assert collector.collect(0.0).operations_per_s == {}
    path = root / "proc/fs/lustre/mdt/scratch-MDT0000/md_stats"
    path.write_text(path.read_text().replace("70 samples", "190 samples"))
    jobs = path.with_name("job_stats")
    jobs.write_text(jobs.read_text().replace("samples:           1", "samples:          31"))
    load = collector.collect(60.0)
    assert load.operations_per_s == {"scratch-MDT0000": {"open": 2.0}}
    assert load.jobs == (("mdtest.0", 0.5),)


def test_what_a_dump_says_of_every_version(version: str, data: Path) -> None:
    found = survey(data / "versions" / version / "oss")
    assert found.roles == ("oss",) and found.missing == []
    forms = {s.parameter: s.form for s in found.sources if s.read}
    stats_form, jobs_form = EXPECTED[version].forms
    assert forms["obdfilter.*.stats"].startswith(stats_form) and forms["obdfilter.*.job_stats"] == jobs_form
    assert ("no times" in forms["obdfilter.*.stats"]) is (version == "2.12-ldiskfs")
    timed = next(s.parsed for s in found.sources if s.parameter == "osd-*.*.brw_stats")
    writes = "not timed" if version == "2.16-zfs" else "80 timed, 0.720 s"
    assert timed == f"10 reads (10 timed, 0.060 s), 80 writes ({writes})"


def test_the_table_names_where_each_version_has_each_parameter(version: str, data: Path) -> None:
    """Of a parameter's places, the file lies where the table says that this version has it."""
    number = tuple(map(int, version.partition("-")[0].split(".")))
    for node in ("oss", "mds"):
        for source in survey(data / "versions" / version / node).sources:
            if source.parameter not in PARAMETERS or not source.read:
                continue
            versions = next(
                v for p, v in PARAMETERS[source.parameter].places.items() if Path(source.path).match(p)
            )
            first, _, last = versions.partition(" ")[0].partition("-")
            low, high = (tuple(map(int, (v or first).split("."))) for v in (first, last))
            assert low <= number <= high, (source.parameter, source.path, versions)


def test_several_file_systems_on_one_server(data: Path) -> None:
    report = Collector(data / "versions" / "2.15-ldiskfs" / "oss", "oss1").collect(0.0)
    assert {o.fs_name for o in report.osts} == {"home", "scratch"}


def test_a_target_under_two_names_counts_once(data: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(data / "versions" / "2.12-ldiskfs" / "oss", tmp_path / "oss"))
    for kind in ("sys/fs/lustre/obdfilter", "proc/fs/lustre/obdfilter"):
        shutil.copytree(root / kind / "scratch-OST0001", root / kind / "scratch-OST00001")
    report: list[OstReport] = list(Collector(root, "oss1").collect(0.0).osts)
    assert [(o.fs_name, o.index) for o in report] == [("scratch", 0), ("scratch", 1)]


def test_the_trees_are_what_their_maker_writes(data: Path) -> None:
    spec = importlib.util.spec_from_file_location("make", data / "versions" / "make.py")
    assert spec and spec.loader
    make = importlib.util.module_from_spec(spec)
    sys.modules["make"] = make
    spec.loader.exec_module(make)
    for version in make.VERSIONS:
        for node in ("oss", "mds"):
            root = data / "versions" / version.name / node
            kept = {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}
            assert kept == getattr(make, node)(version)
