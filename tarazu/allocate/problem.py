"""Requests as arrays: usable OSTs, and groups of components alike in layout, place in it and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any

import numpy as np

from tarazu.allocate.eligible import candidates, usable_osts
from tarazu.allocate.policy import OF_JOB
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.layout.objects import component_object_bytes
from tarazu.model import Component, CreateRequest, Layout, Ost, SystemView
from tarazu.units import human_bytes

Array = np.ndarray[Any, Any]

FEW_SIZES = 8
"""Distinct file sizes from which arrays are faster than one after the other."""
MAX_GROUPS = 24
"""Beyond, groups of similar sizes are merged: each group costs one flow."""


@dataclass(slots=True)
class Group:
    """`m` components of `c` stripes each, alike but for small differences in size."""

    component: int
    """Index in the layout."""
    first_stripe: int
    """0, or where this piece of an overstriped component begins."""
    eligible: int
    """Row of `Problem.eligible`."""
    requests: Array
    """(m,) index of each member's request."""
    weights: Array
    """(m, c) bytes of each object, at least 1 so that empty objects are spread too."""
    osts: Array = field(default_factory=lambda: np.empty((0, 0), np.int64))
    """(m, c) position of the chosen OST in `Problem.osts`."""

    @property
    def unit(self) -> float:
        return float(self.weights.mean())

    def part(self, members: Array) -> Group:
        """Some of the members, not placed."""
        return Group(
            self.component, self.first_stripe, self.eligible, self.requests[members], self.weights[members]
        )

    def halves(self) -> list[Group]:
        """The members with the larger and those with the smaller objects; empty where all are of one size."""
        largest = self.weights.max(axis=1)
        order = np.argsort(-largest, kind="stable")
        cut = int(np.count_nonzero(largest > np.median(largest))) or int(
            np.count_nonzero(largest == largest.max())
        )
        if cut == len(order):
            return []
        return [self.part(order[:cut]), self.part(order[cut:])]


@dataclass(slots=True)
class Problem:
    """What is to be placed, and where it may go."""

    view: SystemView
    requests: Sequence[CreateRequest]
    osts: tuple[Ost, ...]
    """Usable OSTs; every other array holds positions in it."""
    oss: Array
    """(n,) server of each OST, numbered by first appearance."""
    oss_names: list[str]
    eligible: Array
    """(sets, n) which OSTs may serve a component; one row per pool that occurs."""
    groups: list[Group]
    waves: Array
    """(requests,) files of one number are written at about the same time; those of numbers `OF_JOB` apart are of jobs
    that run side by side.
    """
    total_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.total_bytes = sum(int(group.weights.sum()) for group in self.groups)

    @property
    def turns(self) -> Array:
        """(requests,) how many waves of its job come before each."""
        numbers, of = np.unique(self.waves, return_inverse=True)
        job = numbers // OF_JOB
        turn: Array = (np.arange(len(numbers)) - np.searchsorted(job, job))[of]
        return turn


def build(view: SystemView, requests: Sequence[CreateRequest], waves: Sequence[int] = ()) -> Problem:
    """Group the components that the forecast covers. Raises InfeasibleRequest or InsufficientResources.

    waves: of each request; empty where nothing is known of times.
    """
    osts = usable_osts(view)
    if not osts:
        raise InsufficientResources(
            f"file system {view.fs_name}: expected usable OSTs, found none of {len(view.osts)}"
        )
    wanted = sum(r.size_bytes for r in requests)
    existing = sum(o.total_bytes for o in view.osts)
    if wanted > existing:
        raise InfeasibleRequest(
            f"file system {view.fs_name}: expected space for {human_bytes(wanted)}, "
            f"found OSTs of {human_bytes(existing)} in all"
        )
    names: dict[str, int] = {}
    oss = np.array([names.setdefault(o.oss, len(names)) for o in osts], np.int64)
    rows: dict[str, int] = {}
    masks: list[Array] = []
    groups: list[Group] = []
    pieces = pieces_of(requests)
    for merge_log2 in (None, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1.0, 64.0):
        merged = _merge(pieces, merge_log2)
        if len(merged) <= MAX_GROUPS:
            break
    for members in merged:
        component = members[0].component
        if component.pool not in rows:
            rows[component.pool] = len(masks)
            masks.append(np.array([not component.pool or component.pool in o.pools for o in osts]))
        largest = max(max(p.weights) for p in members)
        width = len(candidates(view, component, largest))
        groups += _groups(members, width, rows[component.pool])
    eligible = np.array(masks) if masks else np.ones((1, len(osts)), bool)
    of_wave = np.array(waves, np.int64) if len(waves) else np.zeros(len(requests), np.int64)
    return Problem(view, requests, osts, oss, list(names), eligible, groups, of_wave)


@dataclass(slots=True)
class RequestedComponent:
    """One component of all the requests that have the same layout and size."""

    layout: int
    position: int
    component: Component
    weights: tuple[int, ...]
    requests: list[int]
    several: bool = False
    """Written by several processes each."""


def pieces_of(requests: Sequence[CreateRequest]) -> list[RequestedComponent]:
    """The components that the forecasts reach and that lie on OSTs; of one layout in the order of its components."""
    members: dict[CreateRequest, list[int]] = {}
    for i, request in enumerate(requests):
        members.setdefault(request, []).append(i)
    alike: dict[Layout, list[CreateRequest]] = {}
    for request in members:
        alike.setdefault(request.layout, []).append(request)
    pieces = []
    for number, (layout, of_layout) in enumerate(alike.items()):
        for position, component in enumerate(layout.components):
            reaching = [r for r in of_layout if layout.covered(r.size_bytes) > position]
            if component.stripe_count and component.pattern != "mdt" and reaching:
                rows = _object_bytes(component, [r.size_bytes for r in reaching])
                for request, weights in zip(reaching, rows):
                    several = request.writers > 1
                    pieces.append(
                        RequestedComponent(number, position, component, weights, members[request], several)
                    )
    return pieces


def _object_bytes(component: Component, sizes: list[int]) -> list[tuple[int, ...]]:
    """`component_object_bytes` for files of all these sizes; in one array where they are many."""
    if len(sizes) < FEW_SIZES or max(sizes) >= 2**62:
        return [component_object_bytes(component, size) for size in sizes]
    return [tuple(row) for row in many_object_bytes(component, np.array(sizes, np.int64)).tolist()]


def many_object_bytes(component: Component, sizes: Array) -> Array:
    """(files, stripes) `component_object_bytes` for files of all these sizes, each below 2**62."""
    stripe, count = component.stripe_size_bytes, component.stripe_count
    ends = np.maximum(np.minimum(sizes, min(component.end_bytes, 2**62)), component.start_bytes)

    def below(offsets: Array) -> Array:
        rounds, rest = np.divmod(offsets[:, None], stripe * count)
        inside: Array = rounds * stripe + (rest - np.arange(count) * stripe).clip(0, stripe)
        return inside

    return below(ends) - below(np.array([component.start_bytes], np.int64))


def _merge(pieces: list[RequestedComponent], step_log2: float | None) -> list[list[RequestedComponent]]:
    """Pieces by (layout, component, size), sizes equal to within a factor of 2**step."""
    merged: dict[tuple[int, int, float, bool], list[RequestedComponent]] = {}
    for p in pieces:
        total = sum(p.weights)
        size = total if step_log2 is None else int(log2(max(1, total)) / step_log2)
        merged.setdefault((p.layout, p.position, size, p.several), []).append(p)
    return list(merged.values())


def _groups(members: list[RequestedComponent], width: int, row: int) -> list[Group]:
    """One group; or several of at most `width` stripes for an overstriped component wider than its OSTs."""
    files = np.concatenate([np.asarray(p.requests, np.int64) for p in members])
    counts = [len(p.requests) for p in members]
    weights = np.repeat(np.array([p.weights for p in members], np.int64), counts, axis=0)
    np.maximum(weights, 1, out=weights)
    first = members[0]
    count = first.component.stripe_count
    return [
        Group(first.position, start, row, files, weights[:, start : start + width])
        for start in range(0, count, width)
    ]
