"""Files as the objects that they are on OSTs, in arrays; which object lies where is what placements differ in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tarazu.allocate.problem import Array, many_object_bytes
from tarazu.model import CreateRequest, Layout

__all__ = ["Array", "Objects", "joined", "objects"]


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
    begin: Array
    end: Array
    """Between which bytes of its file it is written; (0, 1), at once, where several processes write the file."""

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
    alike: dict[Layout, list[int]] = {}
    for number, request in enumerate(requests):
        alike.setdefault(request.layout, []).append(number)
    laid = list(places)
    parts: list[tuple[Array, ...]] = [(np.zeros(0, np.int64),) * 5]
    at_once = np.array([r.writers > 1 for r in requests], bool)
    for layout, members in alike.items():
        sizes = np.array([requests[i].size_bytes for i in members], np.int64)
        numbers = np.array(members, np.int64)
        for position, component in enumerate(layout):
            if component.stripe_count < 1 or component.pattern == "mdt":
                continue
            osts = np.full((len(members), component.stripe_count), -1, np.int64)
            for at, i in enumerate(members):
                chosen = laid[i][position] if position < len(laid[i]) else ()
                osts[at, : len(chosen)] = chosen
            weights = many_object_bytes(component, sizes)
            row, column = np.nonzero((weights > 0) & (osts >= 0))
            ends = np.minimum(min(component.end_bytes, 2**62), sizes[row]).clip(component.start_bytes + 1)
            several = at_once[numbers[row]]
            parts.append(
                (
                    numbers[row],
                    osts[row, column],
                    weights[row, column],
                    np.where(several, 0, component.start_bytes),
                    np.where(several, 1, ends),
                )
            )
    file, ost, stored, begin, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(file, kind="stable")
    file, ost, stored = file[order], ost[order], stored[order].astype(float)
    begin, end = begin[order], end[order]
    sent = stored
    if written is not None:
        share = np.array([w / max(1, r.size_bytes) for w, r in zip(written, requests, strict=True)])
        sent = stored * share[file] if len(file) else stored
    return Objects(file + first, ost, stored, sent, begin, end)


def joined(parts: Sequence[Objects]) -> Objects:
    return Objects(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
