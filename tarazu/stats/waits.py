"""OSTs on which no I/O ends, held back until their peers have reported: what stops many disks is not a slow disk.

Reports of one interval come one after another. When all storage stands still, those of the first server say so before
the others'; when it goes on, those of the last ones still say so. So a wait is told when half of the other OSTs have
been reported since, and not where as many wait, or did in their report before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tarazu.wire.reports import OstReport


class _Heard(NamedTuple):
    at_s: float
    waits: bool
    waited: bool
    """In the report before."""
    disk: str


class Waits:
    """Of one file system."""

    def __init__(self) -> None:
        self._heard: dict[int, _Heard] = {}
        self._pending: dict[int, tuple[float, OstReport]] = {}
        """OST → (since when, its newest report)."""

    def note(self, report: OstReport, received_s: float) -> None:
        """Take in one OST's report."""
        index, before = report.index, self._heard.get(report.index)
        waits = bool(report.waiting_s)
        self._heard[index] = _Heard(
            received_s, waits, bool(before and before.waits), report.disk or str(index)
        )
        if waits:
            since_s = self._pending[index][0] if index in self._pending else received_s
            self._pending[index] = since_s, report
        else:
            self._pending.pop(index, None)

    def heard_s(self, share: float) -> float:
        """Since when such a share of the OSTs has reported."""
        times = sorted((heard.at_s for heard in self._heard.values()), reverse=True)
        return times[max(0, math.ceil(share * len(times)) - 1)] if times else -math.inf

    @property
    def everywhere(self) -> bool:
        """Whether more than half of the OSTs wait, or did in their report before the last."""
        return 2 * sum(heard.waits or heard.waited for heard in self._heard.values()) > len(self._heard)

    def settled(self, servers: Mapping[int, str]) -> dict[int, OstReport]:
        """Those that wait for a reason of their own, each report once; `servers`: OST index → its OSS."""
        reports = {}
        for index, (since_s, report) in list(self._pending.items()):
            others = [heard for i, heard in self._heard.items() if i != index and heard.at_s >= since_s]
            if 2 * len(others) < len(self._heard) - 1:
                continue
            del self._pending[index]
            waiting = sum(heard.waits or heard.waited for heard in others)
            if 2 * (waiting + 1) <= len(others) + 1 and not self._whole_server(index, servers):
                reports[index] = report
        return reports

    def _whole_server(self, index: int, servers: Mapping[int, str]) -> bool:
        """Whether all disks of its server stand still, and they are several."""
        here = [
            heard
            for i, heard in self._heard.items()
            if servers.get(i, str(i)) == servers.get(index, str(index))
        ]
        return len({heard.disk for heard in here}) > 1 and all(h.waits or h.waited for h in here)
