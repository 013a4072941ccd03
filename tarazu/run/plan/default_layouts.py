"""The leader's look at the directories into which a job step will write, with the user's own rights."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from tarazu import native
from tarazu.errors import LayoutError
from tarazu.lustre import EOF, LOV_ALL_STRIPES, directory_default
from tarazu.model import Component, Layout
from tarazu.stats.client import FileSystem, Mount


def own_default(fs: FileSystem) -> bytes:
    """What a file gets below directories without any default, as `lustre.lov`; empty where the client does not know."""
    count, size = fs.stripe_count & LOV_ALL_STRIPES, fs.stripe_size_bytes
    if not count or size <= 0:
        return b""
    try:
        return native.encode_lov(Layout((Component(0, EOF, size, count),)), [()])
    except LayoutError:
        return b""


def _default(path: str) -> bytes:
    """A directory's default, as `lustre.lov`; empty when it has none or it cannot be read."""
    try:
        return directory_default(path)
    except OSError:
        return b""


def default_layouts(
    mounts: Sequence[Mount], keys: Iterable[str], own: bytes = b""
) -> tuple[bytes, dict[str, bytes]]:
    """Default layout of the file system's root, and for each directory key that of its deepest existing parent.

    `mounts`: all of the one file system; a directory is looked at through one that shows it. Where no mount shows the
    root, the top of the largest part that is seen stands for it. Only directories whose default differs from the
    root's are listed with a layout; a directory without a default of its own follows the root, and the root without
    one is `own`.
    """
    root = _default(min(mounts, key=lambda m: len(m.subdirectory)).path) or own
    layouts: dict[str, bytes] = {}
    seen: dict[str, bytes] = {}
    for key in keys:
        parent = _deepest_existing(mounts, key)
        if parent not in seen:
            seen[parent] = (_default(parent) if parent else b"") or root
        layouts[key] = seen[parent]
    return root, layouts


def _deepest_existing(mounts: Sequence[Mount], key: str) -> str:
    """Where the deepest existing directory above a key is seen; empty when no mount shows any."""
    path = PurePosixPath(key)
    while not (there := _seen(mounts, path)) and path != path.parent:
        path = path.parent
    return there


def _seen(mounts: Sequence[Mount], path: PurePosixPath) -> str:
    """Where a directory is seen; empty where it does not exist, or no mount shows it."""
    for mount in mounts:
        if path.is_relative_to(mount.subdirectory or "/"):
            place = PurePosixPath(mount.path) / path.relative_to(mount.subdirectory or "/")
            if os.path.isdir(place):
                return str(place)
    return ""
