"""What each client wrote and read between two readings of `obdfilter.*.exports.*.stats`: one file a client and OST."""

from __future__ import annotations

from collections.abc import Mapping

from tarazu.stats.counters import MAX_COUNT, Stats, were_reset
from tarazu.wire.messages import ClientRate

MAX_CLIENTS = 16_384
"""Clients named in one report: those that moved most bytes."""
MAX_FILES = 200_000
"""Read at one time; a server with more clients times OSTs has what is beyond left out."""

Export = tuple[str, str]
"""(device of the OST, NID of the client)."""


Seen = tuple[float, int, int, int, int]
"""(start_time, bytes written, bytes read, writes, reads)."""


def seen(stats: Stats) -> Seen:
    wrote, have_read = stats.row("write_bytes"), stats.row("read_bytes")
    return stats.start_s, wrote.sum, have_read.sum, wrote.samples, have_read.samples


def rates(now: Mapping[Export, Seen], before: Mapping[Export, Seen]) -> tuple[ClientRate, ...]:
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
