"""Files as the objects that they are on OSTs, in arrays; which object lies where is what placements differ in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from tarazu.allocate.problem import Array, many_object_bytes
from tarazu.model import CreateRequest, Layout

__all__ = ["Array", "Laid", "Objects", "joined"]


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


class Laid(NamedTuple):
    """Files, and where their objects lie."""

    requests: Sequence[CreateRequest]
    places: Sequence[Sequence[Sequence[int]]]
    """Of each, its OSTs by component."""
    written: Sequence[int] | None = None
    """Bytes sent to each; None: its size."""

    @property
    def sent(self) -> Sequence[int]:
        return [r.size_bytes for r in self.requests] if self.written is None else self.written

    def osts(self, file: int, component: int, stripes: int) -> Array:
        """(stripes,) OST index of each object; −1 where it has none."""
        indices = np.full(stripes, -1, np.int64)
        chosen = self.places[file][component] if component < len(self.places[file]) else ()
        indices[: len(chosen)] = chosen
        return indices

    def objects(self) -> Objects:
        """Every byte is in an object: a component beyond those with OSTs holds none."""
        alike: dict[Layout, list[int]] = {}
        for number, request in enumerate(self.requests):
            alike.setdefault(request.layout, []).append(number)
        parts: list[tuple[Array, ...]] = [(np.zeros(0, np.int64),) * 3]
        for layout, members in alike.items():
            sizes = np.array([self.requests[i].size_bytes for i in members], np.int64)
            numbers = np.array(members, np.int64)
            for position, component in enumerate(layout):
                if component.stripe_count < 1 or component.pattern == "mdt":
                    continue
                osts = np.array([self.osts(i, position, component.stripe_count) for i in members])
                weights = many_object_bytes(component, sizes)
                row, column = np.nonzero((weights > 0) & (osts >= 0))
                parts.append((numbers[row], osts[row, column], weights[row, column]))
        file, ost, stored = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(file, kind="stable")
        file, ost, stored = file[order], ost[order], stored[order].astype(float)
        sent = stored
        if self.written is not None and len(file):
            share = [w / max(1, r.size_bytes) for w, r in zip(self.written, self.requests, strict=True)]
            sent = stored * np.array(share)[file]
        return Objects(file, ost, stored, sent)


def joined(parts: Sequence[Laid]) -> Laid:
    """All files, in this order."""
    files, places, sent = (
        list(chain.from_iterable(of)) for of in zip(*((p.requests, p.places, p.sent) for p in parts))
    )
    return Laid(files, places, sent)
