"""`llite.*.offset_stats`: the last hundred places where a process of a client did not go on where it was.

Off until somebody writes to it (Lustre then counts each request under a lock). A row is a run of requests one behind
the other: the jump that led there, and from where to where it went.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tarazu.stats import reading

MAX_RUNS = 1000
"""Of one file; Lustre's has up to 110."""

_ROW = re.compile(
    r"\s*([RW])\s+(\d{1,10})\s+(\d{1,19})\s+(\d{1,19})\s+(\d{1,19})\s+(\d{1,19})\s+(-?\d{1,19})\s*$"
)


class SequentialRun(NamedTuple):
    """Requests of one process on one file, one behind the other. All in bytes."""

    write: bool
    pid: int
    start: int
    end: int
    smallest: int
    largest: int
    """Request."""
    jump: int
    """From the end of the run before; 0: the first one of its file."""

    @property
    def requests(self) -> int:
        """At least so many."""
        return max(1, (self.end - self.start) // self.largest) if self.largest else 1


def params() -> tuple[str, ...]:
    return ("llite.*.offset_stats",)


def parse(text: str) -> tuple[SequentialRun, ...] | None:
    """Runs in the order of the file; None where it is off. Raises ValueError for anything else."""
    if text.lstrip().startswith("disabled"):
        return None
    lines = reading.lines(text)
    header = next((i for i, line in enumerate(lines) if line.lstrip().startswith("R/W")), -1)
    if header < 0:
        raise ValueError("no line of `R/W`")
    rows = [match for line in lines[header + 1 :] if (match := _ROW.match(line))]
    if len(rows) > MAX_RUNS:
        raise ValueError(f"expected at most {MAX_RUNS} rows, found more")
    return tuple(SequentialRun(row[1] == "W", *(int(row[i]) for i in range(2, 8))) for row in rows)
