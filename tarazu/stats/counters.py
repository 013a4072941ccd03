"""Lustre's `stats` format, and what happened between two readings of counters that may be reset."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_ROW = re.compile(r"(\S+)\s+(\d+) samples \[([^\]]+)\](?:\s+(-?\d+)\s+(-?\d+)\s+(-?\d+))?")
_TIME = re.compile(r"(snapshot_time|start_time):?\s+(\d+(?:\.\d+)?)")


class Counter(NamedTuple):
    """One row: number of samples and, where the row has them, their sum and extremes in its unit."""

    samples: int = 0
    sum: int = 0
    minimum: int = 0
    maximum: int = 0


ZERO = Counter()


class Stats(NamedTuple):
    """A `stats` file. Rows that are absent had no samples: `row()` gives zeros for them."""

    rows: dict[str, Counter]
    start_s: float
    """`start_time` (2.15 and later), 0 where there is none."""

    def row(self, name: str) -> Counter:
        return self.rows.get(name, ZERO)


def params() -> tuple[str, ...]:
    return ("obdfilter.*.stats", "ost.OSS.ost_io.stats")


def parse(text: str) -> Stats:
    """Rows of a `stats` file. Raises ValueError when it has neither a time stamp nor a row."""
    rows: dict[str, Counter] = {}
    start_s = 0.0
    recognised = False
    for line in text.splitlines():
        if match := _ROW.match(line):
            name, samples, _unit, low, high, total = match.groups()
            rows[name] = Counter(int(samples), int(total or 0), int(low or 0), int(high or 0))
            recognised = True
        elif time := _TIME.match(line):
            recognised = True
            if time[1] == "start_time":
                start_s = float(time[2])
    if not recognised:
        raise ValueError("no `snapshot_time` and no row of counters")
    return Stats(rows, start_s)


def start_time(lines: Iterable[str]) -> float:
    """`start_time` among the first lines of a file, 0 where there is none."""
    for line in lines:
        if (match := _TIME.match(line.strip())) and match[1] == "start_time":
            return float(match[2])
    return 0.0


def were_reset(start_s: float, before_start_s: float, now: Iterable[int], before: Iterable[int]) -> bool:
    """True when the counters began anew: another start time (where both are known), or any decreased."""
    restarted = start_s > 0 and before_start_s > 0 and start_s != before_start_s
    return restarted or any(n < b for n, b in zip(now, before))
