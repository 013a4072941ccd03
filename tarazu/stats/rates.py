"""What each job and each client wrote and read between two readings: of the `job_stats` of all targets of a server, of
`obdfilter.*.exports.*.stats`, one file a client and OST.

Of 20 targets with 10,000 jobs each, only what the next reading is compared with is kept: about 150 bytes an entry.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Mapping, Sequence

from tarazu.stats import job_stats
from tarazu.stats.counters import MAX_COUNT, OVERFLOWED, ZERO, Stats, were_reset
from tarazu.wire.reports import ClientRate, JobRate

MAX_JOBS, MAX_BY_OPERATIONS = 1000, 100
"""Jobs named in one report: those that moved most bytes, and those of most reads and writes."""
MAX_ID_CHARACTERS = 128
"""Lustre's have 31 bytes, which four characters each may stand for."""

_HALF = 80
_NOTHING = b"0"
_NEW = b"0 0 0 0 0"
_Kept = dict[str, bytes]
"""Job id as written → start time, bytes read, bytes written, reads, writes, as written."""


class JobRates:
    """For each reading: `add` every target, then `take` the result."""

    def __init__(self) -> None:
        self._before: dict[str, _Kept] = {}
        self._now: dict[str, _Kept] = {}
        self._grown: dict[str, int] = {}
        """Job → operations, bytes written, bytes read, each in `_HALF` bits: a third of the memory of three numbers."""

    def add(self, target: str, chunks: Iterable[bytes]) -> int:
        """Take in a target's `job_stats`; the number of jobs that moved data. Raises ValueError as `job_stats.spans`:
        then the next reading of the target is compared with none.
        """
        # One target's past is let go of as its present is taken in.
        before = self._before.pop(target, None)
        now: _Kept = {}
        for span in job_stats.spans(chunks):
            written_id, start, have_read, written, reads, writes = job_stats.usual(span) or _unusual(span)
            if written == have_read == _NOTHING:
                continue
            # The same job stands on all targets: one string for all.
            name = sys.intern(job_stats.id_text(written_id)[:MAX_ID_CHARACTERS])
            counts = b"%b %b %b %b %b" % (start or _NOTHING, have_read, written, reads, writes)
            if before is not None:
                old = before.get(name, _NEW)
                if old == counts:
                    counts = old
                else:
                    self._add_growth(name, counts, old)
            now[name] = counts
            if len(now) >= job_stats.MAX_JOBS:
                break
        self._now[target] = now
        return len(now)

    def _add_growth(self, name: str, counts: bytes, before: bytes) -> None:
        start, *new = counts.split(b" ")
        old_start, *old = before.split(b" ")
        # An entry that was dropped when idle, and began anew, counts from 0; some versions do not say when it began.
        restarted = start != old_start and float(start) > 0 and float(old_start) > 0
        have_read, wrote, reads, writes = growth(
            [int(n) for n in new], [0, 0, 0, 0] if restarted else [int(n) for n in old]
        )
        grown = (reads + writes << 2 * _HALF) + (wrote << _HALF) + have_read
        self._grown[name] = self._grown.get(name, 0) + grown

    def take(self) -> tuple[JobRate, ...]:
        """Bytes and operations per job since the reading before, over all targets that were read both times; those of
        most bytes first.
        """
        grown = {name: _apart(of) for name, of in self._grown.items() if of}
        most = heapq.nsmallest(MAX_JOBS - MAX_BY_OPERATIONS, grown.items(), key=_by_bytes)
        if len(grown) > len(most):
            busiest = heapq.nsmallest(MAX_BY_OPERATIONS, grown.items(), key=lambda job: (-job[1][2], job[0]))
            most = sorted({**dict(most), **dict(busiest)}.items(), key=_by_bytes)
        self._before, self._now, self._grown = self._now, {}, {}
        return tuple(JobRate(job_stats.unquote(name), *of) for name, of in most)


def growth(now: Sequence[int], before: Sequence[int]) -> list[int]:
    """All there is where one of them decreased; 0 for one that overflowed."""
    known = [OVERFLOWED not in pair for pair in zip(now, before, strict=True)]
    since = before if all(n >= o for n, o, of in zip(now, before, known) if of) else [0] * len(now)
    return [n - o if of else 0 for n, o, of in zip(now, since, known)]


def _by_bytes(job: tuple[str, tuple[int, int, int]]) -> tuple[int, str]:
    return -job[1][0] - job[1][1], job[0]


def _apart(grown: int) -> tuple[int, int, int]:
    """(bytes written, bytes read, operations)."""
    low = (1 << _HALF) - 1
    parts = grown >> _HALF & low, grown & low, grown >> 2 * _HALF
    return min(parts[0], MAX_COUNT), min(parts[1], MAX_COUNT), min(parts[2], MAX_COUNT)


def _unusual(span: job_stats.Span) -> tuple[bytes, ...]:
    text, begin, end = span
    entry = text[begin:end]
    job = job_stats.parse_entry(entry, ("read_bytes", "write_bytes"))
    rows = [job.rows.get(name, ZERO) for name in ("read_bytes", "write_bytes")]
    numbers = (*(row.sum for row in rows), *(row.samples for row in rows))
    return entry.partition(b"\n")[0], b"%.9f" % job.start_s, *(b"%d" % number for number in numbers)


MAX_CLIENTS = 16_384
"""Clients named in one report: those that moved most bytes."""
MAX_FILES = 200_000
"""Read at one time; a server with more clients times OSTs has what is beyond left out."""

Export = tuple[str, str]
"""(device of the OST, NID of the client)."""


Seen = tuple[float, int, int, int, int]
"""(start_time, bytes written, bytes read, writes, reads)."""


def exported(stats: Stats) -> Seen:
    wrote, have_read = stats.row("write_bytes"), stats.row("read_bytes")
    written = OVERFLOWED if "write_bytes" in stats.unknown else wrote.sum
    read = OVERFLOWED if "read_bytes" in stats.unknown else have_read.sum
    return stats.start_s, written, read, wrote.samples, have_read.samples


def client_rates(now: Mapping[Export, Seen], before: Mapping[Export, Seen]) -> tuple[ClientRate, ...]:
    """Growth per client over the exports of OSTs that were read both times; most bytes first.

    A client that connected since counts from 0, one whose counters were reset too.
    """
    known = {device for device, _ in before}
    totals: dict[str, list[int]] = {}
    for (device, nid), (start_s, *counts) in now.items():
        if device not in known:
            continue
        old_start_s, *old = before.get((device, nid), (start_s, 0, 0, 0, 0))
        if were_reset(start_s, old_start_s, (), ()):
            old = [0, 0, 0, 0]
        if counts != old:
            total = totals.setdefault(nid, [0, 0, 0, 0])
            for i, more in enumerate(growth(counts, old)):
                total[i] += more
    largest = sorted(totals.items(), key=lambda item: (-item[1][0] - item[1][1], item[0]))
    return tuple(
        ClientRate(nid, *(min(n, MAX_COUNT) for n in counts)) for nid, counts in largest[:MAX_CLIENTS]
    )
