"""How long a placement would take to write, at speeds that are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from tarazu.allocate import bounds
from tarazu.allocate.problem import build
from tarazu.allocate.timing import MAX_INTERVALS
from tarazu.model import CreateRequest, SystemView
from tarazu.report.objects import Array, Objects, joined

MOST_PHASES = 32
"""Of so many phases the bound is that of the allocator; of more, what the bytes alone ask for."""


class Seconds(NamedTuple):
    total_s: float
    """Until the last OST has written, phase after phase."""
    per_ost_s: Array
    slowest: int
    """Index of the OST that writes longest."""


class Rates(Protocol):
    """How fast one object can be written at all."""

    def least_s(self, sizes: Array) -> Array:
        """The least time that objects of these sizes take, each for itself."""
        ...


class TimeModel(msgspec.Struct, frozen=True):
    """All files of a phase begin at once, each OST writes at its own speed, the next phase begins when all are done;
    so does, within a phase, what lies behind the next boundary of a progressive file (`tarazu.allocate.timing`).
    """

    osts: Array
    """Indices, sorted."""
    speed: Array
    """Bytes/s of each."""
    phase: Array
    """Of each file."""
    rates: Rates | None
    fixed: Objects
    """What is written to files that were there before: it stays where it is in every placement."""

    def seconds(self, placed: Objects) -> Seconds:
        every = joined([placed, self.fixed])
        count = len(self.osts)
        place = np.searchsorted(self.osts, every.ost)
        phase = self.phase[every.file]
        phases = int(self.phase.max(initial=0)) + 1
        starts = np.unique(np.r_[0, every.begin])[:MAX_INTERVALS]
        total = np.zeros(phases)
        for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), 2**62]):
            inside = np.minimum(every.end, end) - np.maximum(every.begin, begin)
            share = inside.clip(0) / np.maximum(1, every.end - every.begin)
            cells, cell = np.unique((phase * count + place)[share > 0], return_inverse=True)
            written = np.bincount(cell, (every.written * share)[share > 0], len(cells))
            step = np.zeros(phases)
            np.maximum.at(step, cells // count, written / self.speed[cells % count])
            total += step
        if self.rates:
            np.maximum.at(total, phase, self.rates.least_s(every.written))
        per_ost = np.bincount(place, every.written, count) / self.speed
        return Seconds(float(total.sum()), per_ost, int(self.osts[int(per_ost.argmax())]))

    def bound_s(self, view: SystemView, requests: Sequence[CreateRequest], written: Sequence[int]) -> float:
        """No placement of the requests is written sooner. `written`: bytes sent to each."""
        sent = [CreateRequest(size, r.layout) for r, size in zip(requests, written, strict=True)]
        numbers = np.unique(self.phase[: len(requests)])
        fixed = self.phase[self.fixed.file]
        total = 0.0
        for number in np.unique(self.phase).tolist():
            base = np.bincount(
                np.searchsorted(self.osts, self.fixed.ost[fixed == number]),
                self.fixed.written[fixed == number],
                len(self.osts),
            )
            least = float((base / self.speed).max(initial=0.0))
            of_phase = [sent[i] for i in np.flatnonzero(self.phase[: len(requests)] == number).tolist()]
            if of_phase and len(numbers) <= MOST_PHASES:
                problem = build(view, of_phase)
                usable = np.searchsorted(self.osts, [o.index for o in problem.osts])
                least = max(least, bounds.lowest_level(problem, self.speed[usable], base[usable]))
            elif of_phase:
                size = sum(r.size_bytes for r in of_phase) + float(base.sum())
                least = max(least, size / float(self.speed.sum()))
            total += least
        return total
