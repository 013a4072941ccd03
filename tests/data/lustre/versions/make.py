"""Writes the trees beside this file: `python tests/data/lustre/versions/make.py`.

Each format is written here as Lustre's source of that version prints it; SOURCES.md names file and line of each. The
numbers are made up, and simple, so that what is expected of them can be reckoned by hand.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PROC, SYS, DEBUG = "proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre"
NOW, START = 1700000600, 1700000000
Row = tuple[int, str, int, int, int]
"""samples, unit, min, max, sum"""


class Version(NamedTuple):
    name: str
    number: tuple[int, int]
    osd: str
    osts: tuple[str, ...]

    @property
    def old(self) -> bool:
        return self.number < (2, 15)


VERSIONS = (
    Version("2.12-ldiskfs", (2, 12), "osd-ldiskfs", ("scratch-OST0000", "scratch-OST0001")),
    Version("2.15-ldiskfs", (2, 15), "osd-ldiskfs", ("scratch-OST0002", "home-OST0000")),
    Version("2.16-ldiskfs", (2, 16), "osd-ldiskfs", ("scratch-OST001f",)),
    Version("2.16-zfs", (2, 16), "osd-zfs", ("scratch-OST0003", "scratch-OST0004")),
)


def header(version: Version, width: int, colon: str, prefix: str = "") -> str:
    """`lprocfs_stats_header`; 2.12 has but its first line."""
    times = [("snapshot_time", f"{NOW}.000000001")]
    if not version.old:
        times += [("start_time", f"{START}.000000002"), ("elapsed_time", "599.999999999")]
    return "".join(f"{prefix}{name + colon:<{width}} {value} secs.nsecs\n" for name, value in times)


def stats(version: Version, rows: Mapping[str, Row], *, squares: bool = True) -> str:
    """`lprocfs_stats_seq_show`; rows without samples are left out, and what a counter is not configured for."""
    text = header(version, 25, "")
    for name, (samples, unit, low, high, total) in rows.items():
        if samples:
            text += f"{name:<25} {samples} samples [{unit}]"
            if total:
                text += f" {low} {high} {total}" + (f" {high * total}" if squares else "")
            text += "\n"
    return text


def obdfilter(version: Version, scale: int) -> dict[str, Row]:
    """`ofd_stats_counter_init`: from 2.15 on also times; before, requests are only counted."""
    bytes_of = {
        "read_bytes": (10 * scale, "bytes", 4096, 1 << 20, 10 * scale << 20),
        "write_bytes": (20 * scale, "bytes", 4096, 4 << 20, 20 * scale << 22),
    }
    if version.old:
        return {**bytes_of, "setattr": (3, "reqs", 0, 0, 0), "statfs": (99, "reqs", 0, 0, 0)}
    return {
        **bytes_of,
        "read": (10 * scale, "usecs", 100, 9000, 10_000 * scale),
        "write": (20 * scale, "usecs", 200, 9000, 50_000 * scale),
        "setattr": (3, "usecs", 60, 90, 200),
        "statfs": (99, "usecs", 2, 9, 400),
    }


def job_stats(version: Version, jobs: Mapping[str, tuple[int, int]]) -> str:
    """`lprocfs_jobstats_seq_show`: 2.12 has no blank after `max:` and `sum:`, 2.15 `sumsq`, 2.16 `hist`."""
    text = "job_stats:\n"
    for job, (read, written) in jobs.items():
        text += f"- {'job_id:':<16} {job}\n"
        text += f"  {'snapshot_time:':<16} {NOW}\n" if version.old else header(version, 16, ":", "  ")
        rows = ["read_bytes", "write_bytes"]
        rows += (
            ["getattr", "setattr", "punch"]
            if version.old
            else ["read", "write", "getattr", "setattr", "punch"]
        )
        for name in rows:
            total = {"read_bytes": read, "write_bytes": written}.get(name, 0)
            unit = "bytes" if name.endswith("bytes") else "reqs" if version.old else "usecs"
            text += f"  {name}:{' ' * (15 - len(name))} {{ samples: {min(total, 1):11d}, unit: {unit:>5}"
            if version.old and unit == "bytes":
                text += f", min:{total:8d}, max:{total:8d}, sum:{total:16d}"
            elif not version.old:
                text += f", min: {total:8d}, max: {total:8d}, sum: {total:16d}, sumsq: {total:18d}"
            if version.number >= (2, 16) and unit == "bytes":
                text += f", hist: {{ {f'{total.bit_length() - 20}M: 1' if total else ''} }}"
            text += " }\n"
    return text


def brw_stats(version: Version) -> str:
    """`brw_stats_show`: ZFS has no table of disk blocks from 2.15 on, and never the time of a write."""
    zfs = version.osd == "osd-zfs"
    old = f"snapshot_time:         {NOW}.000000001 (secs.nsecs)\n"
    text = old if version.old else header(version, 25, ":")
    together = (
        "1" if not zfs and version.number >= (2, 16) else "0"
    )  # pieces (`dr_lextents`), before that gaps
    tables: list[tuple[str, str, Sequence[tuple[str, int, int]]]] = [
        ("pages per bulk r/w", "rpcs", [("256", 10, 0), ("512", 0, 0), ("1K", 0, 80)]),
        ("discontiguous pages", "rpcs", [(together, 10, 80)]),
        *(
            []
            if zfs
            else [("discontiguous blocks", "rpcs", []), ("disk fragmented I/Os", "ios", [("1", 10, 80)])]
        ),
        ("disk I/Os in flight", "ios", [("1", 6, 60), ("2", 4, 20)]),
        ("I/O time (1/1000s)", "ios", [("8", 10, 0)] if zfs else [("8", 10, 40), ("16", 0, 40)]),
        ("disk I/O size", "ios", [("1M", 10, 0), ("2M", 0, 0), ("4M", 0, 80)]),
        *([] if version.old else [("block maps msec", "maps", [])]),
    ]
    for name, unit, rows in tables:
        text += f"\n{' ':>26} read      |     write\n"
        text += f"{name:<22} {unit:<5} % cum % |  {unit:<11} % cum %\n"
        for label, reads, writes in rows:
            text += f"{label}:\t\t{reads:10d} {0:3d} {0:3d}   | {writes:4d} {0:3d} {0:3d}\n"
    return text


def oss(version: Version) -> dict[str, str]:
    files = {
        "proc/stat": "cpu  1000 0 500 8000 500 0 0 0 0 0\ncpu0 1000 0 500 8000 500 0 0 0 0 0\n",
        "proc/meminfo": "MemTotal:        1000000 kB\nMemFree:          400000 kB\nBuffers:          100000 kB\n"
        "Cached:           200000 kB\nShmem:             50000 kB\nSReclaimable:      50000 kB\n",
        "sys/kernel/debug/lnet/stats": "5 400 0 4294967290 4294967000 0 0 123456789 987654321 0 0\n",
        f"{DEBUG}/ost/OSS/ost_io/stats": ost_io(version),
    }
    osd_plain = PROC if version.old else SYS
    counters = PROC if version.number < (2, 17) else DEBUG
    for scale, ost in enumerate(version.osts, 1):
        files[f"{counters}/obdfilter/{ost}/stats"] = stats(
            version, obdfilter(version, scale), squares=not version.old
        )
        files[f"{counters}/obdfilter/{ost}/exports/10.0.0.7@o2ib/stats"] = stats(
            version, obdfilter(version, 1), squares=not version.old
        )
        files[f"{PROC}/obdfilter/{ost}/job_stats"] = job_stats(version, JOBS[version.number])
        brw = PROC if version.old else DEBUG
        files[f"{brw}/{version.osd}/{ost}/brw_stats"] = brw_stats(version)
        for name, value in (
            ("kbytestotal", 4000),
            ("kbytesfree", 3000),
            ("kbytesavail", 2000),
            ("filesfree", 500),
        ):
            files[f"{SYS}/obdfilter/{ost}/{name}"] = f"{value * scale}\n"
            files[f"{osd_plain}/{version.osd}/{ost}/{name}"] = f"{value * scale}\n"
        files[f"{SYS}/obdfilter/{ost}/degraded"] = f"{scale - 1}\n"
        if version.number >= (2, 16):
            files[f"{SYS}/obdfilter/{ost}/no_create"] = f"{scale - 1}\n"
        mntdev = f"pool{scale}/{ost}" if version.osd == "osd-zfs" else f"/dev/sd{'abc'[scale]}"
        files[f"{osd_plain}/{version.osd}/{ost}/mntdev"] = f"{mntdev}\n"
        files[f"{osd_plain}/{version.osd}/{ost}/nonrotational"] = "1\n"
    return files


JOBS = {
    (2, 12): {"4711": (0, 8 << 20), "my job?.1000": (1 << 20, 0)},
    (2, 15): {"4711": (0, 8 << 20), '"my\\x20job\\x3A.1000"': (1 << 20, 0)},
    (2, 16): {'"4711:0"': (0, 8 << 20), "a/b.1000": (1 << 20, 0)},
}


def ost_io(version: Version) -> str:
    """`ptlrpc_ldebugfs_register`: in all versions with sums of squares."""
    usec = "usec" if version.old else "usecs"
    return stats(
        version,
        {
            "req_waittime": (300, usec, 10, 9000, 600_000),
            "req_qdepth": (300, "reqs", 0, 2, 30),
            "req_active": (300, "reqs", 1, 6, 600),
            "ost_read": (30, usec, 300, 9000, 90_000),
            "ost_write": (60, usec, 300, 9000, 600_000),
        },
    )


def mds(version: Version) -> dict[str, str]:
    lod, osp = "scratch-MDT0000-mdtlov", "scratch-OST{:04x}-osc-MDT0000"
    md_stats: dict[str, Row] = {"open": (70, "usecs", 5, 9, 500), "close": (60, "usecs", 5, 9, 400)}
    if version.old:
        md_stats = {name: (row[0], "reqs", 0, 0, 0) for name, row in md_stats.items()}
    osd_plain = PROC if version.old else SYS
    threshold = PROC if version.old else SYS
    files = {
        "proc/stat": "cpu  1000 0 500 8000 500 0 0 0 0 0\n",
        "proc/meminfo": "MemTotal:        1000000 kB\nMemFree:          900000 kB\n",
        "sys/kernel/debug/lnet/stats": "5 400 0 100 100 0 0 1000 2000 0 0\n",
        f"{PROC}/lod/{lod}/pools/flash": "scratch-OST0001_UUID\nscratch-OST0002_UUID\n",
        f"{PROC}/lod/{lod}/target_obd": "0: scratch-OST0000_UUID ACTIVE\n3: scratch-OST0003_UUID INACTIVE\n",
        f"{SYS}/lod/{lod}/qos_prio_free": "91%\n",
        f"{threshold}/lod/{lod}/qos_threshold_rr": "17%\n",
        f"{SYS}/lod/{lod}/qos_maxage": "5 Sec\n" if version.old else "5\n",
        f"{PROC}/mdt/scratch-MDT0000/md_stats": stats(version, md_stats),
        f"{PROC}/mdt/scratch-MDT0000/job_stats": job_stats(version, {"mdtest.0": (0, 4096)}),
        f"{osd_plain}/{version.osd}/scratch-MDT0000/filesfree": "4321\n",
        f"{osd_plain}/{version.osd}/scratch-MDT0000/filestotal": "5000\n",
        f"{osd_plain}/{version.osd}/scratch-MDT0000/kbytestotal": "4000\n",
        f"{osd_plain}/{version.osd}/scratch-MDT0000/kbytesavail": "2000\n",
    }
    for index, (active, most, status, state) in enumerate(
        ((1, 20000, 0, "FULL"), (1, 0, 0, "FULL"), (1, 20000, -28, "FULL"), (0, 20000, -108, "DISCONN"))
    ):
        files[f"{SYS}/osp/{osp.format(index)}/active"] = f"{active}\n"
        files[f"{SYS}/osp/{osp.format(index)}/max_create_count"] = f"{most}\n"
        files[f"{SYS}/osp/{osp.format(index)}/prealloc_status"] = f"{status}\n"
        history = f"state_history:\n - [ {START}, CONNECTING ]\n - [ {START + 1}, {state} ]\n"
        files[f"{DEBUG}/osp/{osp.format(index)}/state"] = f"current_state: {state}\n{history}"
    return files


def main() -> None:
    for version in VERSIONS:
        for node, files in (("oss", oss(version)), ("mds", mds(version))):
            root = HERE / version.name / node
            shutil.rmtree(root, ignore_errors=True)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)


if __name__ == "__main__":
    main()
