"""CPU, memory and links of the node, as psutil reads them; below another root from `proc/stat` and `proc/meminfo`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tarazu.stats import arcstats, reading
from tarazu.stats.counters import count, known
from tarazu.units import KIB

_ROW = re.compile(r"(\w+):\s+(\d+)(?: kB)?$")
_NEEDED = ("MemTotal", "MemFree")
_IDLE = slice(3, 5)
"""`idle` and `iowait` in the line of all CPUs."""
HZ = os.sysconf("SC_CLK_TCK")
PAYLOAD = 0.94
"""Share of a link's bits that carry bytes of files: what Ethernet, IP and TCP leave."""
_GUEST = 8
"""Guest time, here and after, is part of user and nice already."""


class CpuTimes(NamedTuple):
    """Ticks since boot, all CPUs together."""

    busy: int
    total: int

    def load_since(self, before: CpuTimes) -> float:
        """Busy share, 0-1, between two readings; 0 when no time passed. Waiting for disks is not busy."""
        total = self.total - before.total
        if total <= 0:
            return 0.0
        return min(1.0, max(0.0, (self.busy - before.busy) / total))


class Host(NamedTuple):
    cpu: CpuTimes
    memory_load: float
    """Memory in use without page cache, reclaimable slab, and the ARC above its minimum, 0-1 of all memory."""


def params() -> tuple[str, ...]:
    return ("proc/stat", "proc/meminfo", *arcstats.params())


def parse_cpu(text: str) -> CpuTimes:
    """The line `cpu` of `proc/stat`. Raises ValueError when it is not there, or has fewer than four numbers."""
    for line in reading.lines(text):
        name, *fields = line.split()[:11] or [""]
        if name == "cpu":
            if len(fields) < 4 or not all(f.isdecimal() for f in fields):
                raise ValueError(f"expected `cpu` and its times, found {line[:60]!r}")
            ticks = [count(f) for f in fields[:_GUEST]]
            return CpuTimes(sum(ticks) - sum(ticks[_IDLE]), sum(ticks))
    raise ValueError("no line `cpu` in proc/stat")


def parse_memory(text: str) -> dict[str, int]:
    """Name → bytes, from `proc/meminfo`. Raises ValueError without `MemTotal` and `MemFree`."""
    rows = (_ROW.match(line.strip()) for line in reading.lines(text))
    sizes = {row[1]: size * KIB for row in rows if row and (size := known(row[2])) is not None}
    if missing := [name for name in _NEEDED if name not in sizes]:
        raise ValueError(f"no {' and no '.join(missing)} in proc/meminfo")
    return sizes


def read(root: str | Path = "/") -> Host:
    """CPU times and memory of the node whose /proc lies below `root`.

    Raises OSError or ValueError when `proc/stat` or `proc/meminfo` is missing or malformed.
    """
    if Path(root) == Path("/"):
        return _of_this_node()
    cpu = parse_cpu(reading.text(Path(root) / "proc/stat"))
    memory = parse_memory(reading.text(Path(root) / "proc/meminfo"))

    def of(*names: str) -> int:
        return sum(memory.get(name, 0) for name in names)

    total = memory["MemTotal"]
    cached = max(0, of("Cached", "SReclaimable") - of("Shmem"))
    used = total - of("MemFree", "Buffers") - cached - arcstats.reclaimable_bytes(root)
    return Host(cpu, min(1.0, max(0.0, used / total if total else 0.0)))


def _of_this_node() -> Host:
    import psutil

    ticks = [round(each * HZ) for each in psutil.cpu_times()[:_GUEST]]
    memory = psutil.virtual_memory()
    cached = max(0, memory.cached - memory.shared)  # reclaimable slab is in it
    used = memory.total - memory.free - memory.buffers - cached - arcstats.reclaimable_bytes("/")
    return Host(CpuTimes(sum(ticks) - sum(ticks[_IDLE]), sum(ticks)), min(1.0, max(0.0, used / memory.total)))


def link_bytes_per_s(nids: Iterable[str]) -> float:
    """What the interfaces of this node carry that have the addresses of these NIDs, each once. 0 where one is not
    known: no address of IP, or an interface that does not say its speed.
    """
    import psutil

    of = {a.address: name for name, addresses in psutil.net_if_addrs().items() for a in addresses}
    names = {of.get(nid.partition("@")[0]) for nid in nids}
    stats = psutil.net_if_stats()
    megabits = [stats[name].speed if name in stats else 0 for name in names]
    return sum(megabits) * 1e6 / 8 * PAYLOAD if megabits and all(megabits) else 0.0
