"""What Lustre's own allocator would give the same files, in expectation: what a placement has to win against.

Its mode is known from the view: round robin while available space is even, else weighted at random. Where a round
robin begins and what is drawn nobody knows before, so the time is the mean of several draws: of the model of the
allocator (`lsa.py`) for as many objects as it deals in little time, of a plain ring or of draws by weight
for more.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.allocate import lsa
from tarazu.allocate.problem import Array, Group, Problem, build
from tarazu.allocate.timing import Timing
from tarazu.config import Weights
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import CreateRequest, Ost, SystemView

DRAWS = 4
MOST_STRIPES = 2_000_000
"""Of more it is not asked."""
MOST_DRAWN = 20_000_000
"""Files times OSTs up to which draws are of distinct OSTs."""


def time_s(
    view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int], weights: Weights
) -> float:
    """Seconds until the last byte is written where Lustre places the files; infinite where it cannot."""
    stripes = sum(c.stripe_count for r in requests for c in (r.own or r.layout).components)
    if stripes > MOST_STRIPES or any(_too_short(r) for r in requests):
        return float("inf")
    own = [msgspec.structs.replace(r, layout=r.own, own=None) if r.own else r for r in requests]
    try:
        problem = build(view, own, of_wave)
        timing = Timing(problem, weights)
        return float(np.mean([_drawn(problem, timing, seed) for seed in range(DRAWS)]))
    except (InfeasibleRequest, InsufficientResources):
        return float("inf")


def _drawn(problem: Problem, timing: Timing, seed: int) -> float:
    if timing.follows(problem.groups):
        return _followed(problem, timing, seed)
    if lsa.goes_round(problem.view):
        _deal(problem, seed / DRAWS)
    else:
        _draw(problem, np.random.default_rng(seed))
    placed = sum(np.bincount(g.osts.ravel(), g.weights.ravel(), len(problem.osts)) for g in problem.groups)
    return timing.time_s(problem.groups) if _fit(problem, np.asarray(placed)) else float("inf")


def _followed(problem: Problem, timing: Timing, seed: int) -> float:
    """Each component gets its OSTs when the first process reaches it, as on the MDS."""
    allocator = lsa.Lsa(problem.view, seed)
    available = {o.index: o.avail_bytes for o in problem.view.osts}
    position = {o.index: i for i, o in enumerate(problem.osts)}
    found: dict[int, dict[int, tuple[int, ...]]] = {}
    course, looked_s = timing.course(problem.groups), 0.0
    placed = np.zeros(len(problem.osts))

    def begin(now: float, carried: Array, pieces: Sequence[tuple[int, int]]) -> None:
        nonlocal looked_s
        if now - looked_s >= lsa.MAXAGE_S:
            new = {o.index: available[o.index] - int(b) for o, b in zip(problem.osts, carried.tolist())}
            allocator.refresh({**available, **new}, now - looked_s)
            looked_s = now
        for request, component in pieces:
            of = found.setdefault(request, {})
            if component not in of:
                used = frozenset(ost for osts in of.values() for ost in osts)
                of[component] = osts = _create(allocator, problem, request, component, used)
                at = np.array([position[o] for o in osts], np.int64)
                course.put(request, component, at)
                np.add.at(placed, at, course.bytes_of(request, component))

    time = course.time_s(begin)
    return time if _fit(problem, placed) else float("inf")


def _too_short(request: CreateRequest) -> bool:
    """Whether the layout that Lustre would give ends before the file does."""
    return request.own is not None and request.own.components[-1].end_bytes < request.size_bytes


def _takes(ost: Ost) -> bool:
    """Whether the allocator makes objects there: beyond its reserve (`lod_qos.c`)."""
    return not ost.degraded and ost.avail_bytes > max(1 << 20, ost.total_bytes >> 10)


def _fit(problem: Problem, placed: Array) -> bool:
    """Whether so many bytes are there: else the files would end in ENOSPC."""
    return bool((placed <= np.array([o.avail_bytes for o in problem.osts], float)).all())


def _create(
    allocator: lsa.Lsa, problem: Problem, request: int, component: int, used: frozenset[int]
) -> tuple[int, ...]:
    of = problem.requests[request].layout.components[component]
    osts: tuple[int, ...] = ()
    while len(osts) < of.stripe_count:
        osts += allocator.create(of.stripe_count - len(osts), of.pool, used)
    return osts


def _deal(problem: Problem, begin: float) -> None:
    """Object after object round the ring, in the order in which components are made; from share `begin` of it on."""
    for eligible in {g.eligible for g in problem.groups}:
        groups = [g for g in problem.groups if g.eligible == eligible]
        ring = lsa.ring([o for o, may in zip(problem.osts, problem.eligible[eligible]) if may and _takes(o)])
        position = {o.index: i for i, o in enumerate(problem.osts)}
        order = np.array([position[index] for index in ring], np.int64)
        if not len(order):
            raise InsufficientResources("round robin: expected OSTs that are not degraded, found none")
        first = int(begin * len(order))
        for group, starts in zip(groups, _starts(problem, groups)):
            width = group.weights.shape[1]
            group.osts = order[(first + starts[:, None] + np.arange(width)) % len(order)]


def _starts(problem: Problem, groups: Sequence[Group]) -> list[Array]:
    """For each component of each group how many objects are made before its own."""
    waves = np.concatenate([problem.waves[g.requests] for g in groups])
    begins = [problem.requests[int(g.requests[0])].layout.components[g.component].start_bytes for g in groups]
    sizes = [len(g.requests) for g in groups]
    requests = np.concatenate([g.requests for g in groups])
    widths = np.repeat([g.weights.shape[1] for g in groups], sizes)
    order = np.lexsort((requests, np.repeat(begins, sizes), waves))
    starts = np.empty(len(order), np.int64)
    starts[order] = np.cumsum(widths[order]) - widths[order]
    return np.split(starts, np.cumsum(sizes)[:-1])


def _draw(problem: Problem, random: np.random.Generator) -> None:
    """Every component's objects by the space that is available, on distinct OSTs while these are few enough."""
    available = np.array([o.avail_bytes if _takes(o) else 0 for o in problem.osts], float)
    for group in problem.groups:
        weights = available * problem.eligible[group.eligible]
        shape = (len(group.requests), len(weights))
        if np.count_nonzero(weights) < group.weights.shape[1]:
            raise InsufficientResources("weighted: expected OSTs with space, found too few")
        if shape[0] * shape[1] > MOST_DRAWN:
            shares = np.cumsum(weights)
            drawn = random.random(group.weights.shape) * shares[-1]
            group.osts = np.searchsorted(shares, drawn, side="right")
            continue
        # Of exponential times at these rates the first are a draw without replacement.
        with np.errstate(divide="ignore"):
            times = random.exponential(size=shape) / weights
        stripes = group.weights.shape[1]
        if stripes == shape[1]:
            group.osts = np.argsort(times, axis=1)
        else:
            group.osts = np.argpartition(times, stripes - 1, axis=1)[:, :stripes]
