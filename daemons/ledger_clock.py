"""The ledger's clock: seconds that survive a restart and a reboot, and follow no jump of another clock.

In one process and boot it is CLOCK_BOOTTIME, which also counts while the node sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class LedgerClock:
    def __init__(
        self, boottime_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    ) -> None:
        self._boottime_s = boottime_s

    def now(self) -> float:
        return self._boottime_s()
