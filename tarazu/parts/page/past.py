"""What each OST held and moved over time, and what became of OSTs, servers and mdsd: two more tables of `imbalance.db`.

Minutes are gathered in memory and written together every `SPANS_S[0]`: at thousands of OSTs a row of each a minute
would be most of what the daemon does. A restart costs what was not written yet.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tarazu.errors import StoreError
from tarazu.ost_state import Verdict
from tarazu.store.sqlite import UNREADABLE
from tarazu.wire.overview import Overview, Target

SPANS_S = {600: 86400 + 7200, 4 * 3600: 31 * 86400}
"""Seconds that a row of `osts` stands for → how long it is kept."""
WRITTEN_S = min(SPANS_S)
EVENTS_KEPT_S = 31 * 86400
EVENTS = 20_000
"""So many at most, beside the last one of each name."""
GONE_AFTER_S = 120.0
"""An mdsd that runs for less has not heard all servers yet."""

OST, SERVER, MDSD = "OST", "server", "mdsd"
WELL, HEARD, SILENT, GONE, ANSWERS = "ok", "heard", "silent", "gone", "answers"

SCHEMA = (
    """create table if not exists osts (
    span_s integer, at_s integer, fs_name text, ost integer, samples integer,
    used_permille integer, moved_bytes_per_s integer, latency_us integer,
    primary key (span_s, at_s, fs_name, ost)) without rowid""",
    """create table if not exists events (
    kind text, name text, at_s integer, was text, now text, why text,
    primary key (kind, name, at_s)) without rowid""",
)
_MEAN = "coalesce(({0} * samples + excluded.{0} * excluded.samples) / (samples + excluded.samples), {0}, excluded.{0})"
_ADD = f"""
insert into osts values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict do update set
  {", ".join(f"{c} = {_MEAN.format(c)}" for c in ("used_permille", "moved_bytes_per_s", "latency_us"))},
  samples = samples + excluded.samples
"""


class OstMoment(msgspec.Struct, frozen=True):
    """An OST over one span, or several OSTs together: the sum of what they move, means of the rest."""

    at_s: int
    """Unix time of its begin."""
    used: float
    """Share of its space."""
    moved_bytes_per_s: float | None
    latency_s: float | None


class Event(msgspec.Struct, frozen=True):
    kind: str
    name: str
    at_s: int
    was: str
    """Empty: it is new."""
    now: str
    why: str = ""


class State(NamedTuple):
    """How something is now."""

    word: str
    since_s: float | None = None
    """As mdsd says."""
    why: str = ""


def states(of: Overview) -> dict[tuple[str, str], State]:
    """Of all OSTs and servers, and of mdsd; busy is well."""
    found = {
        (OST, t.name): State(t.verdict, t.since_s, t.why) if t.verdict.amiss else State(WELL)
        for t in of.targets
    }
    found |= {(SERVER, s.name): State(SILENT if s.stale else HEARD) for s in of.servers}
    found[MDSD, MDSD] = State(ANSWERS)
    return found


class _Sum:
    """Of one OST, since what was written last."""

    __slots__ = ("latencies", "latency_s", "moved", "moves", "samples", "used")

    def __init__(self) -> None:
        self.samples = self.moves = self.latencies = 0
        self.used = self.moved = self.latency_s = 0.0

    def add(self, t: Target) -> None:
        self.samples += 1
        self.used += t.fill
        if (moving := t.moving_bytes_per_s) is not None:
            self.moves, self.moved = self.moves + 1, self.moved + moving
        if t.latency_s is not None:
            self.latencies, self.latency_s = self.latencies + 1, self.latency_s + t.latency_s

    def row(self) -> tuple[int, int, int | None, int | None]:
        """Bounded: absurd figures are no reason for a page without history."""
        moved = _whole(self.moved / self.moves) if self.moves else None
        latency = _whole(self.latency_s / self.latencies * 1e6) if self.latencies else None
        return self.samples, _whole(self.used / self.samples * 1000), moved, latency


def _whole(value: float) -> int:
    return 0 if math.isnan(value) else int(min(max(value, -1e15), 1e15))


class Past:
    """Written from one thread, read from others."""

    def __init__(self, rows: sqlite3.Connection, lock: threading.RLock) -> None:
        """Of `Ring`, whose file it is. Raises StoreError."""
        self._rows, self._lock = rows, lock
        self._sums: dict[tuple[str, int], _Sum] = {}
        self._span = 0
        latest = "select kind, name, max(at_s), now from events group by kind, name"
        self._states = {(kind, name): now for kind, name, _, now in self._ask(latest)}
        self._begun: dict[str, int] = dict(self._ask("select kind, min(at_s) from events group by kind"))
        """Of the first event of each kind that is kept: what was seen then was not new."""

    @property
    def begun_s(self) -> int | None:
        """Since when something is noted; None: nothing is."""
        return min(self._begun.values(), default=None)

    def _ask(self, question: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._rows.execute(question, values).fetchall()
        except UNREADABLE as error:
            raise StoreError("what was before", "a file that can be read", str(error)) from None

    def _change(self, statements: Iterable[tuple[str, Iterable[Sequence[object]]]]) -> None:
        try:
            with self._lock:
                self._rows.execute("begin immediate")
                try:
                    for statement, values in statements:
                        self._rows.executemany(statement, values)
                    self._rows.execute("commit")
                finally:
                    if self._rows.in_transaction:
                        self._rows.execute("rollback")
        except UNREADABLE as error:
            raise StoreError("what was before", "a file that can be written", str(error)) from None

    # ---- what each OST held and moved

    def add(self, at_s: float, targets: Iterable[Target]) -> None:
        """How they are now; what is silent is left out. Raises StoreError."""
        span = int(at_s) // WRITTEN_S
        if span != self._span:
            self.write(at_s)
            self._span = span
        for t in targets:
            if not t.stale:
                self._sums.setdefault((t.fs_name, t.index), _Sum()).add(t)

    def write(self, now_s: float) -> None:
        """Write what was gathered. Raises StoreError, and it is lost."""
        sums, self._sums = self._sums, {}
        at_s = self._span * WRITTEN_S
        written = [
            (span_s, at_s // span_s * span_s, *key, *one.row())
            for span_s in SPANS_S
            for key, one in sums.items()
        ]
        # The most that goes at a time is bounded: a clock that was ahead takes little of the past with it.
        limit = 4 * len(sums) + 100
        old = (
            "delete from osts where (span_s, at_s, fs_name, ost) in (select span_s, at_s, fs_name, ost from osts "
            "where span_s = ? and (at_s < ? or at_s > ?) order by at_s limit ?)"
        )
        ages = [(span_s, now_s - kept_s, now_s, limit) for span_s, kept_s in SPANS_S.items()]
        if sums:
            self._change([(_ADD, written), (old, ages)])

    def next_s(self, now_s: float) -> float:
        """When the next point of an OST comes."""
        return (int(now_s) // WRITTEN_S + 1) * WRITTEN_S

    def moments(
        self, fs_name: str, osts: Sequence[int], span_s: int, since_s: float, now_s: float
    ) -> list[OstMoment]:
        """The oldest first. Raises StoreError."""
        begin = int(since_s) // span_s * span_s
        # By the key: a scan of all OSTs' rows would take seconds.
        question = f"""
        with recursive times(t) as (values(?) union all select t + ? from times where t + ? <= ?)
        select at_s, avg(used_permille), sum(moved_bytes_per_s), avg(latency_us)
        from times cross join osts on span_s = ? and at_s = t and fs_name = ? and ost in ({",".join("?" * len(osts))})
        group by at_s order by at_s
        """
        found = self._ask(question, (begin, span_s, span_s, int(now_s), span_s, fs_name, *osts))
        return [
            OstMoment(at, (used or 0) / 1000, moved, None if latency is None else latency / 1e6)
            for at, used, moved, latency in found
        ]

    # ---- what became of OSTs, servers and mdsd

    def notice(
        self, found: Mapping[tuple[str, str], State], now_s: float, *, mdsd_runs_s: float = 0.0
    ) -> None:
        """Note what is not as it was. Raises StoreError."""
        new: list[Event] = []
        for (kind, name), state in found.items():
            was = self._states.get((kind, name), "")
            if state.word != was:
                # Since when, as mdsd says, if that fits to what is known.
                at_s = min(state.since_s or now_s, now_s) if was else now_s
                new.append(
                    Event(kind, name, int(max(at_s, now_s - EVENTS_KEPT_S)), was, state.word, state.why)
                )
        if mdsd_runs_s >= GONE_AFTER_S:
            new += [
                Event(kind, name, int(now_s), was, GONE)
                for (kind, name), was in self._states.items()
                if was != GONE and kind in (OST, SERVER) and (kind, name) not in found
            ]
        if not new:
            return
        last = (
            "delete from events where at_s < ? and (now = ? or exists (select 1 from events as later "
            "where later.kind = events.kind and later.name = events.name and later.at_s > events.at_s))"
        )
        count = int(self._ask("select count(*) from events")[0][0]) + len(new)
        oldest = now_s - EVENTS_KEPT_S
        if count > EVENTS + 2 * len(self._states):
            (row,) = self._ask("select at_s from events order by at_s desc limit 1 offset ?", (EVENTS,))
            oldest = max(oldest, float(row[0]))
        self._change(
            [
                ("insert or replace into events values (?, ?, ?, ?, ?, ?)", [_row(event) for event in new]),
                (last, [(oldest, GONE)]),
                ("delete from events where at_s > ?", [(now_s + 60,)]),
            ]
        )
        self._states |= {(event.kind, event.name): event.now for event in new}
        for event in new:
            self._begun.setdefault(event.kind, event.at_s)

    def since(self, at_s: float) -> list[Event]:
        """What has changed since then, the oldest first, without what was seen for the first time when the history
        began. Raises StoreError.
        """
        question = (
            "select kind, name, at_s, was, now, why from events where at_s >= ? order by at_s, name limit ?"
        )
        found = [Event(*row) for row in self._ask(question, (at_s, EVENTS))]
        return [event for event in found if event.was or event.at_s > self._begun.get(event.kind, 0) + 60]

    def of(self, kind: str, name: str) -> list[Event]:
        """The newest first. Raises StoreError."""
        question = "select kind, name, at_s, was, now, why from events where kind = ? and name = ? order by at_s desc"
        return [Event(*row) for row in self._ask(question, (kind, name))]


def _row(event: Event) -> tuple[object, ...]:
    why = event.why.encode(errors="replace").decode()[:300]
    return event.kind, event.name.encode(errors="replace").decode(), event.at_s, event.was, event.now, why


def is_worse(event: Event) -> bool:
    """OSTs: graver than it was. Others: it went."""
    if event.kind == OST and GONE not in (event.was, event.now):
        return bool(event.was) and Verdict(event.now).weight > Verdict(event.was).weight
    return event.now in (SILENT, GONE, "unavailable")
