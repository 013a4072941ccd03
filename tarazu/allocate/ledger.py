"""The reservation ledger: bytes that were placed but cannot be seen in `kbytesavail` yet, per file system and
OST.

A promise shrinks by the close event's real size and ends two statistics intervals after it, or at the end of
the job step, or when it expires; never by watching `kbytesavail`, which others change too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class _File:
    bytes_by_ost: dict[int, int]
    release_at_s: float | None = None
    """Set by the close event."""


@dataclass(slots=True)
class _Promise:
    fs_name: str
    expires_at_s: float
    files: dict[int, _File] = field(default_factory=dict)
    """By index in the request; a released file is gone from here. An entry without files stays until it
    expires, so that a request which is sent again after its end is not entered again.
    """


class Ledger:
    """Promises by allocation id. All times are on the caller's clock, in seconds."""

    def __init__(self) -> None:
        self._promises: dict[str, _Promise] = {}
        self._totals: dict[str, dict[int, int]] = {}

    def __len__(self) -> int:
        """Number of allocations with a promise left."""
        return sum(1 for entry in self._promises.values() if entry.files)

    def __contains__(self, id: str) -> bool:
        """True from the promise to its expiry, also after its end."""
        return id in self._promises

    def promise(self, id: str, fs_name: str, expires_at_s: float, files: Sequence[Mapping[int, int]]) -> None:
        """Enter an allocation: bytes by OST index for each file. The same id again changes nothing."""
        if id in self._promises:
            return
        entry = self._promises[id] = _Promise(fs_name, expires_at_s)
        for index, by_ost in enumerate(files):
            kept = {ost: size for ost, size in by_ost.items() if size > 0}
            entry.files[index] = _File(kept)
            self._add(fs_name, kept, 1)

    def closed(self, id: str, file_index: int, size_bytes: int, now: float, release_at_s: float) -> None:
        """A file was closed at `size_bytes`: its promise shrinks to that, in proportion, until
        `release_at_s`.

        A file larger than promised keeps its promise: what it holds beyond is in `kbytesavail` soon. A second
        close changes the size again; the release is that of the last one. Unknown ids and files are ignored:
        the message may come after the end of the step.
        """
        entry = self._promises.get(id)
        file = entry.files.get(file_index) if entry else None
        if entry is None or file is None:
            return
        promised = sum(file.bytes_by_ost.values())
        if 0 <= size_bytes < promised:
            smaller = {ost: size * size_bytes // promised for ost, size in file.bytes_by_ost.items()}
            self._add(entry.fs_name, file.bytes_by_ost, -1)
            self._add(entry.fs_name, smaller, 1)
            file.bytes_by_ost = smaller
        file.release_at_s = release_at_s
        if release_at_s <= now:
            self._release(entry, file_index)

    def ended(self, id: str) -> None:
        """The job step is over: nothing of this allocation is promised any more. Unknown ids are ignored."""
        entry = self._promises.get(id)
        if entry is not None:
            for index in list(entry.files):
                self._release(entry, index)

    def expire(self, now: float) -> int:
        """Drop what expired or was due for release; returns how many allocations with promises expired."""
        expired = [id for id, entry in self._promises.items() if entry.expires_at_s <= now]
        left = sum(1 for id in expired if self._promises[id].files)
        for id in expired:
            self.ended(id)
            del self._promises[id]
        for entry in self._promises.values():
            due = [i for i, f in entry.files.items() if f.release_at_s is not None and f.release_at_s <= now]
            for index in due:
                self._release(entry, index)
        return left

    def outstanding(self, id: str) -> int:
        """Bytes that this allocation still holds."""
        entry = self._promises.get(id)
        return sum(sum(f.bytes_by_ost.values()) for f in entry.files.values()) if entry else 0

    def promised(self, fs_name: str) -> dict[int, int]:
        """Promised bytes by OST index; OSTs without a promise are left out."""
        return dict(self._totals.get(fs_name, {}))

    def _release(self, entry: _Promise, index: int) -> None:
        self._add(entry.fs_name, entry.files.pop(index).bytes_by_ost, -1)

    def _add(self, fs_name: str, by_ost: Mapping[int, int], sign: int) -> None:
        totals = self._totals.setdefault(fs_name, {})
        for ost, size in by_ost.items():
            left = totals.get(ost, 0) + sign * size
            if left:
                totals[ost] = left
            else:
                totals.pop(ost, None)
        if not totals:
            del self._totals[fs_name]
