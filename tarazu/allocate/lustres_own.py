"""What Lustre's own allocator would give the same files, in expectation: what a placement has to win against.

Its mode is known from the view: round robin while available space is even, else weighted at random. Where a round
robin begins and what is drawn nobody knows before, so the time is the mean of several draws: of the model of the
allocator (`lsa.py`) for as many objects as it deals in little time, of a plain ring or of draws by weight
for more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.allocate import lsa, placing_cost
from tarazu.allocate.eligible import room_bytes
from tarazu.allocate.problem import Array, Group, Problem, build
from tarazu.allocate.timing import Timing
from tarazu.config import Weights
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import CreateRequest, Ost, SystemView
from tarazu.ost_state import Verdict

DRAWS = 4
MOST_DOUBT = 0.1
"""However small files are: then calls are as large as they."""
FEW_DRAWS, SURE = 2, 2.0
"""After so many draws the answer is taken where it is so many standard errors of their mean away from the other."""
MOST_STRIPES = 2_000_000
"""Of more it is not asked."""
MOST_DRAWN = 20_000_000
"""Files times OSTs up to which draws are of distinct OSTs."""
AT_ONCE, MOST_TURNS = 4, 200
"""A part of the OSTs for which so many objects are drawn before penalties are looked at again, in so many turns."""
LEAST = 1e-3
"""Share of its weight that an OST keeps whatever its penalty."""
NOT_MADE = frozenset({Verdict.REFUSING, Verdict.FULL})
"""The MDS makes no objects there by itself."""


class Estimate(NamedTuple):
    loses: bool
    """Lustre does."""
    ours_s: float = 0.0
    """Seconds until the last byte is written, without correction; 0 where nobody looked."""
    gain: float = 0.0
    """By how much longer Lustre takes, as a share of ours with the requests, corrected."""


def estimate(
    ours: Problem, of_wave: Sequence[int], weights: Weights, least_gain: float, until: float = math.inf
) -> Estimate:
    """Whether the files are written sooner, by that share, what is in doubt and what placing them costs, where `ours`
    puts them, or must not lie where Lustre could.

    Both are judged by one yardstick: moment by moment where both are few enough for that. Lustre's mean counts less by
    what so few draws leave open. until: when to be content with fewer, or to take it for so where there was no time for
    one, as `perf_counter` says it.
    """
    if least_gain < 0 or not ours.groups:
        return Estimate(True)
    if _breaks(ours.view, ours.requests, weights):
        return Estimate(True)
    theirs = _problem(ours.view, ours.requests, of_wave)
    if theirs is None:
        return Estimate(True)
    timing, own = Timing(ours, weights), Timing(theirs, weights)
    followed = timing.follows(ours.groups) and own.follows(theirs.groups)
    streams = ours.view.correction.streams
    start_s, more_s = (
        placing_cost.in_time_of(timing, seconds, streams)
        for seconds in (placing_cost.START_S, placing_cost.more_s(ours))
    )
    ours_s = timing.time_s(ours.groups, followed)
    most = (ours_s + start_s + more_s) * (1 + max(least_gain, doubt(ours)))
    times: list[float] = []
    error = 0.0
    for seed in range(DRAWS):
        if perf_counter() >= until:
            break
        times.append(_drawn(theirs, own, seed, followed))
        if math.isinf(times[-1]):
            return Estimate(True)
        if len(times) >= FEW_DRAWS:
            error = float(np.std(times, ddof=1)) / math.sqrt(len(times))
            if abs(float(np.mean(times)) - most) > SURE * error:
                break
    if not times:
        return Estimate(True)
    lustres_s = float(np.mean(times))
    return Estimate(most <= lustres_s - error, ours_s, lustres_s / (ours_s + more_s) - 1)


def doubt(problem: Problem) -> float:
    """Share of the time by which the estimate may be wrong: it lets a process write all objects of a component evenly,
    while a call writes those that its bytes lie in, of unknown size. A round over the stripes is what may come in any
    order.
    """
    rounds = total = 0.0
    for group in problem.groups:
        layout = problem.requests[int(group.requests[0])].layout
        sizes, stripes = group.weights.sum(axis=1), group.weights.shape[1]
        total += float(sizes.sum())
        if stripes > 1:
            rounds += float(
                np.minimum(sizes, layout.components[group.component].stripe_size_bytes * stripes).sum()
            )
    return min(MOST_DOUBT, rounds / max(1.0, total))


def time_s(
    view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int], weights: Weights
) -> float:
    """Seconds until the last byte is written where Lustre places the files; infinite where it cannot."""
    problem = _problem(view, requests, of_wave)
    if problem is None:
        return math.inf
    timing = Timing(problem, weights)
    followed = timing.follows(problem.groups)
    return float(np.mean([_drawn(problem, timing, seed, followed) for seed in range(DRAWS)]))


def _problem(view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int]) -> Problem | None:
    """The files with the layouts that Lustre would give them; None where it cannot, or they are too many."""
    stripes = sum(c.stripe_count for r in requests for c in (r.own or r.layout).components)
    if stripes > MOST_STRIPES or any(_too_short(r) for r in requests):
        return None
    own = [msgspec.structs.replace(r, layout=r.own, own=None) if r.own else r for r in requests]
    try:
        return build(view, own, of_wave)
    except (InfeasibleRequest, InsufficientResources):
        return None


def _breaks(view: SystemView, requests: Sequence[CreateRequest], weights: Weights) -> bool:
    """Whether Lustre might make objects of these files where none must be."""
    layouts = {r.own or r.layout for r in requests}
    pools = {c.pool for layout in layouts for c in layout.components if c.stripe_count}
    return any(_kept_free(o, weights) and ("" in pools or pools.intersection(o.pools)) for o in view.osts)


def _kept_free(ost: Ost, weights: Weights) -> bool:
    """Whether Lustre makes objects there and we do not: its own constraints are not all of them."""
    if ost.verdict in NOT_MADE or ost.files_free <= 0 or not _takes(ost):
        return False
    return not ost.usable or not room_bytes(ost, weights)


def _drawn(problem: Problem, timing: Timing, seed: int, followed: bool) -> float:
    """Infinite where the files do not fit."""
    try:
        if followed:
            return _followed(problem, timing, seed)
        _place(problem, seed)
    except InsufficientResources:
        return math.inf
    placed = sum(np.bincount(g.osts.ravel(), g.weights.ravel(), len(problem.osts)) for g in problem.groups)
    return timing.steps_s(problem.groups) if _fit(problem, np.asarray(placed)) else math.inf


def _place(problem: Problem, seed: int) -> None:
    """All objects at once; each pool in its own mode, as on the MDS."""
    random = np.random.default_rng(seed)
    for eligible, may in enumerate(problem.eligible):
        groups = [g for g in problem.groups if g.eligible == eligible]
        if lsa.goes_round([o for o, here in zip(problem.osts, may) if here]):
            _deal(problem, groups, seed / DRAWS)
        else:
            _draw(problem, groups, random)


def _followed(problem: Problem, timing: Timing, seed: int) -> float:
    """Each component gets its OSTs when the first process reaches it, as on the MDS."""
    allocator = lsa.Lsa(problem.view, seed)
    available = {o.index: o.avail_bytes for o in problem.view.osts}
    position = {o.index: i for i, o in enumerate(problem.osts)}
    layouts: dict[int, dict[int, tuple[int, ...]]] = {}
    course, looked_s = timing.course(problem.groups), 0.0
    placed = np.zeros(len(problem.osts))

    def begin(now: float, carried: Array, pieces: Sequence[tuple[int, int]]) -> None:
        nonlocal looked_s
        if now - looked_s >= lsa.MAXAGE_S:
            new = {o.index: available[o.index] - int(b) for o, b in zip(problem.osts, carried.tolist())}
            allocator.refresh({**available, **new}, now - looked_s)
            looked_s = now
        for request, component in pieces:
            of = layouts.setdefault(request, {})
            if component not in of:
                used = frozenset(ost for osts in of.values() for ost in osts)
                of[component] = osts = _create(allocator, problem, request, component, used)
                at = np.array([position[o] for o in osts], np.int64)
                course.put(request, component, at)
                np.add.at(placed, at, course.bytes_of(request, component))

    time = course.time_s(begin)
    return time if _fit(problem, placed) else math.inf


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


def _deal(problem: Problem, groups: Sequence[Group], begin: float) -> None:
    """Object after object round the ring, in the order in which components are made; from share `begin` of it on."""
    if not groups:
        return
    may = problem.eligible[groups[0].eligible]
    ring = lsa.ring([o for o, here in zip(problem.osts, may) if here and _takes(o)])
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
    waves = np.concatenate([problem.turns[g.requests] for g in groups])
    begins = [problem.requests[int(g.requests[0])].layout.components[g.component].start_bytes for g in groups]
    sizes = [len(g.requests) for g in groups]
    requests = np.concatenate([g.requests for g in groups])
    widths = np.repeat([g.weights.shape[1] for g in groups], sizes)
    order = np.lexsort((requests, np.repeat(begins, sizes), waves))
    starts = np.empty(len(order), np.int64)
    starts[order] = np.cumsum(widths[order]) - widths[order]
    return np.split(starts, np.cumsum(sizes)[:-1])


def _draw(problem: Problem, groups: Sequence[Group], random: np.random.Generator) -> None:
    """Every component's objects by the space that is available, on distinct OSTs while these are few enough; after a
    few at a time, what was used is avoided as `lsa.Lsa` does it.
    """
    for group in groups:
        layout = problem.requests[int(group.requests[0])].layout
        avoided = _Avoided(problem, group, servers=not layout.components[group.component].pool)
        members, stripes = group.weights.shape
        if np.count_nonzero(avoided.space) < stripes:
            raise InsufficientResources("weighted: expected OSTs with space, found too few")
        rows = max(-(-len(avoided.space) // (AT_ONCE * stripes)), -(-members // MOST_TURNS))
        drawn = [
            avoided.draw(min(rows, members - begin), stripes, members * len(avoided.space), random)
            for begin in range(0, members, rows)
        ]
        group.osts = np.concatenate(drawn)


class _Avoided:
    """The penalties of `lod_qos.c`, for several objects at once."""

    def __init__(self, problem: Problem, group: Group, servers: bool) -> None:
        may = problem.eligible[group.eligible]
        self.space = np.array([o.avail_bytes if _takes(o) else 0 for o in problem.osts], float) * may
        self._oss = problem.oss
        used = np.count_nonzero(self.space)
        self._per_object = lsa.WIDE * self.space / 2 / max(1, used - 1)
        self._turns = int(used)
        self._penalty = np.zeros(len(self.space))
        osts: Array = np.bincount(problem.oss, self.space > 0)
        mean: Array = np.bincount(problem.oss, self.space) / np.maximum(1, osts)
        self._servers = int(np.count_nonzero(mean))
        if servers and self._servers < 2:
            self._per_object *= 2  # its OSTs' penalties stand for those of a single server
        self._per_server = servers * lsa.WIDE * mean / 2 / max(1, self._servers - 1)
        self._server_penalty = np.zeros(len(mean))

    def draw(self, rows: int, stripes: int, cells: int, random: np.random.Generator) -> Array:
        """(rows, stripes) positions."""
        weights = np.maximum(self.space - self._penalty - self._server_penalty[self._oss], self.space * LEAST)
        if cells > MOST_DRAWN:
            shares = np.cumsum(weights)
            osts = np.searchsorted(shares, random.random((rows, stripes)) * shares[-1], side="right")
        else:
            # Of exponential times at these rates the first are a draw without replacement.
            with np.errstate(divide="ignore"):
                times = random.exponential(size=(rows, len(weights))) / weights
            osts = np.argpartition(times, min(stripes, len(weights) - 1), axis=1)[:, :stripes]
        hits = np.bincount(osts.ravel(), minlength=len(weights))
        self._penalty = _aged(self._penalty, self._per_object, hits, self._turns)
        of_servers = np.bincount(self._oss, hits, len(self._per_server))
        self._server_penalty = _aged(self._server_penalty, self._per_server, of_servers, self._servers)
        return np.asarray(osts)


def _aged(penalty: Array, per_object: Array, hits: Array, turns: int) -> Array:
    """Those that were hit have as many objects' more as there are of them, and all lose one for each object."""
    more = penalty * 0.5**hits + per_object * turns * hits
    aged: Array = np.maximum(0.0, more - per_object * hits.sum())
    return aged
