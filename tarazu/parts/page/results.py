"""Results that somebody put into a directory, a file each: of `tarazu history report --json`, or of `tarazu change
list --json` on another node.

Only regular files named `NAME.json` of at most `BYTES`, the newest `FILES` of them.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import msgspec

from tarazu.malformed import MALFORMED, described
from tarazu.parts.changes.here import Listed

BYTES = 16 << 20
FILES = 50
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.json")


class Result(msgspec.Struct, frozen=True):
    name: str
    """Without `.json`."""
    at_s: float
    """When it was written, Unix time."""
    changes: tuple[Listed, ...] = ()
    """Of the node whose name the file has."""
    problem: str = ""
    """Why it cannot be shown."""


class Results:
    """Read again when they have changed. Used under its owner's lock."""

    def __init__(self, directory: str) -> None:
        """Empty: there are none."""
        self.directory = directory
        self._known: dict[str, tuple[tuple[int, int, int], Result]] = {}

    def all(self) -> list[Result]:
        """The newest first; a directory that is not there holds none."""
        try:
            names = os.listdir(self.directory) if self.directory else []
        except OSError:
            names = []
        entries = [(name, st) for name in names if NAME.fullmatch(name) and (st := self._stat(name))]
        entries.sort(key=lambda of: (-of[1].st_mtime_ns, of[0]))
        self._known = {name: self._read(name, st) for name, st in entries[:FILES]}
        return [result for _, result in self._known.values()]

    def raw(self, name: str) -> bytes | None:
        """The file itself; None where there is none that is shown."""
        return self._bytes(f"{name}.json") if any(of.name == name for of in self.all()) else None

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            status = (Path(self.directory) / name).lstat()
        except OSError:
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _read(self, name: str, st: os.stat_result) -> tuple[tuple[int, int, int], Result]:
        mark = st.st_mtime_ns, st.st_size, st.st_ino
        known = self._known.get(name)
        if known and known[0] == mark:
            return known
        result = Result(name.removesuffix(".json"), st.st_mtime)
        data = self._bytes(name)
        if data is None:
            problem = f"cannot be read, or is larger than {BYTES >> 20} MiB"
            return mark, msgspec.structs.replace(result, problem=problem)
        try:
            saved = msgspec.json.decode(data, type=dict[str, msgspec.Raw] | list[msgspec.Raw])
            listed = saved.get("changes", b"[]") if isinstance(saved, dict) else b"[]"
            changes = msgspec.json.decode(listed, type=tuple[Listed, ...])
            return mark, msgspec.structs.replace(result, changes=changes)
        except MALFORMED as error:
            problem = f"expected what a command prints with --json: {error}"[:300]
            return mark, msgspec.structs.replace(result, problem=problem)

    def _bytes(self, name: str) -> bytes | None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            with os.fdopen(os.open(Path(self.directory) / name, flags), "rb") as file:
                data = file.read(BYTES + 1)
        except OSError:
            return None
        return data if len(data) <= BYTES else None


described(Listed)
