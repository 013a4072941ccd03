"""The leader's look at the directories into which a job step will write, with the user's own rights."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import PurePosixPath

from tarazu.stats.client import Mount

LAYOUT_XATTR = "lustre.lov"


def layout_blob(path: str) -> bytes:
    """`lustre.lov` of a file or directory; empty when it has none of its own or cannot be read."""
    try:
        return os.getxattr(path, LAYOUT_XATTR)
    except OSError:
        return b""


def default_layouts(mount: Mount, keys: Iterable[str]) -> tuple[bytes, dict[str, bytes]]:
    """Default layout of the mount's root, and for each directory key that of its deepest existing parent.

    Only directories whose default differs from the root's are listed with a layout; a directory without a
    default of its own follows the root.
    """
    root = layout_blob(mount.path)
    found: dict[str, bytes] = {}
    seen: dict[str, bytes] = {"/": root}
    for key in keys:
        parent = _deepest_existing(mount.path, key)
        if parent not in seen:
            seen[parent] = layout_blob(mount.path + parent) or root
        found[key] = seen[parent]
    return root, found


def _deepest_existing(mount_path: str, key: str) -> str:
    path = PurePosixPath(key)
    while str(path) != "/" and not os.path.isdir(mount_path + str(path)):
        path = path.parent
    return str(path)
