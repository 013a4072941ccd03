"""What is promised for the placed files of one job step, as its leader knows it: which were created and closed.

Small: a few bytes a file, so that a step of a million files can be followed to its end.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from tarazu.model import ANY_RANK
from tarazu.wire import local

UNSEEN, OPEN = -2, -1
"""Instead of a size: not created yet; created, and not told as closed."""


class Promise:
    """The files of one allocation."""

    def __init__(self, plan: local.PlanReply, expires_at: float, *, guess: bool) -> None:
        """`expires_at`: on the monotonic clock; `guess`: of a run predicted from itself."""
        files = sorted(plan.files, key=lambda f: f.row_id)
        self.request_id = plan.request_id
        self.expires_at = expires_at
        self.guess = guess
        self._rows = array("Q", (f.row_id for f in files))
        self._indexes = array("l", (f.request_index for f in files))
        self._shared = bytearray(f.rank == ANY_RANK for f in files)
        self._sizes = array("q", bytes(8 * len(files)))
        for place in range(len(files)):
            self._sizes[place] = UNSEEN

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def over(self) -> bool:
        """True when every file was told as closed."""
        return all(size >= 0 for size in self._sizes)

    def unseen(self) -> Iterator[int]:
        """Row ids of files that were not created yet."""
        return (row for row, size in zip(self._rows, self._sizes) if size == UNSEEN)

    def created(self, row_id: int) -> None:
        place = self._place(row_id)
        if place is not None and self._sizes[place] == UNSEEN:
            self._sizes[place] = OPEN

    def closed(self, row_id: int, size_bytes: int, *, shared_too: bool) -> tuple[int, int] | None:
        """(index in the request, size) when that is news; `shared_too`: all nodes were looked at."""
        place = self._place(row_id)
        if place is None or self._indexes[place] < 0 or self._sizes[place] == size_bytes:
            return None
        if self._shared[place] and not shared_too:
            return None
        self._sizes[place] = size_bytes
        return self._indexes[place], size_bytes

    def superseded(self) -> Iterable[tuple[int, int]]:
        """Another guess stands for the files that were not created: nothing is promised for these any more."""
        released = []
        for place, size in enumerate(self._sizes):
            if size == UNSEEN and self._indexes[place] >= 0:
                self._sizes[place] = 0
                released.append((self._indexes[place], 0))
        return released

    def _place(self, row_id: int) -> int | None:
        place = bisect_left(self._rows, row_id)
        return place if place < len(self._rows) and self._rows[place] == row_id else None
