"""How each OST was over time, what it held and moved: an SQLite file of bounded size.

One that cannot be read is put aside: losing it loses a picture.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import StoreError
from tarazu.store.sqlite import UNREADABLE
from tarazu.wire.overview import Target

log = logging.getLogger("tarazu.page")

VERSION = 2
SPANS_S = {600: 86400 + 7200, 4 * 3600: 31 * 86400}
"""Seconds that a row stands for → how long it is kept."""
SCHEMA = """
create table if not exists osts (
span_s integer, at_s integer, fs_name text, ost integer, samples integer,
used_permille integer, moved_bytes_per_s integer, latency_us integer, gravest integer,
primary key (span_s, at_s, fs_name, ost)) without rowid
"""
_MEAN = "{0} = coalesce(({0} * samples + excluded.{0}) / (samples + 1), {0}, excluded.{0})"
_ADD = f"""
insert into osts values (?, ?, ?, ?, 1, ?, ?, ?, ?) on conflict do update set
  {", ".join(map(_MEAN.format, ("used_permille", "moved_bytes_per_s", "latency_us")))},
  gravest = max(gravest, excluded.gravest), samples = samples + 1
"""
_OLD = """
delete from osts where (span_s, at_s, fs_name, ost) in (select span_s, at_s, fs_name, ost from osts
where span_s = ? and at_s < ? order by at_s limit ?)
"""


class Moment(NamedTuple):
    """Some OSTs together, over one span; None: that is not known."""

    at_s: int
    """Unix time of its begin."""
    used: float | None
    """Mean share of their space."""
    fullest: float | None
    moved: float | None
    """Bytes per second, the sum."""
    of_busiest: float | None
    known: int
    """Of how many it is known what they moved."""
    latency_s: float | None
    gravest: int
    """Weight of the gravest verdict."""

    @property
    def fill_imbalance(self) -> float | None:
        """Largest over mean: 1 is even."""
        return self.fullest / self.used if self.used and self.fullest else None

    @property
    def load_imbalance(self) -> float | None:
        return self.of_busiest * self.known / self.moved if self.moved and self.of_busiest else None


class History:
    """Written from one thread, read from others."""

    def __init__(self, file: Path) -> None:
        """Raises StoreError where there can be no file."""
        self._lock = threading.RLock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._rows = _opened(file)
            except sqlite3.OperationalError:
                raise  # the disk is full, or another one has it: what it holds is good
            except UNREADABLE as error:
                aside = file.with_name(f"{file.name}.unreadable")
                log.error("%s: %s: renamed to %s; starting a new one", file, error, aside.name)
                file.replace(aside)
                for beside in ("-wal", "-shm", "-journal"):
                    file.with_name(file.name + beside).unlink(missing_ok=True)
                self._rows = _opened(file)
        except (OSError, *UNREADABLE) as error:
            raise StoreError(str(file), "a file that can be written", str(error)) from None

    def close(self) -> None:
        self._rows.close()

    def add(self, at_s: float, targets: Iterable[Target]) -> None:
        """How they are now, once a minute. Raises StoreError."""
        rows = [(t.fs_name, t.index, *_figures(t), t.verdict.weight) for t in targets]
        added = [(span_s, int(at_s) // span_s * span_s, *row) for span_s in SPANS_S for row in rows]
        # The most that goes at a time is bounded: a clock that was ahead takes little of the past with it.
        limit = 2 * len(rows) + 100
        try:
            with self._lock, self._rows:
                self._rows.executemany(_ADD, added)
                for span_s, kept_s in SPANS_S.items():
                    self._rows.execute(_OLD, (span_s, at_s - kept_s, limit))
                    self._rows.execute("delete from osts where span_s = ? and at_s > ?", (span_s, at_s))
        except UNREADABLE as error:
            raise StoreError("history", "a file that can be written", str(error)) from None

    def moments(
        self, fs_name: str, osts: Sequence[int] | None, span_s: int, since_s: float, now_s: float
    ) -> list[Moment]:
        """The oldest first. `osts`: None: all of the file system. Raises StoreError."""
        begin = int(since_s) // span_s * span_s
        these = "" if osts is None else f"and ost in ({','.join('?' * len(osts))})"
        # By the key: a scan of all OSTs' rows would take seconds.
        question = f"""
        with recursive times(t) as (values(?) union all select t + ? from times where t + ? <= ?)
        select at_s, avg(used_permille) / 1e3, max(used_permille) / 1e3, sum(moved_bytes_per_s),
        max(moved_bytes_per_s), count(moved_bytes_per_s), avg(latency_us) / 1e6, max(gravest)
        from times cross join osts on span_s = ? and at_s = t and fs_name = ? {these}
        group by at_s order by at_s
        """
        values = (begin, span_s, span_s, int(now_s), span_s, fs_name, *(osts or ()))
        try:
            with self._lock:
                return [Moment(*row) for row in self._rows.execute(question, values)]
        except UNREADABLE as error:
            raise StoreError("history", "a file that can be read", str(error)) from None


def _figures(t: Target) -> tuple[int | None, int | None, int | None]:
    """Permille used, bytes per second, microseconds; of what is silent nothing is known."""
    if t.stale:
        return None, None, None
    return _whole(t.fill * 1e3), _whole(t.moving_bytes_per_s), _whole(t.latency_s and t.latency_s * 1e6)


def _whole(value: float | None) -> int | None:
    """Bounded: absurd figures are no reason for a page without history."""
    return None if value is None or math.isnan(value) else int(min(max(value, -1e15), 1e15))


def _opened(file: Path) -> sqlite3.Connection:
    rows = sqlite3.connect(file, timeout=1.0, check_same_thread=False)
    try:
        version = rows.execute("pragma user_version").fetchone()[0]
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"expected version {VERSION}, found {version}")
        # A power failure costs the last minutes at most.
        rows.execute("pragma synchronous = normal")
        rows.execute(SCHEMA)
        if version != VERSION:
            rows.execute(f"pragma user_version = {VERSION}")
        rows.execute("select * from osts limit 1").fetchall()
    except BaseException:
        rows.close()
        raise
    return rows
