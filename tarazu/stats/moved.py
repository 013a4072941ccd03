"""What an OST moved between two reports of its server: how it is used now, whatever it could do."""

from __future__ import annotations

import math
from typing import NamedTuple

from tarazu.stats.counters import were_reset
from tarazu.stats.evidence import io_of, since_base
from tarazu.wire.reports import OstReport


class Moved(NamedTuple):
    writing_bytes_per_s: float | None = None
    """None: nobody counted."""
    reading_bytes_per_s: float | None = None
    latency_s: float | None = None
    """Mean time of one I/O, reads and writes together, by the best source that the server has (`stats.service`); None
    where there was no I/O, or none that is timed."""


UNKNOWN = Moved()


def moved(now: OstReport, before: OstReport, seconds: float) -> Moved:
    """Between two reports of one server, `seconds` apart; `UNKNOWN` where its counters began anew meanwhile."""
    directions = (_counts(now, True), _counts(before, True)), (_counts(now, False), _counts(before, False))
    known = [(new, old) for new, old in directions if new and old]
    bytes_now, bytes_then = ([n for of in side for n in of] for side in zip(*known)) if known else ([], [])
    if seconds <= 0 or were_reset(now.counters_start_s, before.counters_start_s, bytes_now, bytes_then):
        return UNKNOWN
    written, read = (new[0] - old[0] if new and old else None for new, old in directions)
    if (
        (written or 0) + (read or 0)
    ) / seconds == math.inf:  # a server says that its interval was next to nothing
        return UNKNOWN
    return Moved(
        None if written is None else written / seconds,
        None if read is None else read / seconds,
        _latency_s(now, before) if written or read else None,
    )


def _counts(report: OstReport, writes: bool) -> tuple[int, int] | None:
    """Bytes and requests; None where the bytes overflowed: there is no request without any."""
    of = (report.write_bytes, report.write_samples) if writes else (report.read_bytes, report.read_samples)
    return None if of[1] and not of[0] else of


def _latency_s(now: OstReport, before: OstReport) -> float | None:
    ios = usecs = 0
    for writes in (False, True):
        new, old = io_of(now, writes), io_of(before, writes)
        if new and old and new.source == old.source:
            since = since_base(new, old)
            if since.usecs > 0:
                ios, usecs = ios + since.ios, usecs + since.usecs
    return usecs / ios / 1e6 if ios else None
