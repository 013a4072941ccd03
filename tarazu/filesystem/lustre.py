"""Lustre: the client has a list of the OSTs, layouts are `lustre.lov`, liblustreapi judges them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tarazu import lustre, native
from tarazu.errors import LayoutError
from tarazu.filesystem import llapi
from tarazu.lustre import EOF, LOV_ALL_STRIPES
from tarazu.model import Component, Layout
from tarazu.stats import client
from tarazu.stats.client import FileSystem, Mount

KIND = "lustre"
PLACE_S = 0.0
"""An open without a layout makes no objects, the layout then makes them: next to nothing."""


def file_system(fs_name: str, root: str) -> FileSystem:
    return client.file_system(fs_name, root)


def directory_default(path: str) -> bytes:
    return lustre.directory_default(path)


def own_default(fs: FileSystem) -> bytes:
    """What a file gets below directories without any default, as `lustre.lov`; empty where the client does not know."""
    count, size = fs.stripe_count & LOV_ALL_STRIPES, fs.stripe_size_bytes
    if not count or size <= 0:
        return b""
    try:
        return native.encode_lov(Layout((Component(0, EOF, size, count),)), [()])
    except LayoutError:
        return b""


def refusal(layout: Layout) -> str:
    return llapi.refusal(layout)


def not_there(fs: FileSystem, targets: Collection[int]) -> list[int]:
    return sorted(set(targets) - fs.osts)


def refused_targets(mounts: Sequence[Mount], keys: Sequence[str], targets: Collection[int]) -> dict[int, str]:
    """Whoever may write on Lustre may write on each OST."""
    return {}
