"""`/proc/diskstats`: what a block device did, and which device an OST is."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from tarazu.stats import reading
from tarazu.stats.counters import io_counters, known
from tarazu.wire.reports import IoCounters

SECTOR_BYTES = 512
MAX_LAYERS = 8
"""Of device mapper, one upon another."""

_COLUMNS = (3, 5, 6, 7, 9, 10, 12, 13, 11)
"""Of a line: the fields of Device, but for the last. Merged requests nobody reads."""
_PARTITION = re.compile(r"((?:[shv]d|xvd)[a-z]+)\d+$|((?:nvme\d+n|mmcblk|md|loop|nbd|drbd)\d+)p\d+$")


class Device(NamedTuple):
    """One line, times in milliseconds."""

    reads: int
    read_sectors: int
    read_ms: int
    writes: int
    written_sectors: int
    write_ms: int
    busy_ms: int
    """At least one I/O in flight."""
    weighted_ms: int
    """Sum over all I/Os of the time in flight: over `busy_ms`, the mean number in flight."""
    in_flight: int
    """Now."""
    others: int
    """Discards and flushes that have ended, where the kernel counts them."""

    @property
    def ended(self) -> int:
        return self.reads + self.writes + self.others


def params() -> tuple[str, ...]:
    return ("diskstats", "osd-*.*.mntdev")


def parse(text: str) -> dict[str, Device]:
    """Device name → its counters; without a device whose line is not whole, or one of whose counters overflowed, as far
    as it is used. Raises ValueError where there are lines, and none is of a device.
    """
    devices: dict[str, Device] = {}
    odd, good = "", False
    for line in reading.lines(text):
        fields = line.split()
        if len(fields) < 14 or not all(f.removeprefix("-").isdecimal() for f in fields[3:14]):
            odd = odd or line.strip()
            continue
        good = True
        # Discards are counted since Linux 4.18, flushes since 5.5.
        others = [known(fields[at]) for at in (14, 18) if at < len(fields) and fields[at].isdecimal()]
        numbers = [known(fields[at]) for at in _COLUMNS]
        n = [number for number in (*numbers, *others) if number is not None]
        if len(n) == len(numbers) + len(others):
            devices[fields[2]] = Device._make((*n[: len(numbers)], sum(n[len(numbers) :])))
    if odd and not good:
        raise ValueError(f"expected a name and eleven numbers, found {odd[:60]!r}")
    return devices


def device_name(root: str | Path, mntdev: str) -> str:
    """The kernel's name of a device (`sdb1`, `dm-3`, `md0`) given as `/dev/sdb1`, `/dev/mapper/ost0`, a link of udev's.

    Empty for what is no device below /dev: a ZFS data set.
    """
    path = mntdev.strip()
    if not path.startswith("/dev/"):
        return ""
    try:
        return (Path(root) / path.lstrip("/")).resolve().name
    except (OSError, RuntimeError, ValueError):
        # Links in a circle, or no name at all.
        return ""


def whole_disk(name: str) -> str:
    """The disk that a partition lies on; any other device itself."""
    match = _PARTITION.match(name)
    return (match[1] or match[2]) if match else name


def disk_below(root: str | Path, name: str) -> str:
    """The disk that a device lies on in the end: a logical volume on one disk, a partition, a loop device's file (then
    its file system's device number). A device of several disks (a RAID, several paths) is a disk itself.
    """
    for _ in range(MAX_LAYERS):
        device = Path(root) / "sys/block" / name
        try:
            return _file_system(root, reading.text(device / "loop/backing_file").rstrip("\n"))
        except (OSError, ValueError):
            pass
        try:
            slaves = [entry.name for entry in (device / "slaves").iterdir()]
        except OSError:
            slaves = []
        below = slaves[0] if len(slaves) == 1 else whole_disk(name)
        if below == name:
            break
        name = below
    return name


def _file_system(root: str | Path, file: str) -> str:
    number = (Path(root) / file.lstrip("/")).stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def io(device: Device, disk: Device, start_s: float = 0.0) -> tuple[IoCounters, IoCounters]:
    """(reads, writes) of `device`; the number in flight is that of the whole `disk` while it was busy.

    start_s: when its OST was mounted here, where that is known: after a failover another node counts.
    """
    flight = (disk.weighted_ms, disk.busy_ms)
    reads = (device.reads, device.read_sectors * SECTOR_BYTES, device.read_ms * 1000, *flight)
    writes = (device.writes, device.written_sectors * SECTOR_BYTES, device.write_ms * 1000, *flight)
    return io_counters("diskstats", reads, start_s), io_counters("diskstats", writes, start_s)
