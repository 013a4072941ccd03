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

import msgspec

from tarazu.stats import brw_stats, counters, diskstats
from tarazu.stats.brw_stats import READS, UNTIMED, WRITES
from tarazu.wire.reports import IoCounters, OstReport

DISK_SOURCES = ("brw_stats", "diskstats")
"""Those that count disk I/Os; the others count requests."""


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


def of_requests(report: OstReport) -> tuple[IoCounters | None, IoCounters | None]:
    """(None, writes) by `obdfilter.*.stats`; None where it has no times (2.12)."""
    if report.write_samples and not report.write_usecs:
        return None, None
    start_s = report.counters_start_s
    counts = (report.write_samples, report.write_bytes, report.write_usecs)
    return None, IoCounters("obdfilter", *counts, start_s=start_s)


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
        requests = of_requests(report) if ost in counted else nothing
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
