"""Layouts as Darshan's LUSTRE module has them → `tarazu.model.Layout` and the OSTs of each component."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tarazu.lustre import EOF, LLAPI_PATTERNS, LOV_MIN_STRIPE_SIZE, MAX_OSTS, MAX_STRIPE_SIZE_BYTES
from tarazu.model import Component, Layout
from tarazu.trace.darshan.log import LoggedLayout

SIZE, COUNT, PATTERN, FLAGS, START, END, MIRROR = range(7)
"""Darshan's order of the LUSTRE_COMP_ counters. Records of before 3.5 have -1 for what they do not know."""
LCME_FL_STALE = 0x1

_PATTERNS = {number: name for name, number in LLAPI_PATTERNS.items()} | {-1: "raid0"}


class Components(Protocol):
    """`library.LoggedComponents`."""

    @property
    def record(self) -> int: ...
    @property
    def counters(self) -> NDArray[np.int64]: ...
    @property
    def pools(self) -> tuple[str, ...]: ...
    @property
    def osts(self) -> tuple[int, ...]: ...


class Layouts:
    """Makes layouts of records; equal ones are one object."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[bytes, tuple[str, ...]], tuple[Layout, tuple[int, ...], int] | None] = {}

    def of(self, logged: Components) -> LoggedLayout | None:
        """None for a layout that is not striped as RAID 0."""
        key = (logged.counters.tobytes(), logged.pools)
        if key not in self._layouts:
            self._layouts[key] = _layout(logged)
        made = self._layouts[key]
        if made is None:
            return None
        layout, first, mirrors = made
        osts = []
        for component, at in zip(layout, first, strict=True):
            indices = logged.osts[at : at + component.stripe_count]
            osts.append(indices if all(0 <= o < MAX_OSTS for o in indices) else ())
        return LoggedLayout(layout, tuple(osts), mirrors)


def _layout(logged: Components) -> tuple[Layout, tuple[int, ...], int] | None:
    """The layout, where the OSTs of each of its components begin, and the number of mirrors."""
    rows = logged.counters.tolist()
    starts = np.concatenate([[0], np.cumsum([max(row[COUNT], 0) for row in rows])]).tolist()
    mirrors = {row[MIRROR] for row in rows}
    fresh = {row[MIRROR] for row in rows} - {
        row[MIRROR] for row in rows if row[FLAGS] > 0 and row[FLAGS] & LCME_FL_STALE
    }
    chosen = min(fresh or mirrors)
    parts: list[tuple[Component, int]] = []
    for row, pool, at in zip(rows, logged.pools, starts, strict=False):
        if row[MIRROR] != chosen:
            continue
        pattern = _PATTERNS.get(row[PATTERN])
        end = EOF if row[END] < 0 else row[END]
        if pattern is None or not 0 <= row[START] < end:
            return None
        size = row[SIZE]
        if pattern != "mdt" and not (
            LOV_MIN_STRIPE_SIZE <= size <= MAX_STRIPE_SIZE_BYTES and size % LOV_MIN_STRIPE_SIZE == 0
        ):
            return None
        count = 0 if pattern == "mdt" else row[COUNT]
        if pattern != "mdt" and not 0 < count < MAX_OSTS:
            return None
        parts.append((Component(row[START], end, size, count, pattern, pool), at))
    parts.sort(key=lambda of: of[0].start_bytes)
    components = tuple(component for component, _ in parts)
    plain = len(components) == 1 and components[0].start_bytes == 0 and components[0].end_bytes == EOF
    return Layout(components, composite=not plain), tuple(at for _, at in parts), len(mirrors)


def logged_layouts(records: Iterable[Components]) -> tuple[dict[int, LoggedLayout], frozenset[int]]:
    """Layouts by record id, and the ids of those that are not striped as RAID 0.

    Where several ranks have a record of one file, the layout of which more is known: the others opened it earlier.
    """
    make = Layouts()
    layouts: dict[int, LoggedLayout] = {}
    odd = set()
    for logged in records:
        made = make.of(logged)
        if made is None:
            odd.add(logged.record)
            continue
        known = layouts.get(logged.record)
        if known is None or (made.placed, made.known_bytes) > (known.placed, known.known_bytes):
            layouts[logged.record] = made
    return layouts, frozenset(odd - layouts.keys())
