"""The emulated nodes' alternate roots: they parse, and they follow what lies in the mount."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tarazu.sim.testbed import Testbed, statfiles
from tarazu.sim.testbed.statfiles import Counter
from tarazu.stats import brw_stats, diskstats

MIB = 1 << 20
SHAPE = Path(__file__).parents[1] / "data"


def read(root: Path, name: str) -> str:
    return (root / name).read_text()


def stats_rows(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()}


def kib(bed: Testbed, index: int, name: str) -> int:
    root = bed.oss_root(bed.oss_of_ost[index])
    return int(read(root, f"sys/fs/lustre/obdfilter/lustre-OST{index:04x}/{name}"))


def test_oss_files_follow_usage(bed, agent):
    bed.refresh()
    before = [kib(bed, i, "kbytesfree") for i in range(8)]
    root = bed.oss_root("oss2")
    stats = "sys/kernel/debug/lustre/obdfilter/lustre-OST0003/stats"
    was = stats_rows(read(root, stats)).get("write_bytes", ["0", "", "", "0", "0", "0", "0"])
    agent("fd = create('a', plain(2, osts=[3, 6])); os.ftruncate(fd, 20 * MIB); os.close(fd)")
    bed.refresh()
    drop = [b - kib(bed, i, "kbytesfree") for i, b in enumerate(before)]
    assert drop == [0, 0, 0, 10240, 0, 0, 10240, 0]
    assert kib(bed, 3, "kbytesavail") == kib(bed, 3, "kbytesfree")
    rows = stats_rows(read(root, stats))
    assert int(rows["write_bytes"][5]) - int(was[5]) == 10 * MIB
    assert rows["write_bytes"][1:3] == ["samples", "[bytes]"]
    assert int(rows["write"][0]) == int(rows["write_bytes"][0])
    lines = read(root, "proc/fs/lustre/obdfilter/lustre-OST0003/job_stats").splitlines()
    assert lines[:2] == ["job_stats:", "- job_id:          testbed.0"]
    assert any(
        re.match(r"  write_bytes: +\{ samples: +\d+, unit: bytes, min: .* hist: ", line) for line in lines
    )
    assert "disk I/O size" in read(root, "sys/kernel/debug/lustre/osd-ldiskfs/lustre-OST0003/brw_stats")
    assert len(read(root, "sys/kernel/debug/lnet/stats").split()) == 11


def test_a_slow_target_shows_in_the_time_of_its_disk_ios(bed, agent):
    speeds = bed.speeds()
    bed.set_ost(2, speed=speeds[2] / 10)
    agent("fd = create('a', plain(2, osts=[2, 4])); os.ftruncate(fd, 64 * MIB); os.close(fd)")
    bed.refresh()
    bed.set_ost(2, speed=speeds[2])

    def labels(index: int, table: str) -> list[int]:
        target = f"osd-ldiskfs/lustre-OST{index:04x}/brw_stats"
        found = brw_stats.parse(
            read(bed.oss_root(bed.oss_of_ost[index]), f"sys/kernel/debug/lustre/{target}")
        )
        return [label for label, (_, writes) in found.tables[table].items() if writes]

    assert max(labels(2, "I/O time (1/1000s)")) > 5 * max(labels(4, "I/O time (1/1000s)"))
    disk = diskstats.parse(read(bed.oss_root(bed.oss_of_ost[2]), "proc/diskstats"))["dm-2"]
    assert disk.write_ms > 0.9 * 64e3 * MIB / 2 / (speeds[2] / 10)
    requests = [
        stats_rows(
            read(
                bed.oss_root(bed.oss_of_ost[i]), f"sys/kernel/debug/lustre/obdfilter/lustre-OST{i:04x}/stats"
            )
        )
        for i in (2, 4)
    ]
    assert requests[0]["write"][4] == requests[1]["write"][4], "does not hold the wait for the disk"


def test_flags_appear_on_the_servers_and_on_the_mds(bed):
    bed.set_ost(1, degraded=True)
    bed.set_ost(2, no_create=True)
    bed.set_ost(3, active=False)
    bed.set_ost(4, full=True)
    bed.refresh()
    base = "sys/fs/lustre/obdfilter/lustre-OST"
    assert read(bed.oss_root("oss1"), f"{base}0001/degraded") == "1\n"
    assert read(bed.oss_root("oss2"), f"{base}0002/no_create") == "1\n"
    assert read(bed.oss_root("oss2"), f"{base}0003/no_create") == "0\n"
    assert kib(bed, 4, "kbytesavail") == 0
    osp = "sys/fs/lustre/osp/lustre-OST{:04x}-osc-MDT0000/{}"
    assert read(bed.mds_root, osp.format(2, "max_create_count")) == "0\n"
    assert read(bed.mds_root, osp.format(3, "active")) == "0\n"
    lod = "sys/fs/lustre/lod/lustre-MDT0000-mdtlov"
    assert [read(bed.mds_root, f"{lod}/{name}").strip() for name in ("numobd", "activeobd")] == ["8", "7"]
    assert "3: lustre-OST0003_UUID INACTIVE" in read(
        bed.mds_root, "sys/kernel/debug/lustre/lod/lustre-MDT0000-mdtlov/target_obd"
    )


def test_hosts_carry_the_load_that_is_set(bed):
    bed.set_oss("oss3", cpu=0.8, memory=0.5, lnet_bytes_per_s=1e9)
    bed.refresh()
    root = bed.oss_root("oss3")

    def ticks() -> tuple[int, int]:
        fields = read(root, "proc/stat").splitlines()[0].split()
        return int(fields[1]), int(fields[4])

    was = ticks()
    for _ in range(3):
        bed.refresh()
    busy, idle = (b - a for a, b in zip(was, ticks(), strict=True))
    assert busy >= idle
    memory = dict(line.split(":") for line in read(root, "proc/meminfo").splitlines())
    total, available = (int(memory[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    assert available / total == pytest.approx(0.5, abs=0.01)
    bed.set_oss("oss3", cpu=0.0, memory=0.2, lnet_bytes_per_s=0)


def test_clients_see_one_file_system_through_their_own_mounts(bed):
    bed.refresh()
    done = bed.exec(
        1, ["sh", "-c", "echo hi > $TARAZU_ROOT/mnt/from2; hostname"], capture_output=True, text=True
    )
    assert done.stdout == "client2\n"
    assert (bed.client_mount(0) / "from2").read_text() == "hi\n"
    assert bed.client_mount(0) != bed.client_mount(1)
    for number in (0, 1):
        root = bed.client_root(number)
        mounted = [line.split() for line in read(root, "proc/mounts").splitlines() if " lustre " in line]
        assert [m[1] for m in mounted] == [str(bed.client_mount(number))]
        osc = sorted(p.name for p in (root / "sys/fs/lustre/osc").iterdir())
        assert len(osc) == 8 and osc[0].startswith("lustre-OST0000-osc-")
        numobd = list(root.glob("sys/fs/lustre/lov/*/numobd"))
        assert [p.read_text() for p in numobd] == ["8\n"]
        members = next(root.glob("proc/fs/lustre/lov/*/pools/flash")).read_text().split()
        assert members == [f"lustre-OST{i:04x}_UUID" for i in (1, 2, 3)]
        mounts = bed.environment(number)["TARAZU_MOUNTS"]
        assert mounts == f"{bed.client_mount(number)}=lustre:{bed.mount}=lustre"


def test_counters_and_tables_are_written_in_lustres_form():
    counter = Counter("bytes")
    counter.add(100, 2)
    counter.add(50)
    assert (counter.samples, counter.least, counter.most, counter.total, counter.squares) == (
        3,
        50,
        100,
        250,
        22500,
    )
    text = statfiles.stats({"write_bytes": counter, "read": Counter("usecs")}, 20.5, 10.0)
    assert text.splitlines()[0].split() == ["snapshot_time", "20.500000000", "secs.nsecs"]
    assert text.splitlines()[3].split() == "write_bytes 3 samples [bytes] 50 100 250 22500".split()
    assert len(text.splitlines()) == 4  # rows without samples are omitted
    table = statfiles.brw_stats({4 << 20: 3, 4096: 1}, statfiles.time_classes(40.0, 4), 2.0, 1.0)
    size_rows = table.split("disk I/O size")[1].split("\n\n")[0].splitlines()[1:]
    assert [row.split(":")[0] for row in size_rows][-1] == "4M"
    assert size_rows[0].split("|")[1].split() == ["1", "25", "25"]
    assert size_rows[-1].split("|")[1].split() == ["3", "75", "100"]
    io = brw_stats.parse(table).io(brw_stats.WRITES)
    assert (io.ios, io.bytes, io.usecs) == (4, (12 << 20) + 4096, pytest.approx(160_000, rel=0.2))
    assert statfiles.lnet_stats(2**32 + 5, 1, 2**40, 7).split()[3] == "5"
