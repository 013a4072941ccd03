"""Imbalance over time: a row a minute for two days, a row an hour for 400 days, of each file system.

One SQLite file of bounded size; what is older goes. One that cannot be read is put aside: losing it loses a picture.
The tables of `past` are in it too.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from pathlib import Path

import msgspec

from tarazu.errors import StoreError
from tarazu.parts.page import past
from tarazu.store.sqlite import UNREADABLE

log = logging.getLogger("tarazu.page")

KEPT_S = {60: 2 * 86400, 3600: 400 * 86400}
"""Seconds that a row stands for → how long it is kept."""
FILE_SYSTEMS = 64
"""Of more there is no picture."""
FORGOTTEN = 2
"""Rows that are too old, of each file system: so many may go for one that comes."""
VERSION = 1


class Moment(msgspec.Struct, frozen=True):
    """One file system at one time; of an hour the means of its minutes, and the most that was amiss."""

    at_s: int
    """Unix time of its begin."""
    fill: float
    """Share of the space that is used, of all its OSTs together."""
    fullest: float
    fill_imbalance: float
    """Largest over mean."""
    load_imbalance: float | None
    """The same of what its OSTs moved; None: nothing was moved."""
    moved_bytes_per_s: float
    promised_bytes: int
    amiss: int
    """OSTs."""


_COLUMNS = ", ".join(Moment.__struct_fields__)
_SCHEMA = f"""
create table if not exists imbalance (
  span_s integer, fs_name text, samples integer, {_COLUMNS}, primary key (span_s, fs_name, at_s)) without rowid
"""


def _mean(column: str) -> str:
    return f"{column} = ({column} * samples + excluded.{column}) / (samples + 1)"


_ADD = f"""
insert into imbalance (span_s, fs_name, samples, {_COLUMNS}) values (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do update set
  {", ".join(map(_mean, ("fill", "fullest", "fill_imbalance", "moved_bytes_per_s", "promised_bytes")))},
  load_imbalance = case
    when load_imbalance is null or excluded.load_imbalance is null
      then coalesce(load_imbalance, excluded.load_imbalance)
    else (load_imbalance * samples + excluded.load_imbalance) / (samples + 1) end,
  amiss = max(amiss, excluded.amiss),
  samples = samples + 1
"""


class Ring:
    """Written from one thread, read from others."""

    def __init__(self, file: Path) -> None:
        """Raises StoreError where there can be no file."""
        self._lock = threading.RLock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._rows = self._open(file)
            except sqlite3.OperationalError:
                raise  # the disk is full, or another one has it: what it holds is good
            except UNREADABLE as error:
                aside = file.with_name(f"{file.name}.unreadable")
                log.error("%s: %s: renamed to %s; starting a new one", file, error, aside.name)
                file.replace(aside)
                for beside in ("-wal", "-shm", "-journal"):
                    file.with_name(file.name + beside).unlink(missing_ok=True)
                self._rows = self._open(file)
        except (OSError, *UNREADABLE) as error:
            raise StoreError(str(file), "a file that can be written", str(error)) from None
        self.past = past.Past(self._rows, self._lock)

    @staticmethod
    def _open(file: Path) -> sqlite3.Connection:
        rows = sqlite3.connect(file, timeout=1.0, isolation_level=None, check_same_thread=False)
        try:
            version = rows.execute("pragma user_version").fetchone()[0]
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"expected version {VERSION}, found {version}")
            # A power failure costs the last minutes at most.
            rows.execute("pragma synchronous = normal")
            for schema in (_SCHEMA, *past.SCHEMA):
                rows.execute(schema)
            if version != VERSION:
                rows.execute(f"pragma user_version = {VERSION}")
            for table in ("imbalance", "osts", "events"):
                rows.execute(f"select * from {table} limit 1").fetchall()
        except BaseException:
            rows.close()
            raise
        return rows

    def add(self, of: dict[str, Moment]) -> None:
        """What is so now, by file system; the first of a minute counts. Raises StoreError."""
        try:
            with self._lock, contextlib.ExitStack() as stack:
                self._rows.execute("begin immediate")
                stack.callback(lambda: self._rows.in_transaction and self._rows.execute("rollback"))
                known = {name for (name,) in self._rows.execute("select distinct fs_name from imbalance")}
                for fs_name, moment in of.items():
                    if fs_name in known or len(known) < FILE_SYSTEMS:
                        known.add(fs_name)
                        self._add(fs_name, moment)
                self._forget(max((moment.at_s for moment in of.values()), default=0), FORGOTTEN * len(known))
                self._rows.execute("commit")
        except UNREADABLE as error:
            raise StoreError("imbalance over time", "a file that can be written", str(error)) from None

    def _add(self, fs_name: str, moment: Moment) -> None:
        minute = moment.at_s // 60 * 60
        seen = "select 1 from imbalance where span_s = 60 and fs_name = ? and at_s = ?"
        if self._rows.execute(seen, (fs_name, minute)).fetchone():
            return
        for span_s in KEPT_S:
            row = msgspec.structs.replace(moment, at_s=moment.at_s // span_s * span_s)
            self._rows.execute(_ADD, (span_s, fs_name, *msgspec.structs.astuple(row)))

    def _forget(self, now_s: int, most: int) -> None:
        """What a clock that was ahead has put into the future; of what is too old a few rows each time, so that such a
        clock takes little of the past with it.
        """
        for span_s, kept_s in KEPT_S.items():
            self._rows.execute("delete from imbalance where span_s = ? and at_s > ?", (span_s, now_s))
            self._rows.execute(
                "delete from imbalance where (span_s, fs_name, at_s) in (select span_s, fs_name, at_s from imbalance "
                "where span_s = ? and at_s < ? order by at_s limit ?)",
                (span_s, now_s - kept_s, most),
            )

    def read(self, fs_name: str, span_s: int, since_s: float) -> list[Moment]:
        """The oldest first. Raises StoreError."""
        question = (
            f"select {_COLUMNS} from imbalance where span_s = ? and fs_name = ? and at_s >= ? order by at_s"
        )
        try:
            with self._lock:
                return [Moment(*row) for row in self._rows.execute(question, (span_s, fs_name, since_s))]
        except UNREADABLE as error:
            raise StoreError("imbalance over time", "a file that can be read", str(error)) from None

    def names(self) -> list[str]:
        """File systems of which something is noted, by name. Raises StoreError."""
        try:
            with self._lock:
                question = "select distinct fs_name from imbalance where span_s = 3600 order by fs_name"
                return [name for (name,) in self._rows.execute(question)]
        except UNREADABLE as error:
            raise StoreError("imbalance over time", "a file that can be read", str(error)) from None

    def close(self) -> None:
        self._rows.close()
