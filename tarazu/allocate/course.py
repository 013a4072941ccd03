"""The course of writing: which process writes where at each moment, until the last byte is written.

Each process writes its file, or its part of a file that several write, from the beginning to the end. Whoever is done
with a progressive component goes on with the next, whatever the others do. OSTs and servers' links are shared fairly:
every object on one gets the same, unless it is held up elsewhere; a process writes its objects side by side. An OST
loses a little by each further stream, and no stream gets all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tarazu.allocate.policy import OF_JOB
from tarazu.allocate.problem import Array, Group, Problem
from tarazu.layout.objects import STREAM_LOSS, STREAM_SHARE
from tarazu.model import Component
from tarazu.units import MIB

ROUNDS = 3
"""In which a moment's rates are found; who is not held up by then shares as if nothing were left over."""
AT_ONCE = 2e-3
"""Ends within this share of the time passed are one."""
LEAST_RATE, LEAST_LOAD = 1e-12, 1e-30
DIRTY_BYTES = 32 * MIB
"""What a client holds for one object before it waits: 8 RPCs of 4 MiB (`max_rpcs_in_flight`, `max_dirty_mb`). With a
larger stripe size a process writes to some of its OSTs at a time only.
"""

Begin = Callable[[float, Array, Sequence[tuple[int, int]]], None]
"""(seconds, bytes on each OST by now, what begins: (request, component)), before it does."""


class Course:
    """Processes, what each writes one after another, and what holds them up."""

    def __init__(
        self,
        problem: Problem,
        groups: Sequence[Group],
        capacity: Array,
        waiting: Array,
        streams: bool = True,
    ) -> None:
        """capacity: (OSTs + servers,) bytes/s; waiting: (OSTs,) bytes that others have still to write there; streams:
        OSTs lose by them, and one gets no OST to itself.
        """
        self._problem, self._streams = problem, streams
        self._osts = len(problem.osts)
        self._capacity = np.append(capacity, np.inf)
        """Of each link: OSTs, servers, and one that limits nothing."""
        self._waiting = waiting
        usual = float(np.median(capacity[: self._osts])) if streams else math.inf
        self._members: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """Of each (request, component): the groups, and its place in them."""
        for number, group in enumerate(groups):
            for nth, request in enumerate(group.requests.tolist()):
                self._members.setdefault((request, group.component), []).append((number, nth))
        self.pieces: list[tuple[int, int]] = []
        """(request, component) of each row; those of one process follow one another."""
        process, amount, number, most = [], [], -1, []
        self._shares: list[Array] = []
        for request, components in _by_request(self._members).items():
            wanted = problem.requests[request]
            for writer in range(wanted.writers):
                number += 1
                for component in components:
                    part = _part(problem, request, component, writer)
                    if part > 0:
                        key = (request, component)
                        sizes = np.concatenate([groups[g].weights[n] for g, n in self._members[key]]) * part
                        self.pieces.append(key)
                        process.append(number)
                        amount.append(max(float(sizes.max()), 1e-6))
                        most.append(min(STREAM_SHARE, at_once(wanted.layout.components[component])) * usual)
                        self._shares.append(sizes / amount[-1])
        self._process, self._amount, self._most = (
            np.array(process, np.int64),
            np.array(amount),
            np.array(most),
        )
        self._their_most = STREAM_SHARE * usual
        first = np.flatnonzero(np.r_[True, np.diff(self._process) != 0]) if self.pieces else self._process
        self._first = first
        """Row of each process's first piece."""
        requests = np.array([self.pieces[row][0] for row in first.tolist()], np.int64)
        self._turn, self._job = problem.turns[requests], problem.waves[requests] // OF_JOB
        """Of each process: its wave among those of its job."""
        self._rows: dict[tuple[int, int], list[int]] = {}
        for row, key in enumerate(self.pieces):
            self._rows.setdefault(key, []).append(row)
        width = max(map(len, self._shares), default=1)
        wide = max(2, width + min(width, len(problem.oss_names)))
        self._links = np.full((len(self.pieces), wide), len(capacity), np.int64)
        self._share = np.zeros((len(self.pieces), wide))

    def put(self, request: int, component: int, osts: Array) -> None:
        """Objects lie on these OSTs."""
        oss, width = self._problem.oss, len(osts)
        for row in self._rows.get((request, component), ()):
            shares = self._shares[row]
            by_server = np.bincount(oss[osts], shares)
            used = np.flatnonzero(by_server)
            end = width + len(used)
            self._links[row, :width], self._share[row, :width] = osts, shares
            self._links[row, width:end] = self._osts + used
            self._share[row, width:end] = by_server[used]

    def bytes_of(self, request: int, component: int) -> Array:
        """Of each object."""
        rows = self._rows[request, component]
        sizes: Array = np.sum([self._shares[row] * self._amount[row] for row in rows], axis=0)
        return sizes

    def put_all(self, groups: Sequence[Group]) -> None:
        """All objects lie where these groups say: those of the beginning, or others that differ in their OSTs only."""
        counts = np.array([len(shares) for shares in self._shares], np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        lists = {key: np.concatenate([groups[g].osts[n] for g, n in of]) for key, of in self._members.items()}
        osts = np.concatenate([lists[key] for key in self.pieces])
        shares, servers = np.concatenate(self._shares), len(self._problem.oss_names)
        by_server = np.bincount(rows * servers + self._problem.oss[osts], shares, len(counts) * servers)
        row, server = np.nonzero(by_server.reshape(-1, servers))
        used = np.bincount(row, minlength=len(counts))
        column = counts[row] + np.arange(len(row)) - np.repeat(np.cumsum(used) - used, used)
        self._share[:] = 0.0
        self._links[rows, columns], self._share[rows, columns] = osts, shares
        self._links[row, column] = self._osts + server
        self._share[row, column] = by_server[row * servers + server]

    def time_s(self, begin: Begin | None = None, at_once: float = AT_ONCE) -> float:
        """Seconds until all is written."""
        now, carried = 0.0, np.zeros(len(self._capacity))
        busy = np.flatnonzero(self._waiting > 0)
        theirs = self._waiting[busy].astype(float)
        their_links = np.full((len(busy), self._links.shape[1]), len(self._capacity) - 1, np.int64)
        their_links[:, 0], their_links[:, 1] = busy, self._osts + self._problem.oss[busy]
        their_share = np.zeros(their_links.shape)
        their_share[:, :2] = 1.0
        waiting = self._later()
        going = self._after(waiting, list(waiting))
        first = self._first
        end = np.r_[first[1:], len(self.pieces)]
        at, left = first.copy(), self._amount[first]
        if begin and len(going):
            begin(now, carried[: self._osts], [self.pieces[row] for row in first[going].tolist()])
        while len(going):
            mine, others = at[going], theirs > 0
            links = np.vstack([self._links[mine], their_links[others]])
            shares = np.vstack([self._share[mine], their_share[others]])
            limits = np.append(self._most[mine], np.full(len(links) - len(mine), self._their_most))
            rate = self._rates(links, shares, limits)
            own, there = rate[: len(going)], rate[len(going) :]
            ends = left[going] / own
            step = float(ends.min())
            if others.any():
                step = min(step, max(float((theirs[others] / there).min()), at_once * now))
            now += step
            left[going] -= own * step
            theirs[others] -= there * step
            theirs[theirs < 1] = 0.0
            done = going[ends <= step + at_once * now]
            if begin:
                moved = self._share[mine] * (own * step)[:, None]
                carried += np.bincount(self._links[mine].ravel(), moved.ravel(), len(carried))
            at[done] += 1
            on = done[at[done] < end[done]]
            left[on] = self._amount[at[on]]
            gone = going[at[going] == end[going]]
            going = going[at[going] < end[going]]
            if len(gone) and waiting:
                # A job's next wave begins when nobody of the last one writes any more.
                ended = set(self._job[gone].tolist()) - set(self._job[going].tolist())
                after = self._after(waiting, ended)
                going, on = np.append(going, after), np.append(on, after)
            if begin and len(on):
                begin(now, carried[: self._osts], [self.pieces[row] for row in at[on].tolist()])
        return now

    def _later(self) -> dict[int, list[Array]]:
        """Processes of each wave of each job, the last wave first."""
        processes: dict[int, list[Array]] = {}
        for turn in sorted(set(self._turn.tolist()), reverse=True):
            for job in sorted(set(self._job[self._turn == turn].tolist())):
                processes.setdefault(job, []).append(
                    np.flatnonzero((self._turn == turn) & (self._job == job))
                )
        return processes

    @staticmethod
    def _after(waiting: dict[int, list[Array]], ended: Iterable[int]) -> Array:
        """Processes of the next waves of these jobs."""
        begin = [waiting[job].pop() for job in sorted(ended) if waiting.get(job)]
        return np.sort(np.concatenate(begin)) if begin else np.zeros(0, np.int64)

    def _rates(self, links: Array, shares: Array, most: Array) -> Array:
        """(rows,) fair rate of each, in bytes of its largest object."""
        streams = np.bincount(links[shares > 0], minlength=len(self._capacity))[: self._osts]
        capacity = self._capacity.copy()
        if self._streams:
            capacity[: self._osts] *= left_by(streams)
        return _fair(links, shares, capacity, most)


def left_by(streams: Array) -> Array:
    """Share of an OST's rate that so many streams leave."""
    left: Array = 1 / (1 + STREAM_LOSS * np.maximum(0, streams - 1))
    return left


def at_once(component: Component) -> float:
    """Share of its objects that a process writes to at a time: while one stripe waits for what goes beyond
    `DIRTY_BYTES`, that much of the stripes before it is written.
    """
    beyond = component.stripe_size_bytes - DIRTY_BYTES
    busy = component.stripe_size_bytes / beyond if beyond > 0 else math.inf
    return min(1.0, busy / component.stripe_count)


def effort(problem: Problem, groups: Sequence[Group], busy: int) -> int:
    """Steps times objects, and OSTs, that `Course.time_s` looks at; busy: OSTs on which others have still to write."""
    writers = np.array([r.writers for r in problem.requests])
    pieces = sum(int(writers[g.requests].sum()) for g in groups) + busy
    width = max((g.weights.shape[1] for g in groups), default=0)
    return pieces * (pieces * width + len(problem.osts) // 2)


def _by_request(keys: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    components: dict[int, list[int]] = {}
    for request, component in sorted(keys):
        components.setdefault(request, []).append(component)
    return components


def _part(problem: Problem, request: int, component: int, writer: int) -> float:
    """Share of a component's bytes that lie in a writer's part of the file."""
    wanted = problem.requests[request]
    if wanted.writers == 1:
        return 1.0
    of = wanted.layout.components[component]
    end = min(of.end_bytes, max(wanted.size_bytes, of.start_bytes + 1))
    whole = wanted.size_bytes / wanted.writers
    inside = min(end, (writer + 1) * whole) - max(of.start_bytes, writer * whole)
    return inside / (end - of.start_bytes)


def _fair(links: Array, shares: Array, capacity: Array, most: Array) -> Array:
    """(rows,) max-min fair rate of each, none above its `most`."""
    used = shares > 0
    # One after another, row by row.
    link, part, width = links[used], shares[used], used.sum(axis=1)
    rate, left, count = np.empty(len(links)), capacity.copy(), len(capacity)
    rows = np.arange(len(links))
    for last in (*[False] * (ROUNDS - 1), True):
        first = np.cumsum(width) - width
        level = left / (np.bincount(link, part, count) + LEAST_LOAD)
        at = level[link]
        rate[rows] = fair = np.minimum(np.minimum.reduceat(at, first), most)
        if last:
            break
        here = np.repeat(fair, width)
        # A link is full where it holds up all who use it.
        lowest = np.full(count, np.inf)
        np.minimum.at(lowest, link, here)
        full = lowest >= level * (1 - 1e-9)
        fixed = np.logical_or.reduceat(full[link] & (at <= here * (1 + 1e-9)), first) | (fair >= most)
        free = ~fixed
        if not free.any():
            break
        gone = np.repeat(fixed, width)
        stays = ~gone
        left = np.maximum(left - np.bincount(link[gone], part[gone] * here[gone], count), 0.0)
        link, part, width, most, rows = link[stays], part[stays], width[free], most[free], rows[free]
    return np.maximum(rate, LEAST_RATE)
