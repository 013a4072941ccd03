"""Finds what a log cannot tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from tarazu.model import ANY_RANK
from tarazu.trace.darshan.log import GAPS, DarshanLog, Gap
from tarazu.units import counted

_HASH = re.compile(r"\d{1,10}")
"""How `darshan-convert --obfuscate` writes a hash of 32 bits: alone, or below the mount point."""
_STREAMS = ("<STDIN>", "<STDOUT>", "<STDERR>")


def find_gaps(log: DarshanLog, odd: Collection[int] = ()) -> tuple[Gap, ...]:
    """The gaps of a log, in the order of GAPS; `odd`: records whose layout is not striped as RAID 0."""
    gaps = [*_of_job(log), *_of_layouts(log, odd), *_of_records(log), *_of_names(log)]
    order = list(GAPS)
    return tuple(sorted(gaps, key=lambda gap: order.index(gap.kind)))


def _about(log: DarshanLog, kind: str, records: Collection[int], more: str = "") -> list[Gap]:
    """A gap about some records, with how many files those are and one of their names; none for no record."""
    if not len(records):
        return []
    ids = tuple(sorted(int(record) for record in records))
    shown = next((log.names[i] for i in ids if i in log.names), f"record {ids[0]}")
    files = f"{counted(len(ids), 'file')} ({shown}{', ...' if len(ids) > 1 else ''})"
    return [Gap(kind, f"{files}: {GAPS[kind]}{more}", ids)]


def _of_job(log: DarshanLog) -> list[Gap]:
    gaps = []
    if not {"POSIX", "STDIO"} & log.present.keys():
        gaps.append(Gap("no-io", f"{GAPS['no-io']}, only {', '.join(sorted(log.present)) or 'nothing'}"))
    lost = sorted(name for name, partial in log.present.items() if partial)
    if lost:
        gaps.append(Gap("partial", f"partial {', '.join(lost)}: {GAPS['partial']}"))
    posix = log.modules.get("POSIX")
    if posix is not None and posix.version == 1:
        gaps.append(
            Gap("partial", "POSIX records of Darshan before 3.1.0: those that also count STDIO are left out")
        )
    if not log.run_time_s:
        gaps.append(Gap("unended", GAPS["unended"]))
    if "LUSTRE" not in log.present:
        gaps.append(Gap("no-lustre", GAPS["no-lustre"]))
    return gaps


def _moved(log: DarshanLog) -> dict[int, int]:
    """Record → the end of its highest byte, for all that moved bytes."""
    rows = log.accesses[log.accesses["read_bytes"] + log.accesses["written_bytes"] > 0]
    ids, where = np.unique(rows["record"], return_inverse=True)
    ends = np.zeros(len(ids), np.int64)
    np.maximum.at(ends, where, np.maximum(rows["read_end_bytes"], rows["written_end_bytes"]))
    return dict(zip(ids.tolist(), ends.tolist(), strict=True))


def _of_layouts(log: DarshanLog, odd: Collection[int]) -> list[Gap]:
    if "LUSTRE" not in log.present:
        return []
    moved = _moved(log)
    of_lustre = _on_lustre(log)
    bare = [r for r in moved if r not in log.layouts and r not in odd and of_lustre(log.names.get(r, ""))]
    short = [r for r, end in moved.items() if r in log.layouts and log.layouts[r].known_bytes < end]
    return [
        *_about(log, "no-layout", bare),
        *_about(log, "short-layout", short),
        *_about(log, "no-osts", [r for r, of in log.layouts.items() if not of.placed]),
        *_about(log, "odd-layout", odd),
        *_about(log, "mirrored", [r for r, of in log.layouts.items() if of.mirrors > 1]),
    ]


def _on_lustre(log: DarshanLog) -> Callable[[str], bool]:
    """Is a file on Lustre? By the mounts of the log; where it names no Lustre, any path may be."""
    if not any(mount.kind == "lustre" for mount in log.mounts):
        return lambda name: name.startswith("/")

    def on_lustre(name: str) -> bool:
        mount = log.mount_of(name)
        return mount is not None and mount.kind == "lustre"

    return on_lustre


def _of_records(log: DarshanLog) -> list[Gap]:
    rows = log.accesses
    moved = rows["read_bytes"] + rows["written_bytes"] > 0
    paths = np.array([log.names.get(r, "/").startswith("/") for r in rows["record"].tolist()], np.bool_)
    traced = ", but the trace (DXT) has it" if "DXT_POSIX" in log.present else ""
    shared = rows["record"][(rows["rank"] == ANY_RANK) & moved] if log.ranks > 1 else rows["record"][:0]
    with_bytes = _unique(rows["record"][moved])
    by_posix = _unique(rows["record"][moved & ~rows["stdio"]])
    touched = _unique(rows["record"][moved | (rows["mmaps"] > 0)])
    opened = _unique(rows["record"][(rows["opens"] > 0) & paths])
    streams = {r for r, name in log.names.items() if name in _STREAMS}
    return [
        *_about(log, "shared", _unique(shared), traced),
        *_about(log, "mmap", _unique(rows["record"][rows["mmaps"] > 0])),
        *_about(log, "stdio-only", with_bytes - by_posix - streams),
        *_about(log, "no-bytes", opened - touched),
    ]


def _unique(records: NDArray[np.uint64]) -> set[int]:
    return set(np.unique(records).tolist())


def _of_names(log: DarshanLog) -> list[Gap]:
    used = _unique(log.accesses["record"])
    gaps = _about(log, "no-name", used - log.names.keys())
    names = {r: log.names[r] for r in used if r in log.names and log.names[r] not in _STREAMS}
    roots = {mount.path.rstrip("/") for mount in log.mounts}
    hashed = set()
    for record, name in names.items():
        root, _, last = name.rpartition("/")
        if _HASH.fullmatch(last) and (name == last or root in roots):
            hashed.add(record)
    if hashed == names.keys() or any(not names[r].startswith("/") for r in hashed):
        gaps += _about(log, "anonymised", hashed)
    return gaps
