"""CPU and memory of the node, through psutil, also below an alternate root."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

from tarazu.stats import arcstats


class CpuTimes(NamedTuple):
    """Seconds since boot, all CPUs together."""

    busy_s: float
    total_s: float

    def load_since(self, before: CpuTimes) -> float:
        """Busy share, 0-1, between two readings; 0 when no time passed. Waiting for disks is not busy."""
        total = self.total_s - before.total_s
        if total <= 0:
            return 0.0
        return min(1.0, max(0.0, (self.busy_s - before.busy_s) / total))


class Host(NamedTuple):
    cpu: CpuTimes
    memory_load: float
    """Memory in use without page cache, reclaimable slab, and the ARC above its minimum, 0-1 of all memory."""


def params() -> tuple[str, ...]:
    return ("proc/stat", "proc/meminfo", *arcstats.params())


def read(root: str | Path = "/") -> Host:
    """CPU times and memory of the node whose /proc lies below `root`.

    Raises OSError or ValueError when `proc/stat` or `proc/meminfo` is missing or malformed, ImportError
    without psutil.
    """
    import psutil

    before = getattr(psutil, "PROCFS_PATH", "/proc")
    psutil.PROCFS_PATH = str(Path(root) / "proc")
    try:
        with warnings.catch_warnings():
            # psutil warns about every line of meminfo that it misses, also about those not used here.
            warnings.simplefilter("ignore", RuntimeWarning)
            times = psutil.cpu_times()
            memory = psutil.virtual_memory()
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"malformed proc/stat or proc/meminfo: {error}") from None
    finally:
        psutil.PROCFS_PATH = before
    idle = times.idle + times.iowait
    # Guest time is part of user and nice already.
    total = sum(times) - times.guest - times.guest_nice
    cached = max(0, memory.cached - memory.shared)
    used = memory.total - memory.free - memory.buffers - cached - arcstats.reclaimable_bytes(root)
    load = used / memory.total if memory.total else 0.0
    return Host(CpuTimes(total - idle, total), min(1.0, max(0.0, load)))
