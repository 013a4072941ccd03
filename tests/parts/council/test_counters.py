"""The sampler on captured servers and a captured client: what their counters say that came between two readings."""

from __future__ import annotations

import math
import random
import re
import shutil
from pathlib import Path

import pytest

from tarazu.parts.council.counters import MAX_PAGES, SAMPLERS, ClientSampler, Kind, OssSampler
from tarazu.parts.council.pattern import Observation, detect
from tarazu.stats import brw_stats
from tests.hostile.statistics import mutate
from tests.stats.conftest import DATA, Series, SickDisk, put
from tests.stats.test_overflowed_counters import STATS, SUMS, with_sum

DEBUG = "sys/kernel/debug/lustre"
VERSIONS = ("2.12-ldiskfs", "2.15-ldiskfs", "2.16-ldiskfs", "2.16-zfs")


@pytest.fixture
def series(tmp_path: Path) -> Series:
    """Only of what it sets: the captured tree is large."""
    places = [f"{DEBUG}/ost/OSS/ost_io", "sys/kernel/debug/lnet", "proc"]
    for ost in range(5):
        name = f"lustre-OST{ost:04x}"
        places += [f"{DEBUG}/{of}/{name}" for of in ("obdfilter", "osd-ldiskfs")]
        places.append(f"sys/fs/lustre/obdfilter/{name}")
    for place in places:
        (tmp_path / "oss" / place).mkdir(parents=True)
    return Series(tmp_path / "oss")


@pytest.fixture
def sick_disk(tmp_path: Path) -> SickDisk:
    return SickDisk(tmp_path / "sick")


def total(root: Path, row: str) -> tuple[int, int]:
    """(samples, sum) of a row, over all OSTs."""
    texts = [path.read_text() for path in (root / DEBUG / "obdfilter").glob("*/stats")]
    found = [re.search(rf"(?m)^{row}\s+(\d+) samples \[bytes\] \d+ \d+ (\d+)", text) for text in texts]
    return sum(int(m[1]) for m in found if m), sum(int(m[2]) for m in found if m)


def test_an_oss_under_ior(series: Series) -> None:
    """All that IOR wrote in the captured series, moment by moment, is seen once."""
    sampler = OssSampler(series.root)
    begin = series.set(1)
    assert sampler.sample(begin) is None
    before = {row: total(series.root, row) for row in ("read_bytes", "write_bytes")}
    seen, times = [], []
    for moment in list(Series.MOMENTS)[1:]:
        times.append(series.set(moment))
        if observation := sampler.sample(times[-1]):
            seen.append(observation)
    for row, requests, size in (
        ("read_bytes", sum(o.read.requests for o in seen), sum(o.read.bytes for o in seen)),
        ("write_bytes", sum(o.write.requests for o in seen), sum(o.write.bytes for o in seen)),
    ):
        samples, bytes_ = total(series.root, row)
        assert (requests, size) == (samples - before[row][0], bytes_ - before[row][1]), row
    assert sum(o.write.bytes for o in seen) > 50e6
    assert all(0 < o.elapsed_s <= times[-1] - begin and o.demand >= 0 for o in seen)
    assert max(o.demand for o in seen) > 1


def test_ior_on_a_server_is_a_contiguous_write_of_large_requests(sick_disk: SickDisk) -> None:
    sampler = OssSampler(sick_disk.roots["oss1"])
    patterns, known = [], []
    for moment in SickDisk.MOMENTS:
        at_s = sick_disk.set("oss1", moment)
        observation = sampler.sample(at_s)
        if observation and (pattern := detect(observation)):
            patterns.append(pattern)
            known.append(observation.write.discontiguous)
    # An OST that begins to do something is not known at once.
    assert known[1:] == [0.0] * 5
    assert set(patterns[1:]) <= {("write", "contiguous", 1 << n) for n in (20, 21, 22)}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_says_what_it_can(version: str, tmp_path: Path) -> None:
    """Twice as much of everything came, of each OST ten reads together and ten writes in pieces."""
    root = Path(shutil.copytree(DATA / "versions" / version / "oss", tmp_path / "oss"))
    sampler = OssSampler(root)
    assert sampler.sample(0.0) is None
    assert sampler.sample(1.0) is None, "nothing came"
    sampler.sample(2.0)
    osts = 0
    for path in root.rglob("stats"):
        if "/obdfilter/" in str(path) and "exports" not in path.parts:
            path.write_text(doubled(path.read_text()))
            osts += 1
    row = re.compile(r"(discontiguous pages.*\n)(\d):(.*)\n")
    for path in root.rglob("brw_stats"):
        more = row.sub(lambda m: f"{m[0]}{int(m[2]) + 1}: 0 0 100 | 10 11 100\n", path.read_text())
        path.write_text(more.replace(" 10   0   0   |", " 20   0   0   |"))
    seen = sampler.sample(4.0)
    assert seen and osts and seen.elapsed_s == 2.0
    assert seen.write.requests > 0 and seen.write.bytes > 0
    assert seen.write.discontiguous == 1.0
    assert seen.read.discontiguous == (-1.0 if "zfs" in version else 0.0)


def doubled(text: str) -> str:
    return re.sub(
        r"(?m)^((?:read|write)_bytes\s+)(\d+)( samples \[bytes\] \d+ \d+ )(\d+)",
        lambda m: f"{m[1]}{2 * int(m[2])}{m[3]}{2 * int(m[4])}",
        text,
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("0:\t\t 90 90 90 | 5 50 50\n1:\t\t 10 10 100 | 5 50 100\n", ((10, 100), (5, 10))),
        ("1:\t\t 90 90 90 | 5 50 50\n2:\t\t 10 10 100 | 5 50 100\n", ((10, 100), (5, 10))),
        ("3:\t\t 90 90 90 | 5 50 50\n4:\t\t 10 10 100 | 5 50 100\n", ((100, 100), (10, 10))),
        ("1: 90 90 90 | 5 50 50 | new\n2: 10 10 100 | 5 50 100 | new\n", ((10, 100), (5, 10))),
        ("", ((0, 0), (0, 0))),
    ],
)
def test_pieces_are_counted_from_one_or_gaps_from_none(
    rows: str, expected: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    """ldiskfs until 2.15 and ZFS have 0 for a contiguous bulk I/O, ldiskfs since 2.16 has 1 (`dr_lextents`)."""
    head = "                           read      |     write\n"
    table = f"{head}discontiguous pages    rpcs  % cum % |  rpcs        % cum %\n{rows}\n"
    rest = f"{head}discontiguous blocks   rpcs  % cum % |  rpcs        % cum %\n7: 7 7 7 | 7 7 7\n"
    assert brw_stats.pieces(table + rest) == expected
    assert brw_stats.pieces(rest) == ((0, 0), (0, 0))


def test_counters_that_began_anew_count_from_nothing(series: Series) -> None:
    sampler = OssSampler(series.root)
    series.set(4)
    assert sampler.sample(0.0) is None
    for path in (series.root / DEBUG / "obdfilter").glob("*/stats"):
        path.write_text(
            "snapshot_time 2000.0 secs.nsecs\nstart_time 1999.0 secs.nsecs\n"
            "write_bytes 4 samples [bytes] 4096 4096 16384\n"
        )
    seen = sampler.sample(1.0)
    assert seen and (seen.write.bytes, seen.write.requests, seen.read.bytes) == (5 * 16384, 20, 0)


def test_an_ost_that_comes_counts_from_the_next_reading_on(series: Series) -> None:
    """What it has counted in years elsewhere did not come in this second."""
    path = series.root / DEBUG / "obdfilter/lustre-OST0001/stats"
    series.set(1)
    content = path.read_text()
    path.unlink()
    sampler = OssSampler(series.root)
    assert sampler.sample(0.0) is None
    path.write_text(content)
    assert sampler.sample(61.0) is None
    path.write_text(doubled(content))
    seen = sampler.sample(62.0)
    assert seen and seen.write.bytes == int(re.findall(r"(?m)^write_bytes .* (\d+) \d+$", content)[0])
    path.unlink()
    assert sampler.sample(63.0) is None


def test_of_many_busy_osts_a_few_say_how_contiguous_they_are(tmp_path: Path) -> None:
    """Each reading of `brw_stats` costs as much as three of `stats`; all bytes count all the same."""
    root = tmp_path / "oss"

    def set_all(counts: int) -> None:
        table = f"discontiguous pages    rpcs  % cum % |  rpcs        % cum %\n1: 0 0 0 | {counts} 9 9\n"
        for ost in range(12):
            name = f"lustre-OST{ost:04x}"
            row = f"write_bytes {counts} samples [bytes] 1 1 {counts << 20}"
            put(root / DEBUG / f"obdfilter/{name}/stats", f"snapshot_time 1.0 s\n{row}")
            put(root / DEBUG / f"osd-ldiskfs/{name}/brw_stats", table)

    sampler = OssSampler(root)
    read: list[str] = []
    sampler.read = lambda path, parse: (  # type: ignore[method-assign]
        read.append(path),
        OssSampler.read(sampler, path, parse),
    )[1]
    seen: list[Observation | None] = []
    for moment in range(4):
        set_all(10 * (moment + 1))
        read.clear()
        seen.append(sampler.sample(float(moment)))
        assert sum(Path(path).name == "brw_stats" for path in read if path) <= MAX_PAGES
    assert [o and (o.write.bytes, o.write.discontiguous) for o in seen] == [None, *[(120 << 20, 0.0)] * 3]


def client_stats(root: Path) -> Path:
    path = root / DEBUG / "llite/lustre-ff21/stats"
    put(path, (DATA / "client/llite.stats.txt").read_text())
    return path


def test_a_client_with_the_requests_of_its_programs(tmp_path: Path) -> None:
    stats, sampler = client_stats(tmp_path), ClientSampler(tmp_path)
    assert sampler.sample(0.0) is None
    stats.write_text(doubled(stats.read_text()))
    seen = sampler.sample(1.0)
    assert seen and (seen.read.bytes, seen.read.requests) == (146751488, 760)
    assert (seen.write.bytes, seen.write.requests) == (318144512, 4103)
    assert str(detect(seen)) == "both unknown, 131072 B"


@pytest.mark.parametrize("kind", ["oss", "client"])
def test_files_changed_at_random_never_raise(kind: Kind, series: Series, tmp_path: Path) -> None:
    client_stats(series.root)
    series.set(4)
    names = {
        "oss": ("obdfilter/*/stats", "osd-*/*/brw_stats", "ost/OSS/*/stats"),
        "client": ("llite/*/*",),
    }
    files = [path for name in names[kind] for path in sorted((series.root / DEBUG).glob(name))]
    assert files
    good = {path: path.read_bytes() for path in files}
    source = random.Random(7)
    sampler = SAMPLERS[kind](series.root)
    for moment in range(40):
        path = source.choice(files)
        path.write_bytes(mutate(good[path], source))
        seen = sampler.sample(float(moment))
        if seen:
            for direction in (seen.read, seen.write):
                assert 0 <= direction.bytes < 2**63 and 0 <= direction.requests < 2**63
                assert direction.discontiguous == -1 or 0 <= direction.discontiguous <= 1
            assert math.isfinite(seen.demand) and seen.demand >= 0
            detect(seen)


@pytest.mark.parametrize("number", SUMS)
def test_bytes_that_overflowed_are_no_traffic_to_tune_by(oss_root: Path, number: str) -> None:
    sampler, path = OssSampler(oss_root), oss_root / STATS
    whole = path.read_text()
    seen = []
    for moment, change in enumerate((None, with_sum("write_bytes", number), None, None)):
        path.write_text(change(whole) if change else whole)
        seen.append(sampler.sample(float(moment)))
    assert seen == [None] * 4, "nothing was written meanwhile"
