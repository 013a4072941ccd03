"""What the files of a run put on each OST, by the layouts that were read back after placing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tarazu import native
from tarazu.errors import LayoutError
from tarazu.layout.objects import component_object_bytes
from tarazu.trace.records import FileRecord


def ost_bytes(files: Iterable[FileRecord]) -> tuple[dict[int, int], int]:
    """(OST index → bytes, how many of the files have a layout that says so)."""
    placed: Counter[int] = Counter()
    known = 0
    decoded: dict[bytes, native.Decoded] = {}
    for file in files:
        if not file.layout:
            continue
        try:
            if file.layout not in decoded:
                decoded[file.layout] = native.decode_lov(file.layout)
        except LayoutError:
            continue
        found = decoded[file.layout]
        known += 1
        for entry in found.components:
            sizes = component_object_bytes(entry.component, file.size_bytes)
            for ost, size in zip(entry.osts, sizes, strict=False):  # one that is overstriped comes twice
                placed[ost] += size
    return dict(sorted(placed.items())), known
