"""The sick OST's job again, and again: what is known of the OSTs comes from their own counters only.

Run 1 is the log, replayed as cumulative counters of disk I/Os such as the OSSs show in `brw_stats`, every 60 s: bytes,
writes, and the time spent in writes as the log has it (the clients'; that of the disks is not in it). Every later run
is the same job, placed by a policy on the view that the statistics give, and written by the model: each OST at the
throughput of the log (or, when it has recovered, at that of its peers), its counters growing accordingly.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from tarazu.allocate import quality
from tarazu.model import SystemView
from tarazu.sim import badost
from tarazu.sim.allocation import policies
from tarazu.sim.allocation.policies import Policy
from tarazu.stats.view import ViewBuilder
from tarazu.units import TIB
from tarazu.wire.reports import IoCounters, OssReport, OstReport

INTERVAL_S = 60.0
FS_NAME = "badost"


class Site:
    """The OSTs of the log with their counters, and the statistics that follow them."""

    def __init__(self, log: badost.Log, policy: Policy | None = None) -> None:
        self.log = log
        self.requests = badost.requests(log)
        self.policy = policy or policies.make("tarazu")
        self.speeds = badost.ost_speeds(log)
        """Bytes/s at which each OST really writes."""
        self.service_s = self._service_s_per_byte()
        self.write_bytes = sum(f.size_bytes for f in log.files) / sum(f.writes for f in log.files)
        self.views = ViewBuilder(stale_after_s=3 * INTERVAL_S)
        self.now = 1e9
        self._size = dict.fromkeys(self.speeds, 0.0)
        self._usecs = dict.fromkeys(self.speeds, 0.0)
        self.sample()

    def _service_s_per_byte(self) -> dict[int, float]:
        """Seconds of write time per byte of each OST, many writes being served at once."""
        size = dict.fromkeys(self.speeds, 0)
        spent = dict.fromkeys(self.speeds, 0.0)
        for file in self.log.files:
            size[file.ost] += file.size_bytes
            spent[file.ost] += file.write_s
        return {ost: spent[ost] / size[ost] for ost in size}

    def recover(self, ost: int) -> None:
        """From now on the OST is like the median of the others."""
        self.speeds[ost] = median(v for i, v in self.speeds.items() if i != ost)
        self.service_s[ost] = median(v for i, v in self.service_s.items() if i != ost)

    def replay(self) -> None:
        """Run 1 as logged: each file's bytes and write time spread evenly from its first to its last write."""
        begin = self.now
        while self.now - begin < self.log.completion_s:
            since, until = self.now - begin, self.now - begin + INTERVAL_S
            for file in self.log.files:
                inside = min(until, file.end_s) - max(since, file.start_s)
                if inside > 0:
                    share = inside / (file.end_s - file.start_s)
                    self._size[file.ost] += share * file.size_bytes
                    self._usecs[file.ost] += share * file.write_s * 1e6
            self.sample()

    def run(self) -> tuple[dict[int, int], float]:
        """Place the job, write it, sample until it is done: bytes per OST, modelled seconds."""
        view = self.view()
        placed = quality.ost_bytes(view, self.requests, self.policy.allocate(view, self.requests).files)
        left = {ost: float(size) for ost, size in placed.items()}
        while any(left.values()):
            for ost, size in left.items():
                written = min(size, self.speeds[ost] * INTERVAL_S)
                left[ost] -= written
                self._size[ost] += written
                self._usecs[ost] += written * self.service_s[ost] * 1e6
            self.sample()
        return placed, completion_s(placed, self.speeds)

    def view(self) -> SystemView:
        """What an allocator would be given now."""
        return self.views.view(FS_NAME, self.now)

    def sample(self) -> None:
        """Let an interval pass, then report."""
        self.now += INTERVAL_S
        for ost, size in self._size.items():
            report = OstReport(
                FS_NAME,
                ost,
                100 * TIB,
                100 * TIB,
                100 * TIB,
                writes=IoCounters(
                    "brw_stats", round(size / self.write_bytes), round(size), round(self._usecs[ost])
                ),
            )
            oss = OssReport(f"oss{ost:02d}", 0, self.now, INTERVAL_S, 0.0, 0.0, 0.0, (report,))
            self.views.update(oss, self.now)


def completion_s(placed: Mapping[int, int], speeds: Mapping[int, float]) -> float:
    """When the last OST has written its bytes."""
    return max(size / speeds[ost] for ost, size in placed.items())
