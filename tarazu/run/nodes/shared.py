"""On what kind of file system a directory lies: one that other nodes may see too, or this node's own."""

from __future__ import annotations

import os
import re
from pathlib import Path

LOCAL = frozenset(
    "tmpfs ramfs devtmpfs ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs reiserfs overlay aufs rootfs squashfs vfat "
    "ntfs3 fuseblk".split()
)


def kind(path: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """Type of the file system of the deepest part of `path` that exists; empty when it cannot be told."""
    path = path.resolve()
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        device = os.stat(path).st_dev
        lines = mountinfo.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    numbers = f"{os.major(device)}:{os.minor(device)}"
    best, found = "", ""
    for line in lines:
        mount, _, source = line.partition(" - ")
        fields, described = mount.split(), source.split()
        if len(fields) < 5 or not described:
            continue
        if fields[2] == numbers:
            return described[0]
        # Some (btrfs, overlay) have other device numbers for their files: there the deepest mount point tells.
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4])
        if len(point) >= len(best) and (path == Path(point) or Path(point) in path.parents):
            best, found = point, described[0]
    return found


def on_this_node_alone(path: Path) -> bool:
    """True for a directory that no other node sees, unless this node exports it."""
    return kind(path) in LOCAL
