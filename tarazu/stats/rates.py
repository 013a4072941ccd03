"""What each job and each client wrote and read between two readings: of the `job_stats` of all targets of a server, of
`obdfilter.*.exports.*.stats`, one file a client and OST.

Of 20 targets with 10,000 jobs each, only what the next reading is compared with is kept: about 150 bytes an entry.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Mapping

from tarazu.stats import job_stats
from tarazu.stats.counters import MAX_COUNT, Stats, were_reset
from tarazu.wire.messages import ClientRate, JobRate

MAX_JOBS = 1000
"""Jobs named in one report: those that moved most bytes."""
MAX_ID_CHARACTERS = 128
"""Lustre's have 31 bytes, which four characters each may stand for."""

_HALF = 80
_NOTHING = b"0"
_NEW = b"0 0 0"
_Kept = dict[str, bytes]
"""Job id as written → start time, bytes read, bytes written, as written."""


class JobRates:
    """For each reading: `add` every target, then `take` the result."""

    def __init__(self) -> None:
        self._before: dict[str, _Kept] = {}
        self._now: dict[str, _Kept] = {}
        self._grown: dict[str, int] = {}
        """Job → bytes written, above `_HALF` bits of bytes read: a third of the memory of two numbers."""

    def add(self, target: str, chunks: Iterable[bytes]) -> int:
        """Take in a target's `job_stats`; the number of jobs that moved data. Raises ValueError as `job_stats.spans`:
        then the next reading of the target is compared with none.
        """
        # One target's past is let go of as its present is taken in.
        before = self._before.pop(target, None)
        now: _Kept = {}
        for span in job_stats.spans(chunks):
            written_id, start, have_read, written = job_stats.usual(span) or _unusual(span)
            if written == have_read == _NOTHING:
                continue
            # The same job stands on all targets: one string for all.
            name = sys.intern(job_stats.id_text(written_id)[:MAX_ID_CHARACTERS])
            counts = b"%b %b %b" % (start or _NOTHING, have_read, written)
            if before is not None:
                old = before.get(name, _NEW)
                if old == counts:
                    counts = old
                else:
                    self._add_growth(name, start or _NOTHING, int(have_read), int(written), old)
            now[name] = counts
            if len(now) >= job_stats.MAX_JOBS:
                break
        self._now[target] = now
        return len(now)

    def _add_growth(self, name: str, start: bytes, have: int, wrote: int, old: bytes) -> None:
        old_start, old_read, old_written = old.split(b" ")
        more_read, more_written = have - int(old_read), wrote - int(old_written)
        # An entry that was dropped when idle, and began anew, counts from 0; some versions do not say when it began.
        restarted = start != old_start and float(start) > 0 and float(old_start) > 0
        if restarted or more_read < 0 or more_written < 0:
            more_read, more_written = have, wrote
        self._grown[name] = self._grown.get(name, 0) + (more_written << _HALF) + more_read

    def take(self) -> tuple[JobRate, ...]:
        """Bytes per job since the reading before, over all targets that were read both times; most bytes first."""
        moved = heapq.nsmallest(MAX_JOBS, self._grown.items(), key=lambda job: (-sum(_apart(job[1])), job[0]))
        self._before, self._now, self._grown = self._now, {}, {}
        return tuple(JobRate(job_stats.unquote(name), *_apart(both)) for name, both in moved if both)


def _apart(both: int) -> tuple[int, int]:
    return min(both >> _HALF, MAX_COUNT), min(both & (1 << _HALF) - 1, MAX_COUNT)


def _unusual(span: job_stats.Span) -> tuple[bytes, bytes, bytes, bytes]:
    text, begin, end = span
    entry = text[begin:end]
    job = job_stats.parse_entry(entry, ("read_bytes", "write_bytes"))
    have_read, written = (job.rows[n].sum if n in job.rows else 0 for n in ("read_bytes", "write_bytes"))
    return entry.partition(b"\n")[0], b"%.9f" % job.start_s, b"%d" % have_read, b"%d" % written


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
    return stats.start_s, wrote.sum, have_read.sum, wrote.samples, have_read.samples


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
        if were_reset(start_s, old_start_s, counts, old):
            old = [0, 0, 0, 0]
        if counts != old:
            total = totals.setdefault(nid, [0, 0, 0, 0])
            for i, (new, former) in enumerate(zip(counts, old, strict=True)):
                total[i] += new - former
    largest = sorted(totals.items(), key=lambda item: (-item[1][0] - item[1][1], item[0]))
    return tuple(
        ClientRate(nid, *(min(n, MAX_COUNT) for n in counts)) for nid, counts in largest[:MAX_CLIENTS]
    )
