"""What a client knows of its file systems: mounts, the OSTs that exist, pools (`llite`, `osc`, `lov`).

Every reader takes `root=`, the directory under which /proc and /sys are found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tarazu.errors import BadInput

QOS_THRESHOLD_RR = 0.05
"""Of MDTs, since 2.14."""

_OSC = r"(?P<fs>.+)-OST(?P<index>[0-9a-fA-F]{4})-osc-[^-]+$"


class Mount(msgspec.Struct, frozen=True):
    """One mount: `path` is where it is seen, `subdirectory` what of the file system it shows."""

    path: str
    fs_name: str
    subdirectory: str = ""


class FileSystem(msgspec.Struct, frozen=True):
    """The OSTs of one file system, from the client's own device list."""

    fs_name: str
    osts: frozenset[int]
    """Indices that exist."""
    active: frozenset[int]
    pools: Mapping[str, frozenset[int]] = {}
    stripe_count: int = 0
    """Of files below no default layout, as this client knows it (`lov.*.stripecount`); −1: every OST; 0: unknown."""
    stripe_size_bytes: int = 0


def mounts(root: str | Path = "/", environ: Mapping[str, str] | None = None) -> tuple[Mount, ...]:
    """Mounts from $TARAZU_MOUNTS (`path=fsname:…`), else from proc/mounts. Longest path first."""
    environ = os.environ if environ is None else environ
    listed = environ.get("TARAZU_MOUNTS", "")
    mounted: list[Mount] = []
    if listed:
        for part in listed.split(":"):
            path, equals, fs_name = part.rpartition("=")  # a path may hold one
            if not (equals and path.startswith("/") and fs_name):
                raise BadInput("$TARAZU_MOUNTS", "/path=fsname:…", listed)
            mounted.append(Mount(path.rstrip("/") or "/", fs_name))
    else:
        for line in mount_entries(Path(root) / "proc/mounts"):
            device, path, kind, *_ = [*map(unescaped, line.split(b" ")), "", "", ""]
            # The device is nid[,nid…][:nid…]:/fsname[/subdirectory].
            if kind == "lustre" and ":/" in device:
                fs_name, _, below = device.partition(":/")[2].partition("/")
                below = below.rstrip("/")
                mounted.append(Mount(path, fs_name, f"/{below}" if below else ""))
    return tuple(sorted(mounted, key=lambda m: -len(m.path)))


def file_system(fs_name: str, root: str | Path = "/") -> FileSystem:
    """The OSTs that this client is connected to (`osc.<fs>-OST*.active`), the pools (`lov.*.pools.*`) and the file
    system's own striping (`lov.*.stripecount`, `stripesize`).
    """
    existing: set[int] = set()
    active: set[int] = set()
    for directory in _glob(root, ("sys/fs/lustre/osc", "proc/fs/lustre/osc"), f"{fs_name}-OST*"):
        match = re.match(_OSC, directory.name)
        if match and match["fs"] == fs_name:
            index = int(match["index"], 16)
            existing.add(index)
            if next(iter(_lines(directory / "active")), "1").strip() != "0":
                active.add(index)
    pools: dict[str, frozenset[int]] = {}
    for lov in _glob(root, ("proc/fs/lustre/lov", "sys/kernel/debug/lustre/lov"), f"{fs_name}-clilov-*"):
        for pool in _glob(lov, ("pools",), "*"):
            members = (re.search(r"-OST([0-9a-fA-F]{4})", line) for line in _lines(pool))
            pools[pool.name] = frozenset(int(m[1], 16) for m in members if m)
    count = size = 0
    for lov in _glob(root, ("sys/fs/lustre/lov", "proc/fs/lustre/lov"), f"{fs_name}-clilov-*"):
        count, size = _number(lov / "stripecount"), _number(lov / "stripesize")
    return FileSystem(fs_name, frozenset(existing), frozenset(active), pools, count, size)


def mdt_threshold(fs_name: str, root: str | Path = "/") -> float:
    """How uneven MDTs' space must be for Lustre to weigh it for new directories, 0-1 (`lmv.*.qos_threshold_rr`)."""
    for lmv in _glob(root, ("sys/fs/lustre/lmv", "proc/fs/lustre/lmv"), f"{fs_name}-clilmv-*"):
        text = next(iter(_lines(lmv / "qos_threshold_rr")), "").strip()
        if match := re.fullmatch(r"(\d{1,3})%?", text):
            return int(match[1]) / 100
    return QOS_THRESHOLD_RR


def _number(path: Path) -> int:
    """0 where there is none."""
    text = next(iter(_lines(path)), "").strip()
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else 0


def _glob(root: str | Path, directories: tuple[str, ...], pattern: str) -> list[Path]:
    for directory in directories:
        try:
            paths = sorted((Path(root) / directory).glob(pattern))
        except OSError:
            continue  # debugfs, for an ordinary user
        if paths:
            return paths
    return []


def mount_entries(path: Path) -> list[bytes]:
    """Lines in bytes: a path may hold whatever Unicode takes for a space or the end of a line."""
    try:
        return path.read_bytes().rstrip(b"\0").split(b"\n")
    except OSError:
        return []


def unescaped(text: bytes) -> str:
    """A field of proc/mounts, in which the kernel writes a blank, tab, newline and backslash in octal (`\\040`)."""
    if b"\\" not in text:
        return os.fsdecode(text)
    return os.fsdecode(re.sub(rb"\\([0-3][0-7]{2})", lambda m: bytes([int(m[1], 8)]), text))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\0").splitlines()
    except OSError:
        return []
