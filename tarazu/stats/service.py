"""How long an OST's I/Os took: from the best source that its server has, for reads and writes each.

In this order:

- `brw_stats`, `I/O time`: per OST, from the submission of a disk I/O to its end, and of this OST's I/Os alone. Not
  trusted where the table is missing, or where I/Os are counted but none has a time (ZFS does not time its writes).
- `diskstats` of the device in `osd-*.*.mntdev` (also `dm-*`, `md*`): the wait for the disk too, but mixed with the
  journal's and everyone else's I/O. Not where an OST is no block device (ZFS) or two OSTs are on one device.
- `ost_io`: time of bulk requests in the server's threads, network included. One value for all OSTs of a server: it
  shows a slow server, and an OST only where it is alone there.
- `obdfilter`: `write` of `obdfilter.*.stats`. It does not hold the wait for the disk: the OSTs of a disk held at a
  fiftieth of its speed were *faster* by it than healthy ones. Better than nothing, for a server that answers slowly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from tarazu.stats import brw_stats, counters, diskstats
from tarazu.stats.brw_stats import READS, UNTIMED, WRITES
from tarazu.stats.diskstats import Device
from tarazu.wire.reports import IoCounters, OstReport

DISK_SOURCES, REQUEST_SOURCES = ("brw_stats", "diskstats"), ("ost_io", "obdfilter")
"""Those that count disk I/Os, and those that count requests."""
WAY = "requests"
"""Requests on their way to the disks: network and threads, without the wait for the disk."""


class Devices:
    """Which block devices the OSTs of one server are on."""

    def __init__(
        self, root: Path, mntdev: Mapping[str, str], stats: Mapping[str, diskstats.Device] | None
    ) -> None:
        self._stats = stats or {}
        self._name = {ost: diskstats.device_name(root, value) for ost, value in mntdev.items()}
        self._users = Counter(self._name.values())
        self._disk = {ost: diskstats.disk_below(root, name) for ost, name in self._name.items() if name}
        self._disk_users = Counter(self._disk.values())

    def own(self, ost: str) -> diskstats.Device | None:
        """The device of which it is the only OST."""
        name = self._name.get(ost, "")
        return self._stats.get(name) if self._users[name] <= 1 else None

    def io(self, ost: str, start_s: float = 0.0) -> tuple[IoCounters, IoCounters] | None:
        """(reads, writes) of an OST's own device; None where it has none."""
        device = self.own(ost)
        if device is None:
            return None
        return diskstats.io(device, self._stats.get(self._disk[ost], device), start_s)

    def shared_disk(self, ost: str) -> str:
        """The disk on which other OSTs are too (on its partitions, volumes, files); empty where there are none."""
        disk = self._disk.get(ost, "")
        return disk if disk and self._disk_users[disk] > 1 else ""


def of_server(
    ost_io: counters.Stats | None, reports: Collection[OstReport]
) -> tuple[IoCounters | None, IoCounters | None]:
    """(reads, writes) of all OSTs of a server together, by `ost_io`; None where it does not say."""
    if ost_io is None:
        return None, None
    active = ost_io.row("req_active")

    def io(name: str, samples: int, size_bytes: int) -> IoCounters | None:
        row = ost_io.row(name)
        if name in ost_io.unknown or (samples >= UNTIMED and not row.sum):
            return None
        flight = (0, 0) if "req_active" in ost_io.unknown else (active.sum, active.samples)
        counts = (row.samples, size_bytes, row.sum, *flight)
        return counters.io_counters("ost_io", counts, ost_io.start_s)

    return (
        io("ost_read", sum(r.read_samples for r in reports), sum(r.read_bytes for r in reports)),
        io("ost_write", sum(r.write_samples for r in reports), sum(r.write_bytes for r in reports)),
    )


def of_requests(report: OstReport, writes: bool, source: str = WAY) -> IoCounters | None:
    """By `obdfilter.*.stats`; None where it has no times (2.12), or a sum overflowed."""
    counts = report.read_samples, report.read_bytes, report.read_usecs
    if writes:
        counts = report.write_samples, report.write_bytes, report.write_usecs
    known = bool(counts[0]) == bool(counts[1]) == bool(counts[2])
    return IoCounters(source, *counts, start_s=report.counters_start_s) if known else None


def with_service(
    reports: Mapping[str, OstReport],
    brw: Mapping[str, brw_stats.BrwStats],
    devices: Devices,
    ost_io: counters.Stats | None,
    counted: Collection[str],
) -> list[OstReport]:
    """The reports of a server's OSTs (by device name) with what is known of their I/O and disks.

    `counted`: those whose `obdfilter.*.stats` could be read, so that zeros are zeros.
    """
    nothing = (None, None)
    server = of_server(ost_io, reports.values()) if set(reports) <= set(counted) else nothing
    times = {ost: (stats.io(READS), stats.io(WRITES)) for ost, stats in brw.items()}
    completed = []
    for ost, report in reports.items():
        own = devices.io(ost, report.counters_start_s) or nothing
        requests = None, of_requests(report, True, "obdfilter") if ost in counted else None
        best = [
            times[ost][column]
            if ost in brw and brw[ost].timed(column)
            else own[column] or server[column] or requests[column]
            for column in (READS, WRITES)
        ]
        completed.append(
            msgspec.structs.replace(report, reads=best[0], writes=best[1], disk=devices.shared_disk(ost))
        )
    return completed


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
    """For how long an OST has had I/Os in flight of which none has ended: a held disk shows before its first I/O ends.

    By the device in `mntdev`: in flight now, and neither a bulk write nor anything else has ended since the last look,
    in which it was busy for so long. Where `brw_stats` counts the bulk writes that have ended, and `obdfilter.*.stats`
    (`write_bytes`) those that were begun, only these count: the device also ends pieces of them, and the journal's.
    """

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
