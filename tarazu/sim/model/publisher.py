"""What the statistics publishers of all OSSs send at an interval: counters as their servers would have counted them.

I/Os are those of `brw_stats`: of `IO_BYTES` each, timed from their submission to their end. A disk serves one at a
time; the time of an I/O is that of its service, times the streams that were there on average: what is not service is
wait. A stripe that is held back by another OST of its file is not slow on its own.
"""

from __future__ import annotations

import numpy as np

from tarazu.sim.model.links import Direction, Floats
from tarazu.sim.model.oss import Osses
from tarazu.sim.model.ost import FILES, Osts
from tarazu.sim.model.view import FS_NAME
from tarazu.units import MIB
from tarazu.wire.reports import IoCounters, OssReport, OstReport

IO_BYTES = 1 * MIB
COUNTING_SINCE_S = 1.0
"""Start of all counters: long ago."""


class Publisher:
    """Of all OSSs; they send at the same moment."""

    def __init__(self, osts: Osts, osses: Osses, interval_s: float) -> None:
        self._osts, self._osses, self.interval_s = osts, osses, interval_s
        self.due_s = 0.0
        """When the next reports are sent."""
        self._sequence = 0
        zeros = np.zeros((2, osts.count))
        self._moved: Floats = zeros.copy()
        self._ios: Floats = zeros.copy()
        self._io_s: Floats = zeros.copy()
        self._flight: Floats = zeros.copy()
        self._waited: Floats = np.zeros(osts.count)
        """Of all I/Os of each OST, seconds that they waited for others."""
        self._told_waited: Floats = np.zeros(osts.count)
        self._told_ios: Floats = np.zeros(osts.count)
        self._load_moved: Floats = np.zeros(osts.count)
        self._stream_s, self._busy_s = np.zeros(osts.count), np.zeros(osts.count)
        osts.on_change.append(self.count)

    def count(self) -> None:
        """Bring the counters up to now: speeds have been what they are since the last time."""
        osts = self._osts
        osts.settle()
        busy_s, stream_s = osts.busy_s - self._busy_s, osts.stream_s - self._stream_s
        streams = np.maximum(1.0, stream_s / np.where(busy_s > 0, busy_s, 1.0))
        moved = np.array([osts.moved(d) for d in Direction])
        new = np.maximum(0.0, moved - self._moved)
        service_s = np.array([osts.service_s(new[d], streams, d) for d in Direction])
        share = service_s / np.where(service_s.sum(0) > 0, service_s.sum(0), 1.0)
        self._ios += new / IO_BYTES
        self._io_s += service_s * streams
        self._waited += service_s.sum(0) * (streams - 1)
        self._flight += new / IO_BYTES * np.maximum(1.0, streams * share)
        self._moved, self._busy_s, self._stream_s = moved, osts.busy_s.copy(), osts.stream_s.copy()

    def io_s(self) -> Floats:
        """(OSTs,) seconds of all I/Os up to now, together: over a time, how many were in flight on average."""
        self.count()
        total: Floats = self._io_s.sum(0)
        return total

    def reports(self, now: float) -> list[OssReport]:
        """One of each OSS; an OST that is lost is in none."""
        self.count()
        self.due_s = now + self.interval_s
        self._sequence += 1
        moved = self._moved.sum(0)
        rates = self._osses.sums(moved - self._load_moved) / self.interval_s
        self._load_moved = moved
        cpu = self._osses.cpu_load(rates).tolist()
        wait_s = self._mean_wait_s().tolist()
        ios, io_us, flight = np.rint(self._ios), np.rint(self._io_s * 1e6), np.rint(self._flight)
        sizes = np.rint(self._moved)
        columns = [a.astype(np.int64).tolist() for pair in (sizes, ios, io_us, flight) for a in pair]
        free = self._osts.available().tolist()
        active = self._osts.active.tolist()
        of_server: list[list[OstReport]] = [[] for _ in self._osses.names]
        for j, row in enumerate(zip(*columns, strict=True)):
            if active[j]:
                of_server[j // self._osts.spec.osts_per_oss].append(self._ost(j, free[j], row))
        return [
            OssReport(
                name,
                self._sequence,
                now,
                self.interval_s,
                cpu[s],
                0.0,
                float(rates[s]),
                tuple(of_server[s]),
                queue_wait_s=wait_s[s],
            )
            for s, name in enumerate(self._osses.names)
        ]

    def _mean_wait_s(self) -> Floats:
        """(servers,) of the I/Os since the last report."""
        ios = self._ios.sum(0)
        waited, new = (self._osses.sums(n) for n in (self._waited - self._told_waited, ios - self._told_ios))
        self._told_waited, self._told_ios = self._waited.copy(), ios
        mean: Floats = waited / np.where(new > 0, new, 1.0)
        return mean

    def _ost(self, index: int, free_bytes: int, row: tuple[int, ...]) -> OstReport:
        written, have_read, write_ios, read_ios, write_us, read_us, write_flight, read_flight = row
        start_s = COUNTING_SINCE_S
        return OstReport(
            FS_NAME,
            index,
            total_bytes=self._osts.spec.ost_bytes,
            free_bytes=free_bytes,
            avail_bytes=free_bytes,
            files_free=FILES,
            write_bytes=written,
            write_samples=write_ios,
            write_usecs=write_us,
            read_bytes=have_read,
            read_samples=read_ios,
            read_usecs=read_us,
            counters_start_s=start_s,
            reads=IoCounters("brw_stats", read_ios, have_read, read_us, read_flight, read_ios, start_s),
            writes=IoCounters("brw_stats", write_ios, written, write_us, write_flight, write_ios, start_s),
        )
