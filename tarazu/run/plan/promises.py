"""What mdsd has promised for one job step: which of its placed files were created and closed, and what to tell of it.

An mdsd that has started since does not know it, and asks: so it is kept here, which files lie on which OSTs, with how
many bytes. Small: some 20 bytes a file and 10 a stripe, so that a step of a million files can be followed to its end.
"""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec

from tarazu.config import Settings
from tarazu.layout.objects import promised_bytes
from tarazu.model import ANY_RANK
from tarazu.stripes import Stripes, to_bytes
from tarazu.wire import local
from tarazu.wire.bounds import MAX_TOLD_FILES, MAX_TOLD_STRIPES
from tarazu.wire.messages import PromiseTold, silent_after_s

UNSEEN, OPEN = -2, -1
"""Instead of a size: not created yet; created, and not reported as closed."""


class StepPromise:
    """The files of one allocation."""

    def __init__(self, plan: local.PlanReply, expires_at: float, *, guess: bool) -> None:
        """`expires_at`: on the monotonic clock; `guess`: of a run predicted from itself."""
        files = sorted(plan.files, key=lambda f: f.row_id)
        self.request_id = plan.request_id
        self.expires_at = expires_at
        self.guess = guess
        self._rows = array("Q", (f.row_id for f in files))
        self._indexes = array("l", (f.request_index for f in files))
        self._shared = bytearray(f.name.rank == ANY_RANK for f in files)
        self._sizes = array("q", [UNSEEN]) * len(files)
        self._osts, self._promised, self._starts = array("H"), array("Q"), array("I", (0,))
        """The stripes of file i are `starts[i]` to `starts[i + 1]`."""
        sizes: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        for file in files:
            kind = (file.layout, file.size_bytes)
            if kind not in sizes:
                sizes[kind] = promised_bytes(plan.layouts[file.layout], file.size_bytes)
            for of_component, osts in zip(sizes[kind], file.osts):
                self._osts.extend(osts[: len(of_component)])
                self._promised.extend(of_component[: len(osts)])
            self._starts.append(len(self._osts))

    @property
    def over(self) -> bool:
        """True when every file was reported as closed."""
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

    def superseded(self, rows: Container[int] | None = None) -> Iterable[tuple[int, int]]:
        """Something else stands for the files that were not created, or for those of these rows: nothing is promised
        for them any more.
        """
        released = []
        for place, size in enumerate(self._sizes):
            if size == UNSEEN and self._indexes[place] >= 0 and (rows is None or self._rows[place] in rows):
                self._sizes[place] = 0
                released.append((self._indexes[place], 0))
        return released

    def stripes(self) -> Stripes | None:
        """OSTs, bytes and starts of the files of the request, as in PromiseTold; of one that is closed, or was never
        promised, nothing. None where they are too many for one message.
        """
        osts, sizes, starts = array("H"), array("Q"), array("I", (0,))
        places = {
            index: place for place, index in enumerate(self._indexes) if self._sizes[place] < 0 <= index
        }
        last = max(places, default=-1)
        if last >= MAX_TOLD_FILES or len(self._osts) > MAX_TOLD_STRIPES:
            return None
        for index in range(last + 1):
            if (place := places.get(index)) is not None:
                first, end = self._starts[place], self._starts[place + 1]
                osts.extend(self._osts[first:end])
                sizes.extend(self._promised[first:end])
            starts.append(len(osts))
        return Stripes(osts, sizes, starts)

    def _place(self, row_id: int) -> int | None:
        place = bisect_left(self._rows, row_id)
        return place if place < len(self._rows) and self._rows[place] == row_id else None


class StepPromises:
    """Of all plans of one job step on one file system. Its planning thread and the one that looks share them."""

    def __init__(self, settings: Settings, fs_name: str) -> None:
        self.fs_name = fs_name
        self.standing: list[StepPromise] = []
        """Of the allocations that still stand."""
        self._settings = settings
        self._closes: dict[str, dict[int, int]] = {}
        """To be reported to clientd: request id → index → size in bytes."""
        self._lock = threading.Lock()

    def add(
        self,
        plan: local.PlanReply,
        *,
        guess: bool,
        replaced: Container[int] = (),
        there: Container[int] = (),
    ) -> None:
        """Note what was promised; of an older guess nothing is promised any more but what it has placed.

        `replaced`: nor for these rows of older plans; `there`: rows of this one whose files were created already.
        """
        promise = StepPromise(plan, time.monotonic() + 2 * self._settings.predict.horizon_s, guess=guess)
        with self._lock:
            for older in self.standing if guess or replaced else ():
                self._close(older.request_id, older.superseded(None if guess and older.guess else replaced))
            self._close(promise.request_id, promise.superseded(there) if there else ())
            self.standing.append(promise)

    def give_up(self, rows: Container[int]) -> None:
        """Of the files of these rows those that were not created will not be placed."""
        with self._lock:
            for promise in self.standing:
                self._close(promise.request_id, promise.superseded(rows))

    def request_ids(self) -> tuple[str, ...]:
        """Of the allocations that still stand, the newest."""
        with self._lock:
            return tuple(p.request_id for p in self.standing)[-local.MAX_IDS :]

    def unseen(self) -> set[int]:
        """Row ids of all files that were not created yet."""
        with self._lock:
            return {row for promise in self.standing for row in promise.unseen()}

    def note(self, files: Mapping[int, int | None], *, everywhere: bool) -> None:
        """Placed files that were created: row id → size when closed, None while open.

        `everywhere`: all nodes of the step were looked at, so that a shared file is known to be closed.
        """
        with self._lock:
            for promise in self.standing:
                news = []
                for row_id, size_bytes in files.items():
                    promise.created(row_id)
                    if size_bytes is not None:
                        told = promise.closed(row_id, size_bytes, shared_too=everywhere)
                        news += [told] if told else []
                self._close(promise.request_id, news)

    def _close(self, request_id: str, files: Iterable[tuple[int, int]]) -> None:
        if new := dict(files):
            self._closes.setdefault(request_id, {}).update(new)

    @property
    def news(self) -> bool:
        """True when closed files are to be reported to clientd."""
        return bool(self._closes)

    def progress(self) -> local.StepProgress | None:
        """The next report to clientd; None when nothing is promised. Forgets what it returns."""
        now = time.monotonic()
        closed: dict[str, tuple[tuple[int, int], ...]] = {}
        with self._lock:
            room = local.MAX_CLOSED
            for request_id in list(self._closes)[: local.MAX_IDS]:
                files = self._closes[request_id]
                part = tuple(list(files.items())[:room])
                if not part:
                    break
                closed[request_id] = part
                room -= len(part)
                for index, _ in part:
                    del files[index]
                if not files:
                    del self._closes[request_id]
            self.standing = [p for p in self.standing if p.expires_at > now and not p.over]
            standing = tuple(p.request_id for p in self.standing[-local.MAX_IDS :])
        if not standing and not closed:
            return None
        return local.StepProgress(standing, self._settings.run.alive_s, closed)

    def told(self, request_id: str) -> PromiseTold:
        """What is still promised with this allocation; nothing where that is over, or too much for one message."""
        with self._lock:
            promise = next((p for p in self.standing if p.request_id == request_id), None)
            stripes = promise.stripes() if promise else None
        left_s = max(0.0, promise.expires_at - time.monotonic()) if promise else 0.0
        told = PromiseTold(
            request_id, "", self.fs_name, 0, left_s, silent_after_s(self._settings.run.alive_s)
        )
        if stripes is None:
            return told
        osts, sizes, starts = to_bytes(stripes)
        return msgspec.structs.replace(told, osts=osts, sizes=sizes, starts=starts)

    def untold(self, progress: local.StepProgress) -> None:
        """It did not reach clientd: it is reported again, unless there is something newer."""
        with self._lock:
            for request_id, files in progress.closed.items():
                self._closes[request_id] = {**dict(files), **self._closes.get(request_id, {})}
