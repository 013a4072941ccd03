"""Where each Lustre parameter lives, for all versions from 2.12 to 2.17, in one table.

A parameter moved between procfs, sysfs and debugfs over the versions; every reader asks here, below any root,
and parses by content. debugfs is readable by root only.
"""

from __future__ import annotations

import re
from pathlib import Path

PROC = "proc/fs/lustre"
SYS = "sys/fs/lustre"
DEBUG = "sys/kernel/debug/lustre"

_CAPACITY = ("kbytestotal", "kbytesfree", "kbytesavail", "filesfree")

CANDIDATES: dict[str, tuple[str, ...]] = {
    "obdfilter.*.stats": (f"{DEBUG}/obdfilter/*/stats", f"{PROC}/obdfilter/*/stats"),
    "obdfilter.*.job_stats": (f"{PROC}/obdfilter/*/job_stats", f"{DEBUG}/obdfilter/*/job_stats"),
    "osd-*.*.brw_stats": (
        f"{DEBUG}/osd-*/*/brw_stats",
        f"{PROC}/osd-*/*/brw_stats",
        f"{DEBUG}/obdfilter/*/brw_stats",
        f"{PROC}/obdfilter/*/brw_stats",
    ),
    **{
        f"obdfilter.*.{name}": (
            f"{SYS}/obdfilter/*/{name}",
            f"{PROC}/obdfilter/*/{name}",
            f"{SYS}/osd-*/*/{name}",
            f"{PROC}/osd-*/*/{name}",
        )
        for name in _CAPACITY
    },
    **{
        f"obdfilter.*.{name}": (f"{SYS}/obdfilter/*/{name}", f"{PROC}/obdfilter/*/{name}")
        for name in ("degraded", "no_create", "readonly")
    },
    **{
        f"osd-*.*.{name}": (f"{SYS}/osd-*/*/{name}", f"{PROC}/osd-*/*/{name}")
        for name in ("mntdev", "nonrotational")
    },
    "ost.OSS.ost_io.stats": (f"{DEBUG}/ost/OSS/ost_io/stats", f"{PROC}/ost/OSS/ost_io/stats"),
    "diskstats": ("proc/diskstats",),
    "lnet.stats": ("sys/kernel/debug/lnet/stats", "proc/sys/lnet/stats"),
    "lod.*.pools.*": (f"{PROC}/lod/*/pools/*", f"{DEBUG}/lod/*/pools/*", f"{SYS}/lod/*/pools/*"),
    "lod.*.target_obd": (f"{DEBUG}/lod/*/target_obd", f"{PROC}/lod/*/target_obd"),
    "osp.*.active": (f"{SYS}/osp/*/active", f"{PROC}/osp/*/active"),
    "osp.*.max_create_count": (f"{SYS}/osp/*/max_create_count", f"{PROC}/osp/*/max_create_count"),
}
"""Parameter, as `lctl get_param` names it → patterns below the root, the preferred first."""

_TARGET = re.compile(r"(?P<fs>.+?)-OST(?P<index>[0-9a-fA-F]{4,8})")


def find(root: str | Path, parameter: str) -> dict[str, Path]:
    """Device name (what the last `*` matched, "" if there is none) → file, below `root`.

    A device found under several patterns has the path of the first. Nothing found: an empty dict.
    """
    base = Path(root)
    found: dict[str, Path] = {}
    for pattern in CANDIDATES[parameter]:
        if "*" not in pattern:
            if (base / pattern).exists():
                found.setdefault("", base / pattern)
            continue
        for path in sorted(base.glob(pattern)):
            found.setdefault(path.parent.name, path)
    return found


def find_pools(root: str | Path) -> list[tuple[str, str, Path]]:
    """(lod device, pool, file that lists its targets) of every OST pool known to the MDS below `root`."""
    found: dict[tuple[str, str], Path] = {}
    for pattern in CANDIDATES["lod.*.pools.*"]:
        for path in sorted(Path(root).glob(pattern)):
            found.setdefault((path.parent.parent.name, path.name), path)
    return [(device, pool, path) for (device, pool), path in found.items()]


def ost_target(device: str) -> tuple[str, int] | None:
    """(file system, OST index) of `scratch-OST001f` or `scratch-OST001f_UUID`, None for anything else.

    The index is hexadecimal. Longer device names (`scratch-OST001f-osc-MDT0000`) are accepted too.
    """
    match = _TARGET.match(device)
    return (match["fs"], int(match["index"], 16)) if match else None


def target_name(fs_name: str, index: int) -> str:
    """`scratch-OST001f`, as Lustre writes it."""
    return f"{fs_name}-OST{index:04x}"
