"""For how long an OST has had I/Os in flight of which none has ended: a held disk shows before its first I/O ends.

By the device in `mntdev`: in flight now, and neither a bulk write nor anything else has ended since the last look, in
which it was busy for so long. Where `brw_stats` counts the bulk writes that have ended, and `obdfilter.*.stats`
(`write_bytes`) those that were begun, only these count: the device also ends pieces of them, and the journal's I/Os.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tarazu.stats.diskstats import Device
from tarazu.wire.reports import OstReport


class Waiting(NamedTuple):
    seconds: float = 0.0
    ios: int = 0
    """In flight: bulk writes, or the device's I/Os."""


NOTHING = Waiting()


class _Last(NamedTuple):
    device: Device
    ended: int
    """Bulk writes."""
    ahead: int
    """By so many those begun are ahead of those ended when none is in flight: some fail before they reach the disk."""
    bulk: int
    """Bulk writes in flight."""
    seconds: float


class Watch:
    """Follows the OSTs of one server from look to look."""

    def __init__(self) -> None:
        self._last: dict[str, _Last] = {}

    def look(
        self, reports: Mapping[str, OstReport], devices: Mapping[str, Device | None]
    ) -> dict[str, Waiting]:
        """OST → what waits there; `devices`: its own."""
        before, self._last = self._last, {}
        waiting: dict[str, Waiting] = {}
        for ost, report in reports.items():
            if device := devices.get(ost):
                counted = report.writes is not None and report.writes.source == "brw_stats"
                ended = report.writes.ios if report.writes and counted else 0
                begun = report.write_samples if counted else 0
                waiting[ost] = self._look(ost, device, begun, ended, before.get(ost))
        return waiting

    def _look(self, ost: str, device: Device, begun: int, ended: int, last: _Last | None) -> Waiting:
        ahead = begun - ended
        usual = ahead if last is None or not device.in_flight else min(last.ahead, ahead)
        bulk, waiting = ahead - usual, NOTHING
        if last and device.in_flight and ended == last.ended and device.busy_ms >= last.device.busy_ms:
            # Of bulk writes that were begun since, nobody knows how long the device was busy with them.
            known = device.ended == last.device.ended or (bulk and last.bulk)
            seconds = last.seconds + (device.busy_ms - last.device.busy_ms) / 1e3
            waiting = Waiting(seconds, bulk or device.in_flight) if known else NOTHING
        self._last[ost] = _Last(device, ended, usual, bulk, waiting.seconds)
        return waiting
