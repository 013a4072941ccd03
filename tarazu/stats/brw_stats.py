"""`brw_stats`: histograms of bulk I/O. Rows are found by their label, never by position."""

from __future__ import annotations

import re
from typing import NamedTuple

from tarazu.stats.counters import start_time

_HEADER = re.compile(r"(\S.*?)\s+\w+\s+% cum % \|\s+\w+\s+% cum %")
_ROW = re.compile(r"(\d+)([KMG]?):?\s+(\d+)\s+\d+\s+\d+\s+\|\s+(\d+)\s+\d+\s+\d+")
_UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class BrwStats(NamedTuple):
    """Table name (`disk I/O size`) → label as a number (`4K` = 4096) → (reads, writes)."""

    tables: dict[str, dict[int, tuple[int, int]]]
    start_s: float

    def writes(self, table: str, from_label: int = 0) -> int:
        """Writes counted in `table` under labels of at least `from_label`."""
        return sum(w for label, (_r, w) in self.tables.get(table, {}).items() if label >= from_label)


def params() -> tuple[str, ...]:
    return ("osd-*.*.brw_stats",)


def parse(text: str) -> BrwStats:
    """All tables of a `brw_stats` file; empty ones have no rows. Raises ValueError when there is no table."""
    tables: dict[str, dict[int, tuple[int, int]]] = {}
    current: dict[int, tuple[int, int]] | None = None
    lines = [line.strip() for line in text.splitlines()]
    for line in lines:
        if header := _HEADER.match(line):
            current = tables.setdefault(header[1], {})
        elif current is not None and (row := _ROW.match(line)):
            current[int(row[1]) * _UNIT[row[2]]] = (int(row[3]), int(row[4]))
    if not tables:
        raise ValueError("no table of `% cum % |`")
    return BrwStats(tables, start_time(lines[:4]))
