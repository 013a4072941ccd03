"""Results that somebody put into a directory, a file each: of `tarazu whatif --json`, `report --json`, and
`tarazu change list --json` or `tarazu change log --json` of other nodes.

Only regular files named `NAME.json` of at most `BYTES`, the newest `FILES` of them. Whatever else they hold, only what
is named here is looked at.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

import msgspec

from tarazu.changes.trail import Event
from tarazu.daemons.changes.here import Listed
from tarazu.malformed import MALFORMED, described

BYTES = 16 << 20
FILES = 50
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.json")


class SavedApplication(msgspec.Struct, frozen=True):
    """Of a report: all runs of one application on one file system."""

    application: str
    fs_name: str
    runs: int
    gaining: int
    bytes: int
    placed_bytes: int
    lustre_cost: float | None = None
    tarazu_cost: float | None = None
    bound_cost: float | None = None
    lustre_time: float | None = None
    tarazu_time: float | None = None
    bound_time: float | None = None


class SavedReason(msgspec.Struct, frozen=True):
    why: str
    runs: int
    bytes: int


class SavedSpan(msgspec.Struct, frozen=True):
    since_s: float
    until_s: float


class SavedReport(msgspec.Struct, frozen=True):
    wanted: SavedSpan
    applications: tuple[SavedApplication, ...]
    reasons: tuple[SavedReason, ...]


class SavedSpread(msgspec.Struct, frozen=True):
    median: float
    lowest: float
    highest: float


class SavedPlacement(msgspec.Struct, frozen=True):
    policy: str
    ost_cost: SavedSpread | None = None
    time_s: SavedSpread | None = None
    why_not: str = ""


class SavedComparison(msgspec.Struct, frozen=True):
    placed: tuple[SavedPlacement, ...]
    ost_cost_bound: float | None = None
    time_bound_s: float | None = None


class SavedJob(msgspec.Struct, frozen=True):
    """Of a whatif: one job on one file system."""

    log: str
    application: str
    ranks: int
    files: int
    written_bytes: int
    osts: int
    actual: SavedPlacement | None = None
    compared: SavedComparison | None = None

    @property
    def gain_s(self) -> float | None:
        """As `tarazu whatif` has it; None where times are not known."""
        ours = [p.time_s for p in self.compared.placed if p.policy == "tarazu"] if self.compared else []
        if self.actual is None or self.actual.time_s is None or not ours or ours[0] is None:
            return None
        return max(0.0, self.actual.time_s.median - ours[0].median)


class SavedLog(msgspec.Struct, frozen=True):
    log: str
    file_systems: tuple[SavedJob, ...]


class SavedChanges(msgspec.Struct, frozen=True):
    """Of a node whose name the file has."""

    changes: tuple[Listed, ...]


class SavedResult(msgspec.Struct, frozen=True):
    name: str
    """Without `.json`."""
    at_s: float
    """When it was written, Unix time."""
    bytes: int
    report: SavedReport | None = None
    whatif: tuple[SavedLog, ...] = ()
    changes: SavedChanges | None = None
    trail: tuple[Event, ...] | None = None
    """What happened to changes of a node, the oldest first."""
    problem: str = ""
    """Why it cannot be shown."""


class Results:
    """Read again when they have changed. Used under its owner's lock."""

    def __init__(self, directory: str) -> None:
        """Empty: there are none."""
        self.directory = directory
        self._known: dict[str, tuple[tuple[int, int, int], SavedResult]] = {}

    def all(self) -> list[SavedResult]:
        """The newest first; a directory that is not there holds none."""
        try:
            names = [e.name for e in os.scandir(self.directory)] if self.directory else []
        except OSError:
            names = []
        entries = [
            (name, st) for name in names if NAME.fullmatch(name) and (st := self._stat(name)) is not None
        ]
        entries.sort(key=lambda of: (-of[1].st_mtime_ns, of[0]))
        known = {name: self._read(name, st) for name, st in entries[:FILES]}
        self._known = known
        return [result for _, result in known.values()]

    def raw(self, name: str) -> bytes | None:
        """The file itself; None where there is none that is shown."""
        return self._bytes(f"{name}.json") if any(of.name == name for of in self.all()) else None

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            status = (Path(self.directory) / name).lstat()
        except OSError:
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _read(self, name: str, st: os.stat_result) -> tuple[tuple[int, int, int], SavedResult]:
        mark = st.st_mtime_ns, st.st_size, st.st_ino
        known = self._known.get(name)
        if known and known[0] == mark:
            return known
        short = name.removesuffix(".json")
        result = SavedResult(short, st.st_mtime, st.st_size)
        if st.st_size > BYTES:
            return mark, msgspec.structs.replace(result, problem=f"larger than {BYTES >> 20} MiB")
        data = self._bytes(name)
        if data is None:
            return mark, msgspec.structs.replace(result, problem="cannot be read")
        try:
            return mark, msgspec.structs.replace(result, **_content(data))
        except MALFORMED as error:
            commands = "`tarazu history report`, `tarazu whatif`, `tarazu change list` or `change log`"
            problem = f"expected what {commands} prints with --json: {error}"
            return mark, msgspec.structs.replace(result, problem=problem[:300])

    def _bytes(self, name: str) -> bytes | None:
        try:
            descriptor = os.open(
                Path(self.directory) / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            )
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(BYTES + 1)
        except OSError:
            return None
        return data if len(data) <= BYTES else None


def is_trail(data: bytes) -> bool:
    """A line of JSON for each event; of a node on which nothing has happened none."""
    first, _, _ = data.partition(b"\n")
    try:
        return not data.strip() or "event" in msgspec.json.decode(first, type=dict[str, msgspec.Raw])
    except MALFORMED:
        return False


def _content(data: bytes) -> dict[str, Any]:
    if data.lstrip()[:1] == b"[":
        return {"whatif": msgspec.json.decode(data, type=tuple[SavedLog, ...])}
    if is_trail(data):
        return {"trail": tuple(msgspec.json.Decoder(Event).decode_lines(data))}
    if "changes" in msgspec.json.decode(data, type=dict[str, msgspec.Raw]):
        return {"changes": msgspec.json.decode(data, type=SavedChanges)}
    return {"report": msgspec.json.decode(data, type=SavedReport)}


described(SavedLog, SavedChanges, SavedReport, SavedResult)
