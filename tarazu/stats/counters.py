"""Lustre's `stats` format, and what happened between two readings of counters that may be reset."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tarazu.stats import reading
from tarazu.wire.reports import IoCounters

MAX_DIGITS = 18
"""An exabyte in bytes, 30,000 years in microseconds: more is no count."""
MAX_NUMBER_DIGITS = 15
"""Of kilobytes: an exabyte too."""
MAX_COUNT = 2**63 - 1
"""Of a sum or product of counts."""
MAX_ROWS = 1000
"""Of one file; a server's have 100."""

_ROW = re.compile(
    r"(\S+)\s+(-?\d+) samples \[([^\]]+)\](?:\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)(?!\S)|\s*$)", re.ASCII
)
_NAME = re.compile(r"\w+", re.ASCII)
_TIME = re.compile(r"(snapshot_time|start_time):?\s+(\d{1,18}(?:\.\d{1,18})?)(?!\d)")


class Counter(NamedTuple):
    """One row: number of samples and, where the row has them, their sum and extremes in its unit."""

    samples: int = 0
    sum: int = 0
    minimum: int = 0
    maximum: int = 0


ZERO = Counter()
OVERFLOWED = -1
"""Instead of a sum, where growth is added up."""


def known(digits: str | bytes) -> int | None:
    """A counter's value; None for one that overflowed: below 0, or of more digits than there is anything to count.
    Raises ValueError for what is no number.
    """
    minus = digits[:1] in ("-", b"-")
    if not digits[minus:].isdigit():
        raise ValueError(f"expected a count, found {digits[:40]!r}")
    return None if minus or len(digits) > MAX_DIGITS else int(digits)


def _known(word: str) -> int | None:
    return known(word) if word.removeprefix("-").isdecimal() else None


def count(digits: str | bytes) -> int:
    """As `known`; 0 for one that overflowed. Raises ValueError."""
    return known(digits) or 0


def whole_number(text: str) -> int:
    """A file that holds one number. Raises ValueError for anything else."""
    stripped = text.strip()
    if not stripped.isdecimal() or len(stripped) > MAX_NUMBER_DIGITS:
        raise ValueError(f"expected a whole number, found {stripped[:40]!r}")
    return int(stripped)


def io_counters(source: str, counts: Iterable[int], start_s: float) -> IoCounters:
    """From (I/Os, bytes, usecs, sum and samples of those in flight), none above what a message can hold."""
    ios, size_bytes, usecs, flight_sum, flight_samples = (min(n, MAX_COUNT) for n in counts)
    return IoCounters(source, ios, size_bytes, usecs, flight_sum, flight_samples, start_s)


class Stats(NamedTuple):
    """A `stats` file. Rows that are absent had no samples: `row()` gives zeros for them."""

    rows: dict[str, Counter]
    start_s: float
    """`start_time` (2.15 and later), 0 where there is none."""
    unknown: frozenset[str] = frozenset()
    """Rows whose samples or sum overflowed, and is 0 in `rows`, or that cannot be read, and are none of `rows`."""

    def row(self, name: str) -> Counter:
        return self.rows.get(name, ZERO)


def params() -> tuple[str, ...]:
    return ("obdfilter.*.stats", "ost.OSS.ost_io.stats")


def parse(text: str) -> Stats:
    """Rows of a `stats` file. Raises ValueError when it has neither a time stamp nor a row."""
    rows: dict[str, Counter] = {}
    unknown: list[str] = []
    start_s = 0.0
    recognised = False
    for line in reading.lines(text):
        if match := _ROW.match(line):
            name, samples, _unit, low, high, total = match.groups()
            rows[name] = Counter(*(count(n or "0") for n in (samples, total, low, high)))
            if known(samples) is None or known(total or "0") is None:
                unknown.append(name)
            recognised = True
            if len(rows) > MAX_ROWS:
                raise ValueError(f"expected at most {MAX_ROWS} rows, found more")
        elif time := _TIME.match(line):
            recognised = True
            if time[1] == "start_time":
                start_s = float(time[2])
        elif (name := _NAME.match(line)) and not name[0].endswith("_time") and len(unknown) < MAX_ROWS:
            unknown.append(name[0])
    if not recognised:
        raise ValueError("no `snapshot_time` and no row of counters")
    return Stats(rows, start_s, frozenset(unknown))


def some(text: str, names: Iterable[str]) -> Stats:
    """As `parse`, but these rows alone, without their extremes: for who looks each second, in a tenth of the time."""
    if not text.startswith("snapshot_time"):
        return parse(text)
    rows: dict[str, Counter] = {}
    unknown: list[str] = []
    for name in names:
        # NAME  SAMPLES samples [UNIT] MINIMUM MAXIMUM SUM …
        words = _line(text, name).split(None, 7)
        if words:
            whole = len(words) > 6 or len(words) == 4
            samples, total = (
                (_known(words[1]), _known(words[6]) if words[6:] else 0) if whole else (None, None)
            )
            rows[name] = Counter(samples or 0, total or 0)
            if samples is None or total is None:
                unknown.append(name)
    words = _line(text, "start_time").split(None, 2)
    try:
        start_s = float(words[1][: 2 * MAX_DIGITS]) if len(words) > 1 else 0.0
        return Stats(rows, start_s, frozenset(unknown))
    except ValueError:
        raise ValueError(f"expected seconds, found {words[1][:40]!r}") from None


_BULK = re.compile(
    r"snapshot_time [^\n]*\n(?:start_time +(\d{1,18}\.\d{1,18}) [^\n]*\n)?(?:elapsed_time [^\n]*\n)?"
    r"(?:read_bytes +(\d{1,18}) samples \[bytes\] \d+ \d+ (\d{1,18})(?: [^\n]*)?\n)?"
    r"(?:write_bytes +(\d{1,18}) samples \[bytes\] \d+ \d+ (\d{1,18})(?: [^\n]*)?\n)?"
)


def read_and_written(text: str) -> tuple[int, int, int, int, float]:
    """(bytes read, reads, bytes written, writes, `start_time`) of an OST's or a mount's `stats`: as `some`, in a third
    of the time, for these rows are the first that Lustre shows. Raises ValueError as `some`.
    """
    if match := _BULK.match(text):
        start, reads, read, writes, written = match.groups()
        end = match.end()
        # A row without samples is not shown; one that is elsewhere is for the way that finds it there.
        usual = (reads or text.find("\nread_bytes", end - 1) < 0) and (
            writes or text.find("\nwrite_bytes", end - 1) < 0
        )
        if usual and (start or "\nstart_time" not in text):
            return int(read or 0), int(reads or 0), int(written or 0), int(writes or 0), float(start or 0.0)
    stats = some(text, ("read_bytes", "write_bytes"))
    row, other = stats.row("read_bytes"), stats.row("write_bytes")
    return row.sum, row.samples, other.sum, other.samples, stats.start_s


def _line(text: str, name: str) -> str:
    """The first line that begins so, but for the first of all; empty where there is none."""
    begin = text.find(f"\n{name}") + 1
    end = text.find("\n", begin)
    return text[begin : end if end >= 0 else len(text)] if begin else ""


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
