"""tarazu's own policy: what is written side by side is balanced by itself, and nothing is placed that gains nothing.

Wave by wave, and extent by extent (a progressive file's components are written one after another): a flow per group of
like components, largest objects first; then exchanges, the search for fillings, servers. Over all of it the order
within lists, and a few small objects for OSTs that may be well again. Where Lustre's own allocator would do as well,
files are left to it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from time import perf_counter

import msgspec
import numpy as np

from tarazu.allocate import (
    arrange,
    bounds,
    exact,
    exchange,
    flow,
    lustres_own,
    marginal_cost,
    placing_cost,
    problem,
    servers,
)
from tarazu.allocate.answer import answer
from tarazu.allocate.draft import Draft, ring, stride
from tarazu.allocate.eligible import room_bytes
from tarazu.allocate.problem import Array, Group, Problem
from tarazu.allocate.timing import Timing
from tarazu.config import Weights
from tarazu.config.sections import Allocate
from tarazu.layout.fitting import PRECISION
from tarazu.left import AS_GOOD
from tarazu.lustre import EOF
from tarazu.model import Allocation, CreateRequest, FilePlacement, Left, SystemView
from tarazu.units import KIB, MIB

TRIAL_OBJECTS = 4
TRIAL_LEAST_BYTES, TRIAL_MOST_BYTES = 256 * KIB, 4 * MIB
"""Of an object: less says nothing about a disk whose bytes per second are limited."""
TRIAL_MOST_S = 10.0
"""A disk as slow as it was seen writes all trial objects within this time."""


def let_through(draft: Draft, weights: Weights) -> None:
    """Move a few small objects of `draft` to the sick OSTs that have none: only I/O there can show that they are well.

    Each allocation may do so while nothing else is promised on that OST, with small files or first components.
    """
    problem = draft.problem
    for position, ost in enumerate(problem.osts):
        if not ost.sick or ost.degraded or ost.promised_bytes or draft.placed[position]:
            continue
        left_bytes = min((ost.write_bytes_per_s or 0.0) * TRIAL_MOST_S, room_bytes(ost, weights))
        objects = TRIAL_OBJECTS
        for group in problem.groups:
            if group.weights.shape[1] != 1 or not problem.eligible[group.eligible][position]:
                continue
            sizes = group.weights[:, 0]
            fit = (sizes >= TRIAL_LEAST_BYTES) & (sizes <= TRIAL_MOST_BYTES)
            # Not those that another trial has.
            fit &= np.array([not problem.osts[p].sick for p in group.osts[:, 0].tolist()])
            for member in np.flatnonzero(fit)[np.argsort(-sizes[fit], kind="stable")].tolist():
                size = int(sizes[member])
                if objects and size <= left_bytes:
                    draft.placed[group.osts[member, 0]] -= size
                    draft.placed[position] += size
                    group.osts[member, 0] = position
                    left_bytes, objects = left_bytes - size, objects - 1


HALF_S = 300.0
"""After which a placement counts half."""


class Lately:
    """Objects placed on each OST of a file system by jobs that may still run, or read them; older ones count less.

    Where nothing else tells OSTs apart, jobs that run at the same time are kept apart by it.
    """

    def __init__(self) -> None:
        self.made = 0
        """In all: the next begin where these end."""
        self._objects: dict[int, float] = {}
        self._at_s = 0.0

    def objects(self, wanted: Problem) -> Array:
        """(n,) as whole numbers."""
        share = self._left(wanted.view.taken_s)
        return np.rint(share * np.array([self._objects.get(o.index, 0.0) for o in wanted.osts]))

    def note(self, placed: Problem) -> None:
        share = self._left(placed.view.taken_s)
        new = sum(np.bincount(g.osts.ravel(), minlength=len(placed.osts)) for g in placed.groups)
        counts = np.broadcast_to(new, len(placed.osts)).tolist()
        self._objects = {
            o.index: share * self._objects.get(o.index, 0.0) + more
            for o, more in zip(placed.osts, counts, strict=True)
        }
        self._at_s = placed.view.taken_s
        self.made += sum(counts)

    def _left(self, now_s: float) -> float:
        halves = max(0.0, now_s - self._at_s) / HALF_S
        return math.pow(0.5, halves)


ENOUGH, ENOUGH_OF_SEVERAL = 1e-3, 1e-2
"""Levels above the best possible one with which an extent is good enough; where there are several, who goes on while
others wait counts for more.
"""
TRIES = 4
"""Drafts of progressive files from which the one that is written soonest is taken."""
FEW_EXTENTS = 4
"""Of one wave, as of the paper's layouts; where there are more, each is looked at for a shorter time."""
MOST_WAVES, MAX_CELLS = 128, 120_000
"""Waves, and waves times OSTs; beyond, neighbouring waves are taken for one. A draft then takes 1.5 s at most."""
NEAR, LEAST_BETTER = 0.02, 1e-3
"""Share above the bound that is near enough; share by which another draft has to be better."""
ABOUT = 0.02
"""Ends within this share of the time passed are one where drafts are compared: half as many moments to look at."""


class Tarazu:
    """Policy `tarazu`."""

    name = "tarazu"

    def __init__(self, seed: int = 0, weights: Weights | None = None) -> None:
        self.weights = weights or Weights()
        self.limit_s = math.inf
        """After so long the best placement so far is taken: where somebody waits, on a node that is busy."""
        self.least_gain = -1.0
        """Share of their time by which files must be written sooner to be placed at all; -1: whatever it is."""
        self._seed = seed
        self._lately: dict[str, Lately] = {}
        """By file system."""

    @classmethod
    def of_site(cls, settings: Allocate, seed: int = 0) -> Tarazu:
        """As a site's settings have it: what gains too little is left to Lustre."""
        policy = cls(seed, settings.weights)
        policy.least_gain = settings.least_gain
        return policy

    def allocate(
        self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
    ) -> Allocation:
        """Place `requests`, each of a wave. Raises InfeasibleRequest (never) or InsufficientResources (not now)."""
        start = perf_counter()
        wanted = problem.build(view, requests, of_wave)
        draft = self._placed(wanted, start + self.limit_s)
        estimate = lustres_own.estimate(draft.problem, of_wave, self.weights, self.least_gain, draft.until)
        if estimate.loses:
            let_through(draft, self.weights)
            self._lately[view.fs_name].note(draft.problem)
            placed = answer(
                draft.problem, self.name, draft.placed, start, _emptiest_first(draft), draft.bound
            )
            seconds = any(ost.peak_bytes_per_s for ost in draft.problem.osts)  # else in units of its own
            return msgspec.structs.replace(
                placed,
                expected_s=estimate.ours_s if seconds else 0.0,
                expected_requests_s=placing_cost.requests_s(draft.problem) if seconds else 0.0,
                expected_gain=estimate.gain,
            )
        return Allocation(
            (FilePlacement(()),) * len(requests),
            self.name,
            elapsed_s=perf_counter() - start,
            left=dict.fromkeys(range(len(requests)), Left(AS_GOOD)),
        )

    def _placed(self, wanted: Problem, until: float) -> Draft:
        """The draft that is written soonest of several, where components are written one after another: which process
        goes on while others wait is not known before a draft is made.
        """
        timing = Timing(wanted, self.weights)
        ways = _ways(wanted)
        several = len(ways[0]) > 1 or len(ways) > 1
        if not several or not timing.follows(wanted.groups):
            return self._drafted(wanted, ways[0], True, until)
        bound_s = timing.bound_s(wanted.groups, even=True)
        best, soonest = None, math.inf
        for way in ways:
            first = self._drafted(wanted, way, False, until)
            # Dealt anew, the fullest OST has as much to write.
            enough = max(bound_s, float((first.placed / timing.rate).max())) * (1 + NEAR)
            course = timing.course(first.problem.groups)
            for nth in range(TRIES // len(ways)):
                draft = _dealt_anew(first, nth) if nth else first
                course.put_all(draft.problem.groups)
                time = course.time_s(at_once=ABOUT)
                if time < soonest * (1 - LEAST_BETTER):
                    best, soonest = draft, time
                if soonest <= enough or draft.due:
                    break
            if best and best.due:
                break
        assert best
        return best

    def _drafted(self, wanted: Problem, extents: list[list[Group]], few_meet: bool, until: float) -> Draft:
        """Every extent balanced by itself, the largest first; where that leaves a choice, the emptier OSTs, and those
        after the ones of the last placement.
        """
        osts = len(wanted.osts)
        lately = self._lately.setdefault(wanted.view.fs_name, Lately())
        # After each round one further on, so that files of several stripes begin everywhere.
        turn = (lately.made + lately.made // osts + self._seed * stride(osts)) % osts
        recent = lately.objects(wanted)
        placed, groups = np.zeros(osts), []
        enough, precision = (
            (ENOUGH, PRECISION) if len(extents) == 1 else (ENOUGH_OF_SEVERAL, ENOUGH_OF_SEVERAL / 10)
        )
        for of_extent in extents:
            part = dataclasses.replace(wanted, groups=[dataclasses.replace(group) for group in of_extent])
            # Others write all the while: beside each extent as much as is its share.
            share = part.total_bytes / wanted.total_bytes if wanted.total_bytes else 1.0
            levels = marginal_cost.build(part, self.weights, placed, recent, share)
            mean = part.total_bytes / max(1, sum(group.weights.size for group in part.groups))
            draft = Draft(
                part, levels, np.zeros(osts), turn, placed, recent * mean, few_meet,
                enough=enough, effort=min(1.0, FEW_EXTENTS / len(extents)), until=until,
            )  # fmt: skip
            flow.place(draft)
            # Of sizes that are all different it takes a third of a second, for each wave.
            if len(extents) == 1 or not draft.due:
                draft.bound = bounds.utilization_of(part, precision=precision)
            for make_better in (exchange.lower_osts, exact.pack, servers.even_out):
                # Of several extents, who goes on while others wait counts for more than what the search wins in one.
                if not draft.due and (make_better is not exact.pack or len(extents) == 1):
                    make_better(draft)
            arrange.relabel(draft)
            placed = placed + draft.placed
            groups += part.groups
        whole = dataclasses.replace(wanted, groups=groups)
        if len(extents) == 1:
            draft = dataclasses.replace(draft, problem=whole)
        else:
            levels, bound = marginal_cost.build(whole, self.weights), bounds.utilization_of(whole)
            draft = Draft(whole, levels, placed, turn, bound=bound, until=until)
        arrange.arrange(draft)
        return draft


def _dealt_anew(draft: Draft, nth: int) -> Draft:
    """The same objects on each OST, other members' lists: few members share OSTs, or all a little, by turns."""
    osts = len(draft.problem.osts)
    groups = [dataclasses.replace(group) for group in draft.problem.groups]
    other = dataclasses.replace(
        draft,
        problem=dataclasses.replace(draft.problem, groups=groups),
        turn=(draft.turn + nth * stride(osts)) % osts,
        few_meet=nth % 2 == 1,
    )
    for group in groups:
        if not np.ptp(group.weights):
            flow.deal(other, group, np.bincount(group.osts.ravel(), minlength=osts))
        elif not np.ptp(group.weights, axis=0).any():
            group.osts = np.roll(group.osts, nth * stride(len(group.osts)), axis=0)
    arrange.arrange(other)
    return other


def _ways(wanted: Problem) -> list[list[list[Group]]]:
    """How groups may be divided into extents: by component; and where several write a file, each at his place, with
    all of it at once.
    """
    by_component = _extents(wanted, shared_at_once=False)
    at_once = _extents(wanted, shared_at_once=True)
    return [at_once] if len(at_once) == len(by_component) else [at_once, by_component]


def _extents(wanted: Problem, shared_at_once: bool) -> list[list[Group]]:
    """Groups of like extents of the files of one wave, those of most bytes first."""
    by_extent: dict[tuple[int, int, int], list[Group]] = {}
    wave = wanted.turns
    most = max(1, min(MOST_WAVES, MAX_CELLS // len(wanted.osts)))
    wave //= -(-(int(wave.max(initial=0)) + 1) // most)
    for group in wanted.groups:
        request = wanted.requests[int(group.requests[0])]
        component = request.layout.components[group.component]
        at_once = shared_at_once and request.writers > 1
        extent = (0, EOF) if at_once else (component.start_bytes, component.end_bytes)
        of_member = wave[group.requests]
        for number in np.unique(of_member).tolist():
            by_extent.setdefault((number, *extent), []).append(group.part(of_member == number))
    return sorted(by_extent.values(), key=lambda groups: -sum(float(g.weights.sum()) for g in groups)) or [[]]


def _emptiest_first(draft: Draft) -> Array:
    """Positions of the OSTs by final fill, degraded ones last."""
    osts = draft.problem.osts
    used = np.array([o.used_bytes + o.promised_bytes for o in osts], float) + draft.placed
    fill = used / np.array([max(1, o.total_bytes) for o in osts], float)
    turned = (ring(draft.problem.oss) - draft.turn) % len(osts)
    return np.lexsort((turned, fill, np.array([o.degraded for o in osts])))
