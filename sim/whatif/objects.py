"""Files as the objects that they are on OSTs, in arrays; which object lies where is what placements differ in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tarazu.layout.objects import object_bytes
from tarazu.model import CreateRequest, Layout

Array = np.ndarray[Any, Any]


class Objects(NamedTuple):
    """Objects that hold bytes; arrays of one length."""

    file: Array
    """Which file."""
    ost: Array
    """OST index."""
    stored: Array
    """Bytes that it takes."""
    written: Array
    """Bytes that were sent to it: more where something was written again."""

    def per_ost(self, osts: Array) -> Array:
        """Stored bytes on each of `osts` (sorted OST indices)."""
        return np.bincount(np.searchsorted(osts, self.ost), self.stored, len(osts))


def objects(
    requests: Sequence[CreateRequest],
    places: Iterable[Sequence[Sequence[int]]],
    written: Sequence[int] | None = None,
    first: int = 0,
) -> Objects:
    """places: of each request, its OSTs by component; written: bytes sent to each (default: its size).

    Files are numbered from `first`. Every byte is in an object: a component beyond those with OSTs holds none.
    """
    files: list[int] = []
    osts: list[int] = []
    sizes: list[int] = []
    known: dict[tuple[Layout, int], tuple[tuple[int, ...], ...]] = {}
    for number, (request, parts) in enumerate(zip(requests, places, strict=True)):
        key = (request.layout, request.size_bytes)
        weights = known.get(key)
        if weights is None:
            weights = known[key] = object_bytes(*key)
        for of_component, chosen in zip(weights, parts, strict=False):
            for size, ost in zip(of_component, chosen, strict=False):
                if size:
                    files.append(number)
                    osts.append(ost)
                    sizes.append(size)
    file, stored = np.array(files, np.int64), np.array(sizes, float)
    sent = stored
    if written is not None:
        share = np.array([w / max(1, r.size_bytes) for w, r in zip(written, requests, strict=True)])
        sent = stored * share[file] if len(file) else stored
    return Objects(file + first, np.array(osts, np.int64), stored, sent)


def joined(parts: Sequence[Objects]) -> Objects:
    return Objects(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
