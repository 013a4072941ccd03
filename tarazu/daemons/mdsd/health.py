"""What mdsd knows of each OST's health now: well, or since when it is what.

`tarazu.ost_state` says what the words mean and judges by what an OST's server reports; here the MDS's connections come
to it, looked at every `LOOK_S` by a thread of its own while anything is promised, and at each plan: files of debugfs
may take long to read, and nobody waits for them.

dead      `osp.*.state`, or `prealloc_status` ENODEV, ENOTCONN, EAGAIN
refusing  `active`, `max_create_count`, `prealloc_status`, `target_obd`
full      `prealloc_status` is ENOSPC

The view that plans are made from leaves out at once what is dead, refusing or full. A change counts, and is told to
running steps, once it was seen for `CONFIRM_S`: a connection that is lost for a moment must not throw out plans. One
that comes and goes must be up for longer each time before it counts as well.
Everything is derived anew after a restart.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from tarazu.model import Ost, SystemView
from tarazu.ost_state import IMPOSSIBLE, TOLD, UNUSABLE, WELL, OstState, Verdict, gravest, judge
from tarazu.stats import osp
from tarazu.stats.osp import Osps, Target
from tarazu.stats.params import target_name

log = logging.getLogger("tarazu.mdsd")

LOOK_S = 2.0
SOON_S = 1.0
"""Until the next look while something is not confirmed yet."""
LONGEST_LOOK_S = 3.5
"""A look takes at most a hundredth of a core where that is possible with so many seconds between them."""
IDLE_LOOK_S = 10.0
"""While nothing is promised."""
FRESH_S = 1.0
"""A plan is made from a look that is no older, if there is one within `PATIENCE_S`."""
PATIENCE_S = 0.5
REPORTS_S = 4.0
"""So often what servers report of themselves is looked at, while anything is promised."""
CONFIRM_S = {Verdict.DEAD: 0.9, Verdict.OK: 1.9}
"""A verdict counts once it was seen for so long; others at once."""
FREE_RETURNS = 2
"""After so many, one has to be well for twice as long with every further return."""
FORGIVEN_S = 60.0
"""So long without a break an OST was well before its returns are counted anew."""
LONGEST_CONFIRM_S = 30.0


class HealthChange(NamedTuple):
    target: Target
    before: OstState
    now: OstState


@dataclass
class _Record:
    counts: OstState
    """Since when is Unix time from which it counts."""
    seen: OstState
    seen_since: float
    """Monotonic time from which it was seen without a break."""
    returns: int = 0
    """How often it has come back and not stayed."""

    def confirm_s(self) -> float:
        """How long what is seen must have been seen to count."""
        confirm_s = CONFIRM_S.get(self.seen.verdict, 0.0)
        if not self.seen.well:
            return confirm_s
        return min(LONGEST_CONFIRM_S, confirm_s * 2.0 ** min(max(0, self.returns - FREE_RETURNS), 10))


class Looker:
    """Looks at the MDS's connections in a thread."""

    def __init__(self, osps: Osps, wake: Callable[[], None]) -> None:
        self.seen = osp.NOTHING
        self.at = 0.0
        """When the last look began, on the monotonic clock."""
        self.count = 0
        self.every_s = 0.0
        """How long until the next look."""
        self._osps = osps
        self._wake = wake
        self.beside: Callable[[], None] = lambda: None
        """Called after each look."""
        self._wanted = threading.Event()
        self._done = threading.Condition()
        self._stopping = False
        self._slow = False
        """A look takes so long that nobody waits for it any more."""
        self._thread = threading.Thread(target=self._run, name="tarazu-health", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()

    def hurry(self, every_s: float) -> None:
        """Look so often from now on."""
        sooner = every_s < self.every_s
        self.every_s = every_s
        if sooner:
            self._wanted.set()

    def fresh(self) -> None:
        """Return once a look is no older than `FRESH_S`, or after `PATIENCE_S`."""
        began = time.monotonic()
        if began - self.at <= FRESH_S or self._slow or not self._thread.is_alive():
            return
        self._wanted.set()
        with self._done:
            self._slow = not self._done.wait_for(lambda: self.at >= began - FRESH_S, PATIENCE_S)

    def _run(self) -> None:
        while not self._stopping:
            began, spent_s = time.monotonic(), time.thread_time()
            try:
                seen = self._osps.look()
            except Exception:
                log.exception("looking at the OSTs' connections failed")
                seen = osp.NOTHING
            with self._done:
                self.seen, self.at = seen, began
                self.count += 1
                self._slow = False
                self._done.notify_all()
            self.beside()
            if seen.known or self.count == 1:
                self._wake()
            spent_s = time.thread_time() - spent_s
            pause_s = max(self.every_s, min(100 * spent_s, LONGEST_LOOK_S) if self.every_s >= LOOK_S else 0.0)
            self._wanted.wait(max(0.05, began + pause_s - time.monotonic()))
            self._wanted.clear()


class Health:
    """Of all targets of all file systems. Its methods are called from mdsd's main thread."""

    def __init__(self, root: str, wake: Callable[[], None] = lambda: None) -> None:
        """`root`: below which the MDS's parameters lie; `wake` ends the main loop's sleep."""
        self.looker = Looker(Osps(root), wake)
        self.looker.every_s = IDLE_LOOK_S
        self._records: dict[Target, _Record] = {}
        """Of what is not well, or was not a moment ago."""
        self._reported: dict[str, dict[Target, OstState]] = {}
        """By the servers' own reports, of each file system: what running steps get news of."""
        self._lesser: dict[str, dict[Target, OstState]] = {}
        """What they are not."""
        self._unsure = False
        """Something was seen that does not count yet."""
        self._count = 0
        self._reports_at = 0.0

    def start(self) -> None:
        self.looker.start()

    def stop(self) -> None:
        self.looker.stop()

    def update(
        self, views: Callable[[], Iterable[SystemView]], now: float, *, promised: bool
    ) -> list[HealthChange]:
        """What has changed since the last call; cheap when nothing can have. `now`: on the monotonic clock.

        `views`: of the next file system, without our own verdicts; asked for every `REPORTS_S`. `promised`: somebody is
        to be told.
        """
        looked = self.looker.count != self._count
        due = now - self._reports_at >= (REPORTS_S if promised else IDLE_LOOK_S)
        if not looked and not due:
            self._set_pace(promised)
            return []
        self._count = self.looker.count
        seen = self.looker.seen
        if due:
            began = time.thread_time()
            for view in views():
                self._read(view, seen)
            # However many targets there are, at most a hundredth of a core.
            self._reports_at = now + max(0.0, 100 * (time.thread_time() - began) - REPORTS_S)
        health = {t: v for of in self._reported.values() for t, v in of.items()} | of_connections(seen)
        changes = [
            c for t in health.keys() | self._records.keys() if (c := self._take(t, health.get(t, WELL), now))
        ]
        self._records = {
            t: r
            for t, r in self._records.items()
            if not (r.counts.well and r.seen.well) or (r.returns and now - r.seen_since < FORGIVEN_S)
        }
        self._unsure = any(r.seen.verdict != r.counts.verdict for r in self._records.values())
        self._set_pace(promised)
        return changes

    def _set_pace(self, promised: bool) -> None:
        self.looker.hurry(SOON_S if self._unsure else LOOK_S if promised else IDLE_LOOK_S)

    def _read(self, view: SystemView, seen: osp.TargetTrouble) -> None:
        told: dict[Target, OstState] = {}
        lesser: dict[Target, OstState] = {}
        before, now_s = self._lesser.get(view.fs_name, {}), time.time()
        for ost in view.osts:
            target = view.fs_name, ost.index
            state = of_report(ost, connected=target in seen.known)
            if state.verdict in TOLD:
                told[target] = state
            elif not state.well:
                known = before.get(target)
                since_s = known.since_s if known and known.verdict == state.verdict else now_s
                lesser[target] = msgspec.structs.replace(state, since_s=since_s)
        self._reported[view.fs_name], self._lesser[view.fs_name] = told, lesser

    def _take(self, target: Target, seen: OstState, now: float) -> HealthChange | None:
        record = self._records.get(target)
        if record is None:
            record = self._records[target] = _Record(WELL, seen, now)
        if seen.verdict != record.seen.verdict:
            record.seen_since = now
        record.seen = seen
        if seen.verdict == record.counts.verdict:
            record.counts = msgspec.structs.replace(seen, since_s=record.counts.since_s)
            return None
        if now - record.seen_since < record.confirm_s():
            return None
        change = HealthChange(target, record.counts, seen)
        record.returns += seen.well
        record.counts = msgspec.structs.replace(seen, since_s=time.time())
        return change

    def unusable(self, fs_name: str) -> dict[int, OstState]:
        """OSTs on which no object should be made now: also by what was seen only once."""
        lost = self.looker.seen.lost
        states = {
            index: OstState(Verdict.DEAD, why, source="mds")
            for (fs, index), why in lost.items()
            if fs == fs_name
        }
        for (fs, index), record in self._records.items():
            for state in (record.seen, record.counts):
                if fs == fs_name and state.verdict in UNUSABLE:
                    states[index] = state
        return states

    def apply(self, view: SystemView, impossible: Collection[str] = ()) -> SystemView:
        """The view with each OST's state, and what is unusable marked so. `impossible`: targets by name whose server
        reports values that cannot be.
        """
        bad = self.unusable(view.fs_name)
        beside: Collection[int] = ()
        if impossible:
            beside = {o.index for o in view.osts if target_name(view.fs_name, o.index) in impossible}
        osts = (self._judged(view.fs_name, o, bad.get(o.index), o.index in beside) for o in view.osts)
        return msgspec.structs.replace(view, osts=tuple(osts))

    def _judged(self, fs_name: str, ost: Ost, bad: OstState | None, impossible: bool) -> Ost:
        if bad:
            ost = msgspec.structs.replace(ost, health=str(bad))
        state = judge(ost)
        if bad or impossible:
            state = gravest(bad or WELL, IMPOSSIBLE if impossible else WELL, state)
        if not state.well:
            target = fs_name, ost.index
            record, lesser = self._records.get(target), self._lesser.get(fs_name, {}).get(target)
            for known in (record.counts if record else None, lesser):
                if known and known.verdict == state.verdict:
                    state = msgspec.structs.replace(state, since_s=known.since_s)
        return msgspec.structs.replace(ost, state=state)

    def avoided(self, fs_name: str) -> dict[int, str]:
        """OST index → verdict, of what is so ill that no plan made by now uses it."""
        return {
            i: r.counts.verdict
            for (fs, i), r in self._records.items()
            if fs == fs_name and r.counts.verdict in UNUSABLE | {Verdict.SILENT}
        }

    def status(self, fs_name: str) -> dict[str, dict[str, object]]:
        """For people: OST index → the news that running steps got, why, since when (Unix time)."""
        return {
            str(index): {"health": str(of.verdict), "why": of.why, "since_s": of.since_s}
            for (fs, index), of in sorted((target, r.counts) for target, r in self._records.items())
            if fs == fs_name and not of.well
        }


def word(state: OstState) -> str:
    """As running steps get it; empty: no problem."""
    return "" if state.well else state.verdict


def text_of_change(change: HealthChange) -> str:
    """For the log."""
    (fs_name, index), before, now = change
    return f"{target_name(fs_name, index)} is {text_of(now)} (it was {text_of(before)})"


def text_of(state: OstState) -> str:
    return "well" if state.well else str(state)


def of_connections(seen: osp.TargetTrouble) -> dict[Target, OstState]:
    """What the MDS's own parameters say; of several the gravest."""
    return {
        **{t: OstState(Verdict.FULL, "prealloc_status ENOSPC", source="mds") for t in seen.full},
        **{t: OstState(Verdict.REFUSING, why, source="mds") for t, why in seen.refusing.items()},
        **{t: OstState(Verdict.DEAD, why, source="mds") for t, why in seen.lost.items()},
    }


def of_report(ost: Ost, *, connected: bool) -> OstState:
    """What an OST's server says of it, in its newest report. Silence says nothing while the MDS is connected."""
    return WELL if ost.stale and connected else judge(ost)
