"""The rule of LinkedIn's SlowBrokerFinder (cruise-control), for OSTs: what a site could have from the shelf.

Two measures of a minute, the time of an I/O and that of a byte. Each is out of order where it is more than three times
the 90th percentile of the OST's own past, or three times the median of its peers (defaults of
`slow.broker.metric.history.percentile.threshold` and `.margin`, of `slow.broker.peer.metric.percentile.threshold` and
`.margin`). An OST with both out of order gets a point, one without loses one; five (`slow.broker.demotion.score`)
call it slow. More than a tenth of all at once (`slow.broker.self.healing.unfixable.ratio`) are also said of the system.

Other than there: an OST is left out below 16 I/Os a minute instead of 1 MB/s, and no time is too short to be out of
order (there one second, of a flush). The past is that of a day at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tarazu.wire.reports import OstReport
from tests.benchmarks.evidence._disks import Bools, Floats

LEAST_IOS = 16
PAST, LEAST_PAST = 1440, 10
"""Minutes."""
PERCENTILE, MARGIN = 90, 3.0
POINTS = 5
UNFIXABLE = 0.1
NEW_PERCENTILES = 10
"""Minutes for which a percentile stands."""


class Estimate(NamedTuple):
    relative: float
    score: float


class SlowBroker:
    """Takes reports, and is asked, as `SlowOstFinder` is."""

    def __init__(self, osts: int) -> None:
        self._now = np.zeros((3, osts))
        self._last: Floats | None = None
        self._past = np.full((2, PAST, osts), np.nan)
        self._usual = np.full((2, osts), np.nan)
        self._points = np.zeros(osts, int)
        self._rounds = 0
        self._many = False

    def update_server(self, reports: Iterable[OstReport], _at_s: float) -> None:
        for report in reports:
            ios = [io for io in (report.reads, report.writes) if io]
            self._now[:, report.index] = [
                sum(getattr(io, of) for io in ios) for of in ("ios", "bytes", "usecs")
            ]

    def estimates(
        self, pools: Mapping[int, Sequence[str]], _servers: Mapping[int, str]
    ) -> dict[int, Estimate]:
        if self._last is not None:
            self._judge(
                self._now - self._last, np.array([pools[i][0] == "flash" for i in range(len(self._points))])
            )
        self._last = self._now.copy()
        called = self._points >= POINTS
        self._many = called.sum() > UNFIXABLE * len(called)
        return {
            i: Estimate(0.3 if slow else 1.0, points / POINTS)
            for i, (slow, points) in enumerate(zip(called.tolist(), self._points.tolist()))
        }

    def _judge(self, grown: Floats, flash: Bools) -> None:
        ios, size, usecs = grown
        busy = ios >= LEAST_IOS
        values = np.where(busy, [usecs / np.maximum(ios, 1), usecs / np.maximum(size, 1)], np.nan)
        if self._rounds % NEW_PERCENTILES == 0 and self._rounds >= LEAST_PAST:
            past = self._past[:, : min(self._rounds, PAST)]
            known = np.isfinite(past).sum(axis=1) >= LEAST_PAST
            filled = np.where(np.isfinite(past), past, -np.inf)
            # The percentile of those that are known, the others being first in order.
            ordered, count = np.sort(filled, axis=1), np.isfinite(past).sum(axis=1)
            at = past.shape[1] - 1 - np.round(count * (1 - PERCENTILE / 100)).astype(int)
            usual = np.take_along_axis(ordered, np.clip(at, 0, None)[:, None], axis=1)[:, 0]
            self._usual = np.where(known, usual, np.nan)
        slower = values > MARGIN * self._usual
        for kind in (False, True):
            here = busy & (flash == kind)
            if here.sum() >= 2:
                slower |= here & (values > MARGIN * np.median(values[:, here], axis=1)[:, None])
        out = slower.all(axis=0) & busy
        self._points = np.where(out, self._points + 1, np.maximum(self._points - 1, 0))
        self._past[:, self._rounds % PAST] = values
        self._rounds += 1

    def common(self) -> float:
        return 0.3 if self._many else 1.0
