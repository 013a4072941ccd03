"""How long a placement would take to write at given speeds: the estimate by which mdsd judges, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tarazu.allocate import bounds
from tarazu.allocate.problem import Problem, build
from tarazu.allocate.timing import Timing
from tarazu.config import Weights
from tarazu.model import CreateRequest, Ost, SystemView
from tarazu.report.objects import Array, Laid, joined

MOST_PHASES = 32
"""Of so many phases the bound is that of the allocator; of more, what the bytes alone ask for."""
ROOM_BYTES = 1 << 62
"""Of each OST: space decides nothing here."""


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


class _Phase(NamedTuple):
    """Files that are written at one time."""

    number: int
    files: list[int]
    problem: Problem
    timing: Timing
    sent: list[Array]
    """Of each group, bytes sent to each object."""


class TimeModel:
    """All files of a phase begin at once, each OST writes at its own speed (`tarazu.allocate.timing`); the next phase
    begins when all are done.
    """

    def __init__(self, osts: Array, speed: Array, phase: Array, rates: Rates | None, fixed: Laid) -> None:
        """osts: indices, sorted; speed: bytes/s of each; phase: of each file, those of `fixed` last, which were there
        before: they stay where they are in every placement.
        """
        self.osts, self.speed, self.phase, self.rates, self.fixed = osts, speed, phase, rates, fixed
        self._requests: Sequence[CreateRequest] = ()
        self._phases: list[_Phase] = []

    def seconds(self, placed: Laid) -> Seconds:
        every = joined([placed, self.fixed])
        written = every.objects()
        total = np.zeros(int(self.phase.max(initial=0)) + 1)
        for phase in self._phases_of(placed.requests, every):
            self._put(phase, every)
            total[phase.number] = phase.timing.time_s(phase.problem.groups)
        if self.rates:
            np.maximum.at(total, self.phase[written.file], self.rates.least_s(written.written))
        place = np.searchsorted(self.osts, written.ost)
        per_ost = np.bincount(place, written.written, len(self.osts)) / self.speed
        return Seconds(float(total.sum()), per_ost, int(self.osts[int(per_ost.argmax())]))

    def _phases_of(self, placed: Sequence[CreateRequest], every: Laid) -> list[_Phase]:
        """The problem of each phase; the same as long as these are the same requests."""
        if placed is not self._requests or not self._phases:
            pools = tuple(
                sorted({c.pool for layout in {r.layout for r in every.requests} for c in layout} - {""})
            )
            osts = [Ost(i, "", ROOM_BYTES, ROOM_BYTES, ROOM_BYTES, pools=pools) for i in self.osts.tolist()]
            of: dict[int, list[int]] = {}
            for file in range(len(every.requests)):
                of.setdefault(int(self.phase[file]), []).append(file)
            self._phases = [
                self._phase(SystemView("", 0.0, tuple(osts)), *item, every) for item in of.items()
            ]
            self._requests = placed
        return self._phases

    def _phase(self, view: SystemView, number: int, files: list[int], every: Laid) -> _Phase:
        problem = build(view, [every.requests[file] for file in files])
        again = np.array([every.sent[file] / max(1, every.requests[file].size_bytes) for file in files])
        sent = [group.weights * again[group.requests][:, None] for group in problem.groups]
        # What an OST gave, it gave beside all its streams.
        seen = self.speed[np.searchsorted(self.osts, [o.index for o in problem.osts])]
        return _Phase(number, files, problem, Timing(problem, Weights(), seen), sent)

    def _put(self, phase: _Phase, every: Laid) -> None:
        """Objects lie where they do, and hold what was sent to them."""
        for group, sent in zip(phase.problem.groups, phase.sent, strict=True):
            stripes = slice(group.first_stripe, group.first_stripe + group.weights.shape[1])
            rows = []
            for file in (phase.files[request] for request in group.requests.tolist()):
                component = every.requests[file].layout.components[group.component]
                rows.append(every.osts(file, group.component, component.stripe_count)[stripes])
            osts = np.array(rows)
            group.weights = np.where(osts >= 0, sent, 0.0)
            group.osts = np.searchsorted(self.osts, np.maximum(osts, self.osts[0]))

    def bound_s(self, view: SystemView, requests: Sequence[CreateRequest], written: Sequence[int]) -> float:
        """No placement of the requests is written sooner. `written`: bytes sent to each."""
        sent = [CreateRequest(size, r.layout) for r, size in zip(requests, written, strict=True)]
        numbers = np.unique(self.phase[: len(requests)])
        there = self.fixed.objects()
        fixed = self.phase[len(self.phase) - len(self.fixed.requests) :][there.file]
        total = 0.0
        for number in np.unique(self.phase).tolist():
            base = np.bincount(
                np.searchsorted(self.osts, there.ost[fixed == number]),
                there.written[fixed == number],
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
