"""A ZFS server's memory is mostly the ARC, which gives way: neither its gate nor its load may take it for used.

The files are in the form of OpenZFS 2.1; their values are made up.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tarazu.stats import arcstats, host
from tarazu.stats.collector import Collector
from tarazu.stats.gate import Gate
from tarazu.units import GIB

from .conftest import put


@pytest.fixture
def zfs_root(oss_root: Path, data: Path) -> Path:
    """64 GiB, of which 44 are the ARC's; its minimum is 4."""
    shutil.copy(data / "zfs/meminfo", oss_root / "proc/meminfo")
    put(oss_root / "proc/spl/kstat/zfs/arcstats", (data / "zfs/arcstats").read_text())
    return oss_root


def test_the_arc_above_its_minimum_is_cache(zfs_root: Path) -> None:
    assert arcstats.reclaimable_bytes(zfs_root) == 40 * GIB + 123456
    with_arc = host.read(zfs_root).memory_load
    assert with_arc == pytest.approx((64 - 5 - 0.25 - 1.25 + 0.125 - 40) / 64, abs=0.005)
    assert Collector(zfs_root, "oss1").collect(0.0).memory_load == with_arc
    (zfs_root / "proc/spl/kstat/zfs/arcstats").unlink()
    assert host.read(zfs_root).memory_load == pytest.approx(with_arc + 40 / 64, abs=0.005)


def test_the_gate_of_a_zfs_server_opens(zfs_root: Path) -> None:
    gate = Gate(zfs_root, cpu_limit=0.70, memory_limit=0.50)
    gate.sample(0.0)
    assert gate.why_closed() == ""
    (zfs_root / "proc/spl/kstat/zfs/arcstats").unlink()
    gate.sample(5.0)
    assert gate.why_closed().startswith("memory at 9"), "the same server without what ZFS says"


@pytest.mark.parametrize(
    ("text", "reclaimable"),
    [
        ("", 0),
        ("garbage\x00", 0),
        ("13 1 0x01\nname type data\nsize 4 many\nc_min 4 5\n", 0),
        ("13 1 0x01\nname type data\nsize 4 10\n", 0),
        ("13 1 0x01\nname type data\nsize 4 10\nc_min 4 50\n", 0),
        ("13 1 0x01\nname type data\nc_min 4 5\nodd row\nsize 4 12\n", 7),
    ],
)
def test_what_zfs_does_not_say_is_no_cache(tmp_path: Path, text: str, reclaimable: int) -> None:
    put(tmp_path / "proc/spl/kstat/zfs/arcstats", text)
    assert arcstats.reclaimable_bytes(tmp_path) == reclaimable


def test_an_arc_that_seems_larger_than_all_memory_is_no_negative_load(zfs_root: Path) -> None:
    put(zfs_root / "proc/spl/kstat/zfs/arcstats", f"1\nname type data\nsize 4 {2**50}\nc_min 4 0\n")
    assert host.read(zfs_root).memory_load == 0.0


def test_this_node_is_seen_by_psutil_as_below_a_root(tmp_path: Path) -> None:
    (tmp_path / "proc").symlink_to("/proc")
    ours, before = host.read("/"), host.read(tmp_path)
    assert abs(ours.memory_load - before.memory_load) < 0.02
    assert 0 <= ours.cpu.total - before.cpu.total + 100 < 10_000
    assert 0 < ours.cpu.busy <= ours.cpu.total
