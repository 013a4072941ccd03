"""How long files take to be written where a draft puts them: `time_s`, by which placements are judged.

A job writes step by step: its waves one after another and, within a wave, a progressive file from its beginning to its
end. What belongs to one step is written side by side, and all of a file that several write, each at a place of his
own. A step ends when its slowest OST, or the fullest link of a server, has moved all that lies there. What other jobs
have still to write there shares the OST fairly while it lasts. Reading the files again has the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tarazu.allocate.course import Course, effort, left_by
from tarazu.allocate.marginal_cost import terms
from tarazu.allocate.problem import Array, Group, Problem, build
from tarazu.config import Weights
from tarazu.layout.objects import STREAM_SHARE
from tarazu.lustre import EOF
from tarazu.model import CreateRequest, FilePlacement, SystemView

BUSY_OSTS = 0.75
"""Of the highest rates of all OSTs, the one that this share is below is a usual OST's: some were never busy."""
MAX_CELLS = 4_000_000
"""Steps × OSTs; beyond, neighbouring waves are taken for one."""
MOST_EFFORT = 2_000_000
"""Of `course.effort`: more takes too long for somebody who waits, tens of milliseconds."""
MAX_SIZES = 48
"""Of objects of a step, the largest first, of which the bound asks how many fit."""
MAX_INTERVALS = 16
"""Of the files' length; beyond, only the first boundaries count."""


class Timing:
    """The steps of a problem, what moves bytes in them, and how fast."""

    def __init__(self, problem: Problem, weights: Weights, seen: Array | None = None) -> None:
        """seen: bytes/s of each OST as they were seen, with whatever streams there were: none of it is lost to them."""
        self._problem, self._streams = problem, seen is None
        osts = problem.osts
        # The speed per second of I/O time is no bandwidth: beside a link only what was seen to be written counts.
        known = [o.peak_bytes_per_s for o in osts if o.peak_bytes_per_s]
        usual = max(1.0, float(np.quantile(known, BUSY_OSTS)) if known else 0.0)
        self.rate = terms(problem.view, osts, weights, max(1.0, float(problem.total_bytes))).rate * usual
        """(n,) bytes/s; of 1 for the usual OST where none is known."""
        if seen is not None:
            self.rate = seen
        self.stream = STREAM_SHARE * float(np.median(self.rate)) if seen is None else np.inf
        """Bytes/s of one process alone."""
        links = {o.name: o.link_bytes_per_s for o in problem.view.osses} if known else {}
        self._link = np.array([links.get(name) or np.inf for name in problem.oss_names])
        self._waiting = np.array([max(0, o.promised_bytes - o.written_bytes) for o in osts], float)
        self._bounds = _boundaries(problem)
        self._left = 1.0
        """Of the OSTs' rate, in a bound."""
        self._wave = problem.turns
        waves = int(self._wave.max(initial=0)) + 1
        most = max(1, MAX_CELLS // (len(osts) * len(self._bounds)))
        self._wave //= -(-waves // most)
        self._waves = int(self._wave.max(initial=0)) + 1

    @property
    def intervals(self) -> int:
        """Parts of a file that are written one after another."""
        return len(self._bounds)

    def steps(self, groups: Sequence[Group]) -> tuple[Array, Array, Array]:
        """In the order of the steps: (steps, OSTs) bytes that these groups put there, (steps, OSTs) streams that do so,
        (steps,) bytes of the largest.
        """
        parts, osts = self.intervals, len(self._problem.osts)
        cells, streams = np.zeros(self._waves * parts * osts), np.zeros(self._waves * parts * osts)
        largest = np.zeros(self._waves * parts)
        writers = np.array([r.writers for r in self._problem.requests])
        for group in groups:
            sizes, several = group.weights, writers[group.requests][:, None]
            first = (self._wave[group.requests] * parts)[:, None]
            for part, share in enumerate(self._shares(group)):
                if share > 0:
                    at = ((first + part) * osts + group.osts).ravel()
                    cells += np.bincount(at, (sizes * share).ravel(), len(cells))
                    streams += np.bincount(at, np.broadcast_to(several, sizes.shape).ravel(), len(cells))
                    np.maximum.at(largest, first[:, 0] + part, (sizes / several).max(axis=1) * share)
        used = largest > 0
        return cells.reshape(-1, osts)[used], streams.reshape(-1, osts)[used], largest[used]

    def follows(self, groups: Sequence[Group]) -> bool:
        """Whether these groups are few enough to look at who writes where at each moment."""
        return effort(self._problem, groups, int(np.count_nonzero(self._waiting))) <= MOST_EFFORT

    def course(self, groups: Sequence[Group]) -> Course:
        """Who writes where at each moment."""
        capacity = np.concatenate([self.rate, self._link])
        return Course(self._problem, groups, capacity, self._waiting, self._streams)

    def time_s(self, groups: Sequence[Group], followed: bool | None = None) -> float:
        """Seconds until the last byte of these groups is written: moment by moment where they are `followed`; None:
        where they are few.
        """
        if not (self.follows(groups) if followed is None else followed):
            return self.steps_s(groups)
        course = self.course(groups)
        course.put_all(groups)
        return course.time_s()

    def steps_s(self, groups: Sequence[Group]) -> float:
        """The same where all wait for one another after each step."""
        oss, links = self._problem.oss, np.isfinite(self._link).any()
        waiting, total = self._waiting.copy(), 0.0
        for own, streams, largest in zip(*self.steps(groups)):
            shared = own + np.minimum(waiting, own)
            rate = self.rate * left_by(streams + (waiting > 0)) if self._streams else self.rate
            time = max(float((shared / rate).max()), float(largest) / self.stream)
            if links:
                time = max(time, float((np.bincount(oss, shared, len(self._link)) / self._link).max()))
            total += time
            waiting = np.maximum(0.0, waiting - np.maximum(0.0, rate * time - own))
        return total

    def bound_s(self, groups: Sequence[Group], even: bool = False) -> float:
        """No placement of these groups is written sooner, wave by wave: what all OSTs, or all links, move together when
        all processes have gone as fast as one alone can for a while; and how many objects of a step, or of all, fit on
        the OSTs in the time. `even`: with what OSTs lose by as many streams as each has in the mean: no bound, but what
        a good placement takes.
        """
        total = 0.0
        for wave in np.unique(self._wave):
            parts: list[list[tuple[float, float]]] = [[] for _ in range(self.intervals)]
            every: list[tuple[float, float]] = []
            self._left = self._left_by_mean(groups, wave) if even else 1.0
            for group in groups:
                mine = self._wave[group.requests] == wave
                sizes, counts = np.unique(group.weights[mine], return_counts=True)
                every += zip(sizes.tolist(), counts.tolist())
                for part, share in enumerate(self._shares(group)):
                    if share > 0:
                        parts[part] += zip((sizes * share).tolist(), counts.tolist())
            total += max(self._least_s(every), self._together_s(groups, wave), *map(self._least_s, parts))
        return total

    def _left_by_mean(self, groups: Sequence[Group], wave: int) -> float:
        """Share of the OSTs' rate that is left where the groups' streams lie evenly; of the step with most bytes."""
        moved, streams = np.zeros(self.intervals), np.zeros(self.intervals)
        for group in groups:
            mine = group.requests[self._wave[group.requests] == wave]
            shares = self._shares(group)
            moved += shares * float(group.weights.mean()) * len(mine) * group.weights.shape[1]
            writers = sum(self._problem.requests[n].writers for n in mine.tolist())
            streams += (shares > 0) * writers * group.weights.shape[1]
        return float(left_by(streams[[int(moved.argmax())]] / len(self.rate))[0])

    def _together_s(self, groups: Sequence[Group], wave: int) -> float:
        """All processes as fast as each can alone, then all that is left by all OSTs or links."""
        requests, intervals = self._problem.requests, self.intervals
        seconds, moved = np.zeros((len(requests), intervals)), np.zeros((len(requests), intervals))
        for group in groups:
            mine = self._wave[group.requests] == wave
            for part, share in enumerate(self._shares(group)):
                most = group.weights[mine].max(axis=1, initial=0) * share
                at = group.requests[mine]
                seconds[at, part] = np.maximum(seconds[at, part], most / self.stream)
                moved[at, part] += group.weights[mine].sum(axis=1) * share
        writers = np.array([r.writers for r in requests])
        seconds[writers > 1] = 0.0  # none of them need write all
        ends, done = np.cumsum(seconds, axis=1), np.cumsum(moved, axis=1)
        together = float(self.rate.sum()) * self._left
        if np.isfinite(self._link).all():
            together = min(together, float(self._link.sum()))
        least = float(ends[:, -1].max(initial=0.0))
        for at_s in np.unique(np.r_[0.0, ends[:MAX_SIZES].ravel()]).tolist():
            # Of each request: what is done by then, linear within a part.
            before = np.where(ends <= at_s, moved, 0.0).sum(axis=1)
            part = np.minimum((ends <= at_s).sum(axis=1), intervals - 1)[:, None]
            since = at_s - np.take_along_axis(ends - seconds, part, axis=1)[:, 0]
            of = np.take_along_axis(seconds, part, axis=1)[:, 0]
            within = np.divide(since, of, out=np.zeros(len(of)), where=of > 0).clip(0, 1)
            here = np.take_along_axis(moved, part, axis=1)[:, 0] * within
            progress = np.minimum(before + here, done[:, -1])
            least = max(least, at_s + float((done[:, -1] - progress).sum()) / together)
        return least

    def _least_s(self, objects: Sequence[tuple[float, float]]) -> float:
        total = sum(size * count for size, count in objects)
        rate = self.rate * self._left
        least = total / float(rate.sum())
        if np.isfinite(self._link).all():
            least = max(least, total / float(self._link.sum()))
        at_least = 0.0
        for size, count in sorted(objects, reverse=True)[:MAX_SIZES]:
            at_least += count
            need = math.ceil(at_least - 1e-6)
            low, high = least, max(least, size * (need / float(rate.sum()) + 1 / float(rate.min())))
            while high - low > 1e-9 * high:
                middle = (low + high) / 2
                moves = np.floor(middle * rate / size + 1e-6).sum()
                low, high = (low, middle) if moves >= need else (middle, high)
            least = low
        return least

    def _shares(self, group: Group) -> Array:
        """(intervals,) of a component's bytes."""
        problem = self._problem
        request = problem.requests[int(group.requests[0])]
        component = request.layout.components[group.component]
        if request.writers > 1:
            at_once: Array = np.arange(self.intervals) == 0
            return at_once
        end = min(component.end_bytes, max(request.size_bytes, component.start_bytes + 1))
        edges = np.array([*self._bounds, EOF], float)
        inside = np.minimum(edges[1:], end) - np.maximum(edges[:-1], component.start_bytes)
        share: Array = inside.clip(0) / (end - component.start_bytes)
        return share


def _boundaries(problem: Problem) -> list[int]:
    """Where components begin, in bytes; 0 first."""
    starts = {0}
    for layout in {r.layout for r in problem.requests if r.writers == 1}:
        starts.update(c.start_bytes for c in layout.components)
    largest = max((r.size_bytes for r in problem.requests), default=0)
    return sorted(s for s in starts if s == 0 or s < largest)[:MAX_INTERVALS]


def time_s(
    view: SystemView, requests: Sequence[CreateRequest], files: Sequence[FilePlacement], weights: Weights
) -> float:
    """Seconds until the last byte is written where these files lie."""
    problem = placed(view, requests, files)
    return Timing(problem, weights).time_s(problem.groups)


def placed(
    view: SystemView,
    requests: Sequence[CreateRequest],
    files: Sequence[FilePlacement],
    of_wave: Sequence[int] = (),
) -> Problem:
    """The problem of these requests, its groups where the files lie."""
    problem = build(view, requests, of_wave)
    position = {ost.index: i for i, ost in enumerate(problem.osts)}
    for group in problem.groups:
        stripes = slice(group.first_stripe, group.first_stripe + group.weights.shape[1])
        rows = [files[request].osts[group.component][stripes] for request in group.requests]
        group.osts = np.array([[position[ost] for ost in row] for row in rows], np.int64)
    return problem


def bound_s(
    view: SystemView, requests: Sequence[CreateRequest], weights: Weights, even: bool = False
) -> float:
    """No placement is written sooner; `even` as in `Timing.bound_s`."""
    problem = build(view, requests)
    return Timing(problem, weights).bound_s(problem.groups, even)
