"""ZFS's cache, the ARC: `/proc/spl/kstat/zfs/arcstats`. It lies outside the page cache, and counts as used memory."""

from __future__ import annotations

from pathlib import Path

from tarazu.stats import reading
from tarazu.stats.counters import known


def params() -> tuple[str, ...]:
    return ("proc/spl/kstat/zfs/arcstats",)


def parse(text: str) -> dict[str, int]:
    """Name → value: after two lines of header, `name type data` in each. Lines that are no such row are left out."""
    rows = (line.split() for line in reading.lines(text)[2:])
    numbers = ((row[0], known(row[2])) for row in rows if len(row) == 3 and row[2].isdecimal())
    return {name: number for name, number in numbers if number is not None}


def reclaimable_bytes(root: str | Path = "/") -> int:
    """What the ARC gives back when memory is wanted: all above its minimum. 0 on a node without ZFS."""
    try:
        values = parse(reading.text(Path(root) / "proc/spl/kstat/zfs/arcstats"))
    except (OSError, ValueError):
        return 0
    if not {"size", "c_min"} <= values.keys():
        return 0
    return max(0, values["size"] - values["c_min"])
