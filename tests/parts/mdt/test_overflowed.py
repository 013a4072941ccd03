"""One number of an MDT's statistics that overflowed, or one file that cannot be read: everything else holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.parts.mdt import ossd
from tarazu.stats.mds_load import MdsCollector
from tests.parts.mdt.conftest import collector as collector_of
from tests.parts.mdt.test_view import Servers
from tests.stats.test_overflowed_counters import CUT, SUMS, line, with_sum


@pytest.mark.parametrize("number", SUMS)
def test_an_overflowed_time_of_an_operation_leaves_the_mdts_others(number: str) -> None:
    text = "snapshot_time 7.0 secs\nopen 90 samples [usecs] 1 5 400 9\nclose 70 samples [usecs] 1 5 300 9\n"
    operations = ossd.parse(with_sum("open", number)(text)).operations
    assert {of.name: (of.count, of.usecs) for of in operations} == {"open": (90, 0), "close": (70, 300)}


def mds_root(root: Path, opened: tuple[str, str], closed: tuple[int, int], mdt: str = "MDT0000") -> None:
    stats = root / f"proc/fs/lustre/mdt/scratch-{mdt}/md_stats"
    stats.parent.mkdir(parents=True, exist_ok=True)
    stats.write_text(
        "snapshot_time 7.0 secs\n"
        f"open {opened[0]} samples [usecs] 1 5 {opened[1]} 9\n"
        f"close {closed[0]} samples [usecs] 1 5 {closed[1]} 9\n"
    )
    space = root / f"sys/fs/lustre/osd-ldiskfs/scratch-{mdt}"
    space.mkdir(parents=True, exist_ok=True)
    for name in ossd.CAPACITY:
        (space / name).write_text("1000\n")
        other = root / f"sys/fs/lustre/mdt/scratch-{mdt}/{name}"
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("1000\n")


@pytest.mark.parametrize("number", SUMS)
def test_an_mdt_whose_times_of_one_operation_overflowed_is_known_in_all_others(
    tmp_path: Path, number: str
) -> None:
    collector, servers = collector_of(tmp_path, "mds1"), Servers()
    load = MdsCollector(tmp_path)
    for moment, sum_usecs in enumerate(("4000", number, "8000")):
        mds_root(tmp_path, (str(100 + 10 * moment), sum_usecs), (50 + 20 * moment, 1000 + 200 * moment))
        report = collector.collect(float(moment))
        assert not {"mdt.*.md_stats"} & set(report.unreadable)
        servers.take(report, float(moment))
        of = servers.part.details("scratch", float(moment))[0].operations
        rates = load.collect(float(moment)).operations_per_s.get("scratch-MDT0000", {})
        if moment:
            assert of and of["close"] == (20.0, pytest.approx(10e-6)) and of["open"] == (10.0, None)
            assert rates == {"open": 10.0, "close": 20.0}


@pytest.mark.parametrize("row", CUT)
def test_an_operation_whose_row_cannot_be_read_is_unknown_alone(tmp_path: Path, row: str) -> None:
    collector, servers = collector_of(tmp_path, "mds1"), Servers()
    for moment in range(4):
        mds_root(tmp_path, (str(100 + 10 * moment), "4000"), (50 + 20 * moment, 1000 + 200 * moment))
        if moment == 1:
            path = tmp_path / "proc/fs/lustre/mdt/scratch-MDT0000/md_stats"
            path.write_text(line(r"^(open) .*", row)(path.read_text()))
        servers.take(collector.collect(float(moment)), float(moment))
        of = servers.part.details("scratch", float(moment))[0].operations
        assert moment == 0 or (of and of["close"] == (20.0, pytest.approx(10e-6))), moment
        assert moment == 0 or (of and of.get("open") == ((10.0, None) if moment == 3 else None)), of


def test_an_mdt_whose_counters_cannot_be_read_blanks_no_other(tmp_path: Path) -> None:
    collector, servers = collector_of(tmp_path, "mds1"), Servers()
    for moment in range(4):
        for mdt in ("MDT0000", "MDT0001"):
            mds_root(tmp_path, (str(100 + 10 * moment), "4000"), (50 + 20 * moment, 1000), mdt)
        if moment == 1:
            (tmp_path / "proc/fs/lustre/mdt/scratch-MDT0001/md_stats").write_text("rubbish\n")
        servers.take(collector.collect(float(moment)), float(moment))
        details = servers.part.details("scratch", float(moment))
        known = [index for index, of in details.items() if of.operations]
        assert known == [[], [0], [0], [0, 1]][moment]
