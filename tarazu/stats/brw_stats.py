"""`brw_stats`: histograms of bulk I/O. Rows are found by their label, never by position."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from tarazu.stats import reading
from tarazu.stats.counters import MAX_DIGITS, count, io_counters, known, start_time
from tarazu.wire.reports import IoCounters

_HEADER = re.compile(r"(\S.*?)\s+\w+\s+% cum % \|\s+\w+\s+% cum %")
_ROW = re.compile(r"(\d{1,10})([KMG]?):?\s+(-?\d+)\s+-?\d+\s+-?\d+\s+\|\s+(-?\d+)\s+-?\d+\s+-?\d+")
_UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


_TIME = "I/O time (1/1000s)"
_SIZE = "disk I/O size"
_IN_FLIGHT = "disk I/Os in flight"
DISCONTIGUOUS = "discontiguous pages"
READS, WRITES = 0, 1
"""Columns."""
LINEAR_MAX = 31
"""`OBD_HIST_MAX` - 1: this many and more."""
OPEN = 1 << LINEAR_MAX
"""The same class where they are powers of two."""
MAX_CLASSES = 1000
"""Rows of one table; Lustre's have 32."""
UNTIMED = 64
"""Disk I/Os of which none has a time: then none ever will (one that has only begun has no time yet either)."""


class BrwStats(NamedTuple):
    """Table name (`disk I/O size`) → label as a number (`4K` = 4096) → (reads, writes)."""

    tables: dict[str, dict[int, tuple[int, int]]]
    start_s: float
    unknown: frozenset[tuple[str, int]] = frozenset()
    """(table, column) of which a class overflowed, and is left out."""

    def writes(self, table: str, from_label: int = 0) -> int:
        """Writes counted in `table` under labels of at least `from_label`."""
        return sum(w for label, (_r, w) in self.tables.get(table, {}).items() if label >= from_label)

    def counted(self, table: str, column: int) -> int:
        return sum(row[column] for row in self.tables.get(table, {}).values())

    def weighted(self, table: str, column: int) -> int:
        """Sum of the labels of all that was counted in a column."""
        return sum(label * row[column] for label, row in self.tables.get(table, {}).items())

    def flights(self, table: str, column: int) -> int:
        """Sum of the numbers in flight. Lustre counts them one by one, 31 and more in one class, or by powers of two
        (`bs_inflight_io_log2`): then a class is from above half its label up to it, and counts for its middle.
        """
        rows = self.tables.get(table, {})
        if not _by_powers(sorted(rows)):
            return self.weighted(table, column)
        return sum(row[column] * _middle(label) for label, row in rows.items()) // 4

    def timed(self, column: int) -> bool:
        """Whether the time of these I/Os is known: ZFS counts its writes, but never for how long they took."""
        if _TIME not in self.tables or not self.unknown.isdisjoint(((_TIME, column), (_SIZE, column))):
            return False
        return self.counted(_TIME, column) > 0 or self.counted(_SIZE, column) < UNTIMED

    def io(self, column: int) -> IoCounters:
        """Disk I/Os of one direction. A class of times (above half its label, up to the label) counts for its
        middle, the first for 1 ms, the last one that there can be, which is open, for its lower end; one of sizes for
        its label, for most I/Os have a power of two. The number in flight is counted per block I/O, of which a (bulk)
        I/O may have several."""
        times = self.tables.get(_TIME, {})
        flight = "" if (_IN_FLIGHT, column) in self.unknown else _IN_FLIGHT
        counts = (
            self.counted(_TIME, column),
            self.weighted(_SIZE, column),
            sum(row[column] * _usecs(label) for label, row in times.items()),
            self.flights(flight, column),
            self.counted(flight, column),
        )
        return io_counters("brw_stats", counts, self.start_s)


def _by_powers(labels: list[int]) -> bool:
    """Whether rows are powers of two: none between 2 and 4, or one beyond all that is counted one by one."""
    leaves_out = any(after == 2 * before > 2 for before, after in pairwise(labels))
    return all(n & (n - 1) == 0 for n in labels) and (leaves_out or labels[-1:] > [LINEAR_MAX])


def _middle(label: int) -> int:
    """Four times the mean of the whole numbers in a class of powers of two; of the open one its least."""
    if label == OPEN:
        return 4 * (label // 2 + 1)
    return 3 * label + 2 if label > 1 else 4 * label


def _usecs(label: int) -> int:
    """The same of a class of times in milliseconds."""
    if label == OPEN:
        return 500 * label
    return 750 * label if label > 1 else 1000


def params() -> tuple[str, ...]:
    return ("osd-*.*.brw_stats",)


def parse(text: str) -> BrwStats:
    """All tables of a `brw_stats` file; empty ones have no rows. Raises ValueError when there is no table."""
    tables: dict[str, dict[int, tuple[int, int]]] = {}
    unknown: set[tuple[str, int]] = set()
    table, current = "", None
    lines = [line.strip() for line in reading.lines(text)]
    for line in lines:
        if header := _HEADER.match(line):
            table = header[1]
            current = tables.setdefault(table, {})
        elif current is not None and (row := _ROW.match(line)):
            unknown.update((table, column) for column in (READS, WRITES) if known(row[3 + column]) is None)
            current[int(row[1]) * _UNIT[row[2]]] = (count(row[3]), count(row[4]))
            if len(current) > MAX_CLASSES:
                raise ValueError(f"expected at most {MAX_CLASSES} rows a table, found more")
    if not tables:
        raise ValueError("no table of `% cum % |`")
    return BrwStats(tables, start_time(lines[:4]), frozenset(unknown))


class Pieces(NamedTuple):
    """Bulk I/Os of one direction."""

    apart: int
    """Those whose pages do not lie together in their object."""
    all: int


def pieces(text: str) -> tuple[Pieces, Pieces]:
    """(reads, writes) from the table of discontiguous pages alone: the rest, nine tenths of the file, costs nothing.
    Raises ValueError for what cannot be one.

    ldiskfs counts pieces since 2.16 (what lies together is 1), before that, and ZFS always, gaps (0).
    """
    begin = text.find(DISCONTIGUOUS)
    if begin < 0:
        return Pieces(0, 0), Pieces(0, 0)
    end = text.find("\n\n", begin)
    block = text[begin : end if end >= 0 else len(text)]
    words = block.partition("\n")[2].split()
    if words[4::8].count("|") * 8 == len(words) and max(map(len, words), default=0) < MAX_DIGITS:
        # Rows as all versions print them, of eight words; else the slower way, which knows what may come.
        labels = words[::8]
        reads, writes = [int(n) for n in words[1::8]], [int(n) for n in words[5::8]]
    else:
        rows = parse(block).tables.get(DISCONTIGUOUS, {})
        labels = [str(label) for label in rows]
        reads, writes = ([row[column] for row in rows.values()] for column in (READS, WRITES))
    # Rows come in order, from the first one that has a count.
    together = 1 if labels and labels[0].rstrip(":") in ("0", "1") else 0
    return Pieces(sum(reads[together:]), sum(reads)), Pieces(sum(writes[together:]), sum(writes))
