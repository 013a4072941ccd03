"""What mdsd knows of the servers: their newest reports, and the view that is made of them, promises and the site's
exclusions.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator

import msgspec

from tarazu.allocate.ledger import Ledger
from tarazu.config import Settings, root
from tarazu.daemons.mdsd.allocation_requests import MAX_NAME_CHARACTERS
from tarazu.daemons.mdsd.exclusions import Exclusions
from tarazu.daemons.mdsd.filling import Filling
from tarazu.daemons.mdsd.health import Health
from tarazu.daemons.mdsd.limits import ReportLimits
from tarazu.daemons.mdsd.usual_times import UsualTimes
from tarazu.model import SystemView
from tarazu.ost_state import common_cause
from tarazu.stats.view import Taken, ViewBuilder
from tarazu.wire.reports import OssReport
from tarazu.wire.transport import Counts

log = logging.getLogger("tarazu.mdsd")

SETTLE_S = 3.0
QUIET_S = 0.3
"""For `SETTLE_S` after the start, no allocation before no new server has come for `QUIET_S`."""
DEFAULT_INTERVAL_S = 60.0
AT_ONCE_S = 0.05
LEARN_S = 10.0
"""So often, at least, reports are looked at: a few of each OST are kept until then."""
INTERVAL_FOR_S = 1.0


class System:
    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        counts: Counts,
        health: Health,
        filling: Filling,
        usual: UsualTimes | None = None,
    ) -> None:
        """`usual`: what is known of each OST's I/O times from before; None: nothing is kept."""
        options = settings.mdsd
        self.exclusions = Exclusions(options.exclude)
        self.filling = filling
        self.usual = usual or UsualTimes("")
        self.views = ViewBuilder(options.stale_after_s, root(), self.usual.usual)
        self.health = health
        self._turn = 0
        self._learn_at = -math.inf
        self._common: set[str] = set()
        """File systems of which most OSTs are slower than usual."""
        self._ledger = ledger
        self._counts = counts
        self._limits = ReportLimits()
        self.request_s: Callable[[str], float | None] = lambda _: None
        """Seconds of a request to the MDS of a file system, by a part."""
        self._started = self._newcomer_at = time.monotonic()
        self._interval = (self._started - INTERVAL_FOR_S, DEFAULT_INTERVAL_S)
        """(when it was looked for, the longest interval)"""

    def take_over(self, settings: Settings, exclusions: Exclusions) -> None:
        """Settings that were read again."""
        self.exclusions = exclusions
        self.filling.weights = settings.allocate.weights
        self.views.stale_after_s = settings.mdsd.stale_after_s

    def take_in(self, report: OssReport, now: float) -> Taken | None:
        """None: it does not count. `now` on the monotonic clock."""
        name = report.oss[:MAX_NAME_CHARACTERS]
        if expected := self._limits.refusal(report):
            self._counts.drop(name, expected)
            return None
        newcomer = report.oss not in self.views
        if (taken := self.views.update(self._limits.trimmed(report), now)) is None:
            self._counts.drop(name, "a report with possible values")
            return None
        self._limits.note(report)
        if newcomer:
            self._newcomer_at = now
        return taken

    def excuse(self, silence_s: float) -> None:
        """mdsd listened to nobody for so long: no server is stale for that."""
        self.views.excuse(silence_s)

    def view(self, fs_name: str, now: float) -> SystemView:
        """The system as the allocator sees it: with promises and each OST's state, without what the site excludes or
        is not well; `now` on the monotonic clock.
        """
        promised, written = self._ledger.promised(fs_name), self._ledger.written(fs_name)
        view = self.exclusions.apply(self.views.view(fs_name, now, promised, written, time.time()))
        days = self.filling.days_until_full(view, time.time())
        judged = self.health.apply(view, {name for of in self.views.impossible.values() for name in of})
        return msgspec.structs.replace(judged, days_until_full=days, request_s=self.request_s(fs_name))

    def reported(self) -> Iterator[SystemView]:
        """File systems as their servers report them: each time as many as take `AT_ONCE_S`, in turn."""
        began, names = time.monotonic(), self.views.fs_names()
        for _ in names:
            self._turn += 1
            yield self.views.view(names[self._turn % len(names)], time.monotonic(), taken_s=time.time())
            if time.monotonic() - began > AT_ONCE_S:
                return

    def look_at_filling(self) -> None:
        """Sample what is used, where it is time for that."""
        for fs_name in self.views.fs_names():
            if self.filling.due(fs_name, now_s := time.time()):
                self.filling.take(self.views.view(fs_name, time.monotonic(), taken_s=now_s), now_s)

    def learn(self, now: float) -> None:
        """Judge what came, also while nobody asks for a view: only what is judged is learned."""
        if now >= self._learn_at:
            self._learn_at = now + LEARN_S
            for view in self.reported():
                self._tell_common_cause(view)
            self.usual.look(now)

    def _tell_common_cause(self, view: SystemView) -> None:
        """Why so many slow OSTs at once are not excluded: once when that begins, and when it ends."""
        why = common_cause(view.common_relative)
        if bool(why) != (view.fs_name in self._common):
            log.warning("%s: %s", view.fs_name, why or "most OSTs are as fast as usual again")
            self._common ^= {view.fs_name}

    def may_settle(self) -> bool:
        return time.monotonic() - self._started <= SETTLE_S

    def settling(self, fs_name: str) -> bool:
        """True just after the start, while servers are still coming back: a part must not get all."""
        if not self.may_settle():
            return False
        return fs_name not in self.views.fs_names() or time.monotonic() - self._newcomer_at < QUIET_S

    def young(self) -> bool:
        """True after the start, for as long as a running server may be silent."""
        return time.monotonic() - self._started < self.views.stale_after_s

    def interval_s(self) -> float:
        """The longest interval of all servers that report, as of a second ago; one that slept is no measure."""
        now = time.monotonic()
        if now - self._interval[0] >= INTERVAL_FOR_S:
            self._interval = (now, self._longest_interval_s())
        return self._interval[1]

    def _longest_interval_s(self) -> float:
        intervals = [report.interval_s for report, _ in self.views.servers().values()]
        longest_s = max((i for i in intervals if i > 0), default=DEFAULT_INTERVAL_S)
        return min(longest_s, max(self.views.stale_after_s, DEFAULT_INTERVAL_S))
