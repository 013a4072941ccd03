"""Where each Lustre parameter is, for all versions from 2.12 to 2.17 and for ldiskfs and ZFS, in one table.

A parameter moved between procfs, sysfs and debugfs over the versions; every reader asks here, below any root,
and parses by content. debugfs is readable by root only. The places were read in Lustre's source at 2.12.9, 2.15.7,
2.16.1 and 2.17.0 (`tests/data/lustre/SOURCES.md` names files and lines).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

PROC = "proc/fs/lustre"
SYS = "sys/fs/lustre"
DEBUG = "sys/kernel/debug/lustre"


class Parameter(NamedTuple):
    """One parameter: who has it, what it is read for, and where it lies."""

    role: str
    """`oss`, `mds`, `node` (both) or `client`."""
    use: str
    places: Mapping[str, str]
    """Pattern below the root → versions that have it there, as `2.12-2.16`; the preferred pattern first."""
    expected: bool = True
    """Its absence is worth a word: every supported version has it."""


def _oss(use: str, places: Mapping[str, str], *, expected: bool = True) -> Parameter:
    return Parameter("oss", use, places, expected)


def _mds(use: str, places: Mapping[str, str], *, expected: bool = True) -> Parameter:
    return Parameter("mds", use, places, expected)


def _client(use: str, places: Mapping[str, str]) -> Parameter:
    return Parameter("client", use, places, expected=False)


ALL = "2.12-2.17"

PARAMETERS: dict[str, Parameter] = {
    "obdfilter.*.stats": _oss(
        "bytes, requests and times of each OST",
        {f"{DEBUG}/obdfilter/*/stats": "2.17", f"{PROC}/obdfilter/*/stats": "2.12-2.16"},
    ),
    "obdfilter.*.job_stats": _oss(
        "bytes of each job on each OST",
        {f"{PROC}/obdfilter/*/job_stats": ALL, f"{DEBUG}/obdfilter/*/job_stats": "fallback"},
    ),
    "obdfilter.*.exports.*.stats": _oss(
        "bytes of each client, when asked for (`ossd.exports`)",
        {
            f"{DEBUG}/obdfilter/*/exports/*/stats": "2.17",
            f"{PROC}/obdfilter/*/exports/*/stats": "2.12-2.16",
        },
        expected=False,
    ),
    "osd-*.*.brw_stats": _oss(
        "time and size of disk I/Os of each OST",
        {
            f"{DEBUG}/osd-*/*/brw_stats": "2.15-2.17",
            f"{PROC}/osd-*/*/brw_stats": "2.12",
            f"{DEBUG}/obdfilter/*/brw_stats": "fallback",
            f"{PROC}/obdfilter/*/brw_stats": "2.12 (a link)",
        },
    ),
    **{
        f"obdfilter.*.{name}": _oss(
            "space and objects left of each OST",
            {
                f"{SYS}/obdfilter/*/{name}": ALL,
                f"{PROC}/obdfilter/*/{name}": "fallback",
                f"{SYS}/osd-*/*/{name}": "2.15-2.17",
                f"{PROC}/osd-*/*/{name}": "2.12",
            },
        )
        for name in ("kbytestotal", "kbytesfree", "kbytesavail", "filesfree")
    },
    **{
        f"obdfilter.*.{name}": _oss(
            "whether the OST takes new objects",
            {f"{SYS}/obdfilter/*/{name}": versions, f"{PROC}/obdfilter/*/{name}": "fallback"},
            expected=False,
        )
        for name, versions in (("degraded", ALL), ("no_create", "2.16-2.17"), ("readonly", "2.17"))
    },
    "obdfilter.*.recovery_status": _oss(
        "whether the OST recovers: then nothing is changed",
        {
            f"{DEBUG}/obdfilter/*/recovery_status": "2.17",
            f"{PROC}/obdfilter/*/recovery_status": "2.12-2.16",
        },
        expected=False,
    ),
    "osd-*.*.mntdev": _oss(
        "the block device of each OST (of ldiskfs)",
        {f"{SYS}/osd-*/*/mntdev": "2.15-2.17", f"{PROC}/osd-*/*/mntdev": "2.12"},
        expected=False,
    ),
    "osd-*.*.nonrotational": _oss(
        "flash or disk",
        {f"{SYS}/osd-*/*/nonrotational": "2.15-2.17", f"{PROC}/osd-*/*/nonrotational": "2.12"},
        expected=False,
    ),
    "ost.OSS.ost_io.stats": _oss(
        "queue of the server, time of its bulk requests",
        {f"{DEBUG}/ost/OSS/ost_io/stats": ALL, f"{PROC}/ost/OSS/ost_io/stats": "fallback"},
    ),
    "diskstats": _oss("time of I/Os of the OSTs' own devices", {"proc/diskstats": ALL}, expected=False),
    "lnet.stats": Parameter(
        "node",
        "LNet bytes of the node",
        {"sys/kernel/debug/lnet/stats": ALL, "proc/sys/lnet/stats": "fallback (a link)"},
    ),
    "lnet.routes": Parameter(
        "node",
        "LNet routers that it uses, and whether it is one",
        {"sys/kernel/debug/lnet/routes": ALL, "proc/sys/lnet/routes": "fallback (a link)"},
        expected=False,
    ),
    "lnet.nis": Parameter(
        "node",
        "own NIDs of an LNet router",
        {"sys/kernel/debug/lnet/nis": ALL, "proc/sys/lnet/nis": "fallback (a link)"},
        expected=False,
    ),
    "lod.*.pools.*": _mds(
        "OST pools",
        {
            f"{PROC}/lod/*/pools/*": ALL,
            f"{DEBUG}/lod/*/pools/*": "fallback",
            f"{SYS}/lod/*/pools/*": "fallback",
        },
        expected=False,
    ),
    **{
        f"lod.*.pool.*.{name}": _mds(
            "OST pools that spill over into another one",
            {f"{PROC}/lod/*/pool/*/{name}": "2.15-2.17", f"{DEBUG}/lod/*/pool/*/{name}": "fallback"},
            expected=False,
        )
        for name in ("spill_target", "spill_threshold_pct", "spill_is_active")
    },
    "lod.*.target_obd": _mds(
        "OSTs that the administrator made inactive",
        {f"{DEBUG}/lod/*/target_obd": "2.17", f"{PROC}/lod/*/target_obd": "2.12-2.16"},
    ),
    **{
        f"lod.*.{name}": _mds(
            "how Lustre itself chooses OSTs",
            {f"{SYS}/lod/*/{name}": sysfs, f"{PROC}/lod/*/{name}": procfs},
        )
        for name, sysfs, procfs in (
            ("qos_prio_free", ALL, "fallback"),
            ("qos_threshold_rr", "2.15-2.17", "2.12"),
            ("qos_maxage", ALL, "fallback"),
        )
    },
    "osp.*.active": _mds(
        "OSTs that the administrator made inactive",
        {f"{SYS}/osp/*/active": ALL, f"{PROC}/osp/*/active": "fallback"},
    ),
    "osp.*.max_create_count": _mds(
        "OSTs closed for new objects",
        {f"{SYS}/osp/*/max_create_count": ALL, f"{PROC}/osp/*/max_create_count": "fallback"},
    ),
    "osp.*.prealloc_status": _mds(
        "OSTs that refuse new objects, and why",
        {f"{SYS}/osp/*/prealloc_status": ALL, f"{PROC}/osp/*/prealloc_status": "fallback"},
    ),
    "osp.*.state": _mds(
        "whether the MDS is connected to the OST",
        {f"{DEBUG}/osp/*/state": ALL, f"{PROC}/osp/*/state": "fallback"},
    ),
    "mdt.*.md_stats": _mds(
        "metadata operations",
        {f"{PROC}/mdt/*/md_stats": ALL, f"{DEBUG}/mdt/*/md_stats": "fallback"},
    ),
    "mdt.*.job_stats": _mds(
        "metadata operations of each job",
        {f"{PROC}/mdt/*/job_stats": ALL, f"{DEBUG}/mdt/*/job_stats": "fallback"},
    ),
    "mdt.*.recovery_status": _mds(
        "whether the MDT recovers: then nothing is changed",
        {f"{PROC}/mdt/*/recovery_status": ALL, f"{DEBUG}/mdt/*/recovery_status": "fallback"},
        expected=False,
    ),
    **{
        f"mdt.*.{name}": _mds(
            "inodes and space of each MDT",
            {
                f"{SYS}/mdt/*/{name}": "fallback",
                f"{PROC}/mdt/*/{name}": "fallback",
                f"{SYS}/osd-*/*/{name}": "2.15-2.17",
                f"{PROC}/osd-*/*/{name}": "2.12",
            },
        )
        for name in ("filestotal", "filesfree", "kbytestotal", "kbytesavail")
    },
    **{
        f"mdt.*.{name}": _mds(
            "whether the MDT takes new directories",
            {f"{SYS}/mdt/*/{name}": "2.16-2.17", f"{PROC}/mdt/*/{name}": "fallback"},
            expected=False,
        )
        for name in ("no_create", "readonly")
    },
    "llite.*.stats": _client(
        "bytes and requests of programs, where parameters learn",
        {f"{DEBUG}/llite/*/stats": ALL, f"{PROC}/llite/*/stats": "fallback"},
    ),
}

CANDIDATES: dict[str, tuple[str, ...]] = {name: tuple(p.places) for name, p in PARAMETERS.items()}
"""Parameter, as `lctl get_param` names it → patterns below the root, the preferred first."""


_ROOTS = {PROC: "procfs", SYS: "sysfs", DEBUG: "debugfs"}
_ON = {"oss": "OSS", "mds": "MDS", "node": "both", "client": "client"}


def _where(name: str, places: Mapping[str, str]) -> str:
    """The file systems of a parameter, with versions; places that no known version needs are left out."""
    found = []
    for place, versions in places.items():
        if versions.startswith("fallback"):
            continue
        root = next((root for root in _ROOTS if place.startswith(root)), "")
        device = place.removeprefix(root + "/").split("/")[0]
        where = _ROOTS[root] if root else f"`/{place}`"
        other = f" (`{device}`)" if root and device != name.split(".", maxsplit=1)[0] else ""
        found.append(f"{where}{other}" + (f" {versions}" if versions != ALL else ""))
        if versions == ALL:
            break
    return ", ".join(found)


def table() -> str:
    """The table of parameters of docs/sources.md: those that lie and serve alike in one row."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for name, (role, use, places, expected) in PARAMETERS.items():
        of = (_ON[role], use, _where(name, places))
        rows.setdefault(of, []).append(f"`{name}`" + ("" if expected else "†"))
    lines = ["| parameter | on | read for | where |", "|---|---|---|---|"]
    lines += [f"| {', '.join(names)} | {' | '.join(of)} |" for of, names in rows.items()]
    return "\n".join(lines)


_TARGET = re.compile(r"(?P<fs>.+?)-OST(?P<index>[0-9a-fA-F]{4,8})")
_MDT = re.compile(r"(?P<fs>.+?)-MDT(?P<index>[0-9a-fA-F]{4})$")
_MDT_CONNECTION = re.compile(r"(?P<fs>.+?)-MDT(?P<index>[0-9a-fA-F]{4})-osp-MDT[0-9a-fA-F]{4}$")


def find(root: str | Path, parameter: str) -> dict[str, Path]:
    """Device name (what the last `*` matched, "" if there is none) → file, below `root`.

    A device found under several patterns has the path of the first. Nothing found: an empty dict.
    """
    paths: dict[str, Path] = {}
    for names, path in _matches(root, parameter):
        paths.setdefault(names[-1] if names else "", path)
    return paths


def find_exports(root: str | Path) -> dict[tuple[str, str], Path]:
    """(OST's device, NID of a client) → its `stats`."""
    paths: dict[tuple[str, str], Path] = {}
    for names, path in _matches(root, "obdfilter.*.exports.*.stats"):
        paths.setdefault((names[0], names[1]), path)
    return paths


def find_pools(root: str | Path) -> list[tuple[str, str, Path]]:
    """(lod device, pool, file that lists its targets) of every OST pool known to the MDS below `root`."""
    return find_in_pools(root, "lod.*.pools.*")


def find_in_pools(root: str | Path, parameter: str) -> list[tuple[str, str, Path]]:
    """(lod device, pool, file) of a parameter that each OST pool has."""
    paths: dict[tuple[str, str], Path] = {}
    for names, path in _matches(root, parameter):
        paths.setdefault((names[0], names[1]), path)
    return [(device, pool, path) for (device, pool), path in paths.items()]


def _matches(root: str | Path, parameter: str) -> Iterator[tuple[tuple[str, ...], Path]]:
    """(what each `*` matched, a name like `osd-ldiskfs` apart; path) of every file of a parameter."""
    for pattern in CANDIDATES[parameter]:
        parts = pattern.split("/")
        yield from _below(str(root).rstrip("/") or "", parts, ())


def _below(base: str, parts: list[str], names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Only directories with a `*` are listed: a hundred parameters are found in a millisecond or two."""
    fixed = next((i for i, part in enumerate(parts) if "*" in part), len(parts))
    base = "/".join((base, *parts[:fixed]))
    if fixed == len(parts):
        if os.path.lexists(base):
            yield names, Path(base)
        return
    part, rest = parts[fixed], parts[fixed + 1 :]
    try:
        entries = sorted(os.listdir(base or "/"))
    except OSError:
        return
    for entry in entries:
        if fnmatchcase(entry, part):
            of = (*names, entry) if part == "*" else names
            if rest:
                yield from _below(f"{base}/{entry}", rest, of)
            else:
                yield of, Path(f"{base}/{entry}")


def barred(root: str | Path, parameter: str) -> str:
    """The first directory on the way to a parameter's places that exists and cannot be searched; empty if none."""
    for pattern in CANDIDATES[parameter]:
        directory = Path(root)
        for part in (*pattern.split("/"), ""):
            if not os.path.isdir(directory):
                break
            if not os.access(directory, os.R_OK | os.X_OK, effective_ids=True):
                return str(directory)
            if "*" in part or not part:
                break
            directory /= part
    return ""


def ost_target(device: str) -> tuple[str, int] | None:
    """(file system, OST index) of `scratch-OST001f` or `scratch-OST001f_UUID`, None for anything else.

    The index is hexadecimal. Longer device names (`scratch-OST001f-osc-MDT0000`) are accepted too.
    """
    match = _TARGET.match(device)
    return (match["fs"], int(match["index"], 16)) if match else None


def mdt_target(device: str) -> tuple[str, int] | None:
    """(file system, MDT index) of `scratch-MDT0000`; None for anything else, one MDS's connection to it too."""
    match = _MDT.match(device)
    return (match["fs"], int(match["index"], 16)) if match else None


def mdt_connected(device: str) -> tuple[str, int] | None:
    """(file system, MDT index) of another MDT's connection to it, `scratch-MDT0001-osp-MDT0000`."""
    match = _MDT_CONNECTION.match(device)
    return (match["fs"], int(match["index"], 16)) if match else None


def is_mdt(device: str) -> bool:
    """`scratch-MDT0000`; not one MDS's connection to it."""
    return _MDT.match(device) is not None


def target_name(fs_name: str, index: int) -> str:
    """`scratch-OST001f`, as Lustre writes it."""
    return f"{fs_name}-OST{index:04x}"


def mdt_name(fs_name: str, index: int) -> str:
    """`scratch-MDT0001`, as Lustre writes it."""
    return f"{fs_name}-MDT{index:04x}"
