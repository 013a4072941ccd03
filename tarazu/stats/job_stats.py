"""`job_stats`, read line by line: it looks like YAML, is none in some versions, and may hold 10,000 jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tarazu.stats.counters import Counter

_ROW = re.compile(r"\s+(\w+):\s*\{(.*)")
_FIELD = re.compile(r"(samples|min|max|sum):\s*(\d+)")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)


class JobStats(NamedTuple):
    """One job on one target. `rows` holds the operations that were asked for."""

    job_id: str
    start_s: float
    """`start_time` of the entry (2.15 and later), else 0."""
    snapshot_s: float
    rows: dict[str, Counter]


def params() -> tuple[str, ...]:
    return ("obdfilter.*.job_stats",)


def parse(
    lines: Iterable[str], wanted: tuple[str, ...] = ("read_bytes", "write_bytes")
) -> Iterator[JobStats]:
    """Entries of a `job_stats` file, one at a time. Raises ValueError when it does not begin as one."""
    iterator = iter(lines)
    first = next(iterator, "job_stats:")
    if not first.startswith("job_stats:"):
        raise ValueError(f"expected `job_stats:` in the first line, found {first.strip()[:40]!r}")
    current: JobStats | None = None
    for line in iterator:
        if line.startswith("- job_id:"):
            if current:
                yield current
            current = JobStats(unquote(line[len("- job_id:") :].strip()), 0.0, 0.0, {})
        elif current is None:
            continue
        elif match := _ROW.match(line):
            if match[1] in wanted:
                current.rows[match[1]] = _counter(match[2])
        else:
            current = _with_time(current, line)
    if current:
        yield current


def unquote(text: str) -> str:
    """`"a\\x20b"` → `a b`; an id without quotes stays as it is, bytes that are not UTF-8 are replaced."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":
        return text
    inner = text[1:-1].encode("utf-8", "surrogateescape")

    def plain(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[1], 16)]) if match[1] else match[2]

    return _ESCAPE.sub(plain, inner).decode("utf-8", "replace")


def _counter(body: str) -> Counter:
    # The histogram (2.16 and later) holds pairs of its own: cut it off before reading fields.
    values = {name: int(value) for name, value in _FIELD.findall(body.partition("hist:")[0])}
    return Counter(values.get("samples", 0), values.get("sum", 0), values.get("min", 0), values.get("max", 0))


def _with_time(entry: JobStats, line: str) -> JobStats:
    name, _, value = line.strip().partition(":")
    if name not in ("start_time", "snapshot_time"):
        return entry
    digits = value.split()[0] if value.split() else ""
    try:
        seconds = float(digits)
    except ValueError:
        return entry
    return entry._replace(start_s=seconds) if name == "start_time" else entry._replace(snapshot_s=seconds)
