"""`job_stats`, entry by entry: it looks like YAML, is none in some versions, and may hold 10,000 jobs of 17 rows.

With that many a file has 25 MB, so it is split in bytes, and of an entry only the start is looked at: an expression
takes the usual order of rows, and an entry that has another is read row by row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tarazu.stats.counters import OVERFLOWED, Counter, count, known
from tarazu.units import KIB, MIB

MAX_ENTRY_BYTES = 64 * KIB
"""Of one job: 17 rows with histograms have 5 KB."""
MAX_FILE_BYTES = 512 * MIB
MAX_JOBS = 100_000
"""Of one target; what comes after is left out."""

MAX_DASHES = 4096
"""Of one chunk, in job ids for instance; beyond, they are not looked for."""

_NEXT = b"\n- job_id:"
_BYTES_ROW = rb" *\{ samples: *(\d{1,18}), unit: *bytes, min: *\d+, max: *\d+, sum: *(\d{1,18})[ ,]"
_USUAL = re.compile(
    rb"([^\n]*)\n  snapshot_time:[^\n]*\n"
    rb"(?:  start_time: *(\d{1,18}(?:\.\d{1,18})?)(?: [^\n]*)?\n)?(?:  elapsed_time:[^\n]*\n)?"
    rb"  read_bytes:" + _BYTES_ROW + rb"[^\n]*\n  write_bytes:" + _BYTES_ROW
)
_ROW = re.compile(rb"\s+(\w+):\s*\{(.*)")
_FIELD = re.compile(rb"(samples|min|max|sum):\s*(-?\d+)")
_TIME = re.compile(rb"\s+(snapshot_time|start_time):\s*(\d{1,18}(?:\.\d{1,18})?)(?!\d)")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)


class JobStats(NamedTuple):
    """One job on one target. `rows` holds the operations that were asked for."""

    job_id: str
    start_s: float
    """`start_time` of the entry (2.15 and later), else 0."""
    snapshot_s: float
    rows: Mapping[str, Counter]
    """A sum that overflowed is OVERFLOWED."""


def params() -> tuple[str, ...]:
    return ("obdfilter.*.job_stats", "mdt.*.job_stats")


Span = tuple[bytes, int, int]
"""(text, begin, end) of one entry: what follows its `- job_id:`."""


def spans(chunks: Iterable[bytes]) -> Iterator[Span]:
    """Every entry, without a copy of it. Raises ValueError when the text does not begin as `job_stats`, or an entry
    has no end. Nothing at all (2.17, no job) is no entry.
    """
    text, begin = b"\n", -1
    for chunk in chunks:
        text += chunk
        for at in _separators(text, max(begin, 0)):
            if begin >= 0:
                yield text, begin, at
            else:
                _check_header(text[:at])
            begin = at + len(_NEXT)
        if len(text) - max(begin, 0) > MAX_ENTRY_BYTES:
            if begin < 0:
                _check_header(text)
            raise ValueError(f"expected entries of at most {MAX_ENTRY_BYTES} bytes, found a longer one")
        if begin > 0:
            # The newline keeps what follows apart from what stood before it.
            text, begin = text[begin - 1 :], 1
    if begin < 0:
        _check_header(text)
    else:
        yield text, begin, len(text)


def _separators(text: bytes, begin: int) -> list[int]:
    """Where each `_NEXT` after `begin` lies. A dash alone is rare, and looking for it is six times as fast."""
    positions: list[int] = []
    others = 0
    at = text.find(b"-", begin + 1)
    while at >= 0 and others < MAX_DASHES:
        if text.startswith(_NEXT, at - 1):
            positions.append(at - 1)
        else:
            others += 1
        at = text.find(b"-", at + 1)
    if at >= 0:
        at = text.find(_NEXT, at - 1)
        while at >= 0:
            positions.append(at)
            at = text.find(_NEXT, at + 1)
    return positions


def entries(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What follows each `- job_id:`. Raises as `spans`."""
    return (text[begin:end] for text, begin, end in spans(chunks))


def _check_header(text: bytes) -> None:
    # 2.17 prints the first line once for all that read at the same time: it may be missing.
    if text.strip() and not text.startswith(b"\njob_stats:"):
        found = text.strip()[:40].decode("utf-8", "replace")
        raise ValueError(f"expected `job_stats:` in the first line, found {found!r}")


def usual(span: Span) -> tuple[bytes, ...] | None:
    """(job id as written, start time or empty, sum of `read_bytes`, of `write_bytes`, samples of each) of an entry
    whose rows stand in the order of all versions known; None for another.
    """
    match = _USUAL.match(*span)
    return (match[1], match[2] or b"", match[4], match[6], match[3], match[5]) if match else None


def parse(
    chunks: Iterable[bytes], wanted: tuple[str, ...] | None = ("read_bytes", "write_bytes")
) -> Iterator[JobStats]:
    """All entries, row by row; `wanted` None: all rows. Raises as `entries`."""
    for entry in entries(chunks):
        yield parse_entry(entry, wanted)


def parse_entry(entry: bytes, wanted: tuple[str, ...] | None = None) -> JobStats:
    """One of `entries`."""
    first, *lines = entry.split(b"\n")
    times = {"start_time": 0.0, "snapshot_time": 0.0}
    rows: dict[str, Counter] = {}
    for line in lines:
        if row := _ROW.match(line):
            name = row[1].decode("ascii", "replace")
            if wanted is None or name in wanted:
                rows[name] = _counter(row[2])
        elif time := _TIME.match(line):
            times[time[1].decode()] = float(time[2])
    return JobStats(unquote(id_text(first)), times["start_time"], times["snapshot_time"], rows)


def id_text(written: bytes) -> str:
    """A job id as the file has it, quotes and escapes included."""
    return written.strip().decode("utf-8", "surrogateescape")


def unquote(text: str) -> str:
    """`"a\\x20b"` → `a b`; an id without quotes stays as it is, bytes that are not UTF-8 are replaced."""
    inner = text.encode("utf-8", "surrogateescape")
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":

        def plain(match: re.Match[bytes]) -> bytes:
            return bytes([int(match[1], 16)]) if match[1] else match[2]

        inner = _ESCAPE.sub(plain, inner[1:-1])
    return inner.decode("utf-8", "replace")


def _counter(body: bytes) -> Counter:
    # The histogram (2.16 and later) holds pairs of its own: cut it off before reading fields.
    values = dict(_FIELD.findall(body.partition(b"hist:")[0]))
    samples, low, high = (count(values.get(name, b"0")) for name in (b"samples", b"min", b"max"))
    total = known(values.get(b"sum", b"0"))
    return Counter(samples, OVERFLOWED if total is None else total, low, high)
