"""Exact balance of equal OSTs and few object sizes: CP-SAT over the ways in which one OST can be filled.

Equal OSTs make the problem one of counting: how many OSTs get which combination of sizes. That is small (tens
of combinations) where moves and swaps get stuck: few, large objects. The answer is a lower bound, and a
placement: that the objects of a component go to different OSTs can always be arranged afterwards (`deal`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tarazu.allocate.problem import Array, Problem

MAX_PATTERNS = 4_000
"""Fillings of one OST; beyond, counting arguments and exchanges have to do."""
MAX_SIZES = 10
TOLERANCE = 2e-4
"""Relative distance of bound and placement at which the search ends."""
MAX_SERVER_PATTERNS = 1_500
SERVERS_SEARCHED = 1.1
"""How far above the counting bound the servers' bound is looked for."""
SERVER_TOLERANCE = 2e-3
EFFORT = 2.0
"""CP-SAT's deterministic time per question: the same answer on every machine."""


@dataclass(slots=True)
class Packing:
    """The lowest maximum found, and what is proven."""

    bound: float
    """No placement has a lower maximum (bytes on one OST)."""
    maximum: int
    """Of `counts`."""
    counts: Array | None
    """(osts, sizes) objects of each size on each OST; None when nothing better than the start was found."""


def sizes_of(problem: Problem) -> tuple[Array, Array, Array] | None:
    """Distinct sizes (ascending), objects and components that have each; None: too many, or there are pools."""
    if not problem.groups or not problem.eligible[[g.eligible for g in problem.groups]].all():
        return None
    flat = np.concatenate([g.weights.ravel() for g in problem.groups])
    sizes, counts = np.unique(flat, return_counts=True)
    if len(sizes) > MAX_SIZES:
        return None
    members = np.zeros(len(sizes), np.int64)
    for group in problem.groups:
        for i, size in enumerate(sizes.tolist()):
            members[i] += np.count_nonzero((group.weights == size).any(axis=1))
    return sizes, counts, members


def pack(problem: Problem, lowest: float, highest: int) -> Packing:
    """Narrow the lowest possible maximum of bytes per OST, known to be `lowest` or more, below `highest`."""
    result = Packing(lowest, highest, None)
    found = sizes_of(problem)
    if found is None or highest <= lowest * (1 + TOLERANCE):
        return result
    sizes, counts, members = found
    patterns = _patterns(sizes.tolist(), members.tolist(), highest)
    if patterns is None:
        return result
    loads = patterns @ sizes
    candidates = np.unique(loads[(loads >= lowest * (1 - 1e-12)) & (loads < highest)])
    # The highest OST holds one of the candidates, or `highest` or more.
    low, high = 0, len(candidates)
    while low < high and (high == len(candidates) or candidates[high] > candidates[low] * (1 + TOLERANCE)):
        middle = (low + high) // 2
        answer = _fits(patterns[loads <= candidates[middle]], counts, len(problem.osts))
        if answer is False:
            low = middle + 1
        elif answer is None:
            break
        else:
            high = middle
            result.counts, result.maximum = answer, int((answer @ sizes).max())
    result.bound = max(lowest, float(candidates[low]) if low < len(candidates) else float(highest))
    return result


def _patterns(sizes: list[int], most: list[int], limit: int) -> Array | None:
    """Every combination of sizes up to `limit` bytes; None when there are too many."""
    rows: list[list[int]] = [[]]
    room = [limit]
    for size, available in zip(reversed(sizes), reversed(most)):
        longer, left = [], []
        for row, free in zip(rows, room):
            for number in range(min(available, free // size) + 1):
                longer.append([number, *row])
                left.append(free - number * size)
        if len(longer) > MAX_PATTERNS:
            return None
        rows, room = longer, left
    return np.array(rows, np.int64)


def _fits(patterns: Array, counts: Array, osts: int) -> Array | Literal[False] | None:
    """A filling (osts, sizes) of these patterns only; False when there is none, None when undecided."""
    from ortools.sat.python import cp_model

    # Covering with patterns that no other contains is enough: an object too many is left out.
    wide = patterns[~_contained(patterns)]
    model = cp_model.CpModel()
    uses = [model.new_int_var(0, osts, f"p{i}") for i in range(len(wide))]
    model.add(sum(uses) <= osts)
    for k, count in enumerate(counts.tolist()):
        model.add(sum(int(n) * use for n, use in zip(wide[:, k], uses) if n) >= count)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = EFFORT
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return False
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    filled = np.repeat(wide, [solver.value(use) for use in uses], axis=0)
    filled = np.vstack([filled, np.zeros((osts - len(filled), wide.shape[1]), np.int64)])
    for k, excess in enumerate((filled.sum(axis=0) - counts).tolist()):
        for _ in range(excess):
            # Taken from the fullest, so that the rest is as even as the patterns allow.
            holders = np.flatnonzero(filled[:, k])
            filled[holders[np.argmax(filled[holders].sum(axis=1))], k] -= 1
    return filled


def _contained(patterns: Array) -> Array:
    """Which patterns are contained in another one."""
    known = {tuple(row) for row in patterns.tolist()}
    contained = []
    for row in patterns.tolist():
        one_more = ((*row[:k], row[k] + 1, *row[k + 1 :]) for k in range(len(row)))
        contained.append(any(larger in known for larger in one_more))
    return np.array(contained)


def servers_lowest(problem: Problem, ost_limit: int, lowest: float) -> float:
    """Lower bound of the highest bytes per OST of a server where no OST holds more than `ost_limit` bytes.

    Never below `lowest`, which is known; that is the answer too where there are too many fillings.
    """
    found = sizes_of(problem)
    patterns = None if found is None else _patterns(found[0].tolist(), found[2].tolist(), ost_limit)
    width = np.bincount(problem.oss, minlength=len(problem.oss_names)).tolist()
    if found is None or patterns is None or len(patterns) * len(width) > MAX_SERVER_PATTERNS:
        return lowest
    sizes, counts, _ = found
    low, high = lowest, lowest * SERVERS_SEARCHED
    while high > low * (1 + SERVER_TOLERANCE):
        middle = (low + high) / 2
        if _servers_fit(patterns, sizes, counts, width, middle) is not False:
            high = middle
        else:
            low = middle
    return low


def _servers_fit(patterns: Array, sizes: Array, counts: Array, width: list[int], level: float) -> bool | None:
    """False when no filling keeps every server at `level` bytes per OST; None when undecided."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    uses = [[model.new_int_var(0, w, "") for _ in patterns] for w in width]
    loads = (patterns @ sizes).tolist()
    for row, w in zip(uses, width):
        model.add(sum(row) == w)
        model.add(sum(load * use for load, use in zip(loads, row)) <= int(level * w))
    for k, count in enumerate(counts.tolist()):
        holding = [(int(n), p) for p, n in enumerate(patterns[:, k].tolist()) if n]
        model.add(sum(n * row[p] for row in uses for n, p in holding) == count)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = EFFORT
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return False
    return True if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None


def apply(problem: Problem, counts: Array, turn: int) -> bool:
    """Place all groups so that OST j holds `counts[j]` objects of each size; False when that cannot be dealt.

    Fillings are given to OSTs so that the servers are even: the fullest first, to the server with the least.
    """
    found = sizes_of(problem)
    assert found is not None
    sizes = found[0]
    shares = _by_group(problem, _on_servers(problem, counts, sizes, turn), sizes)
    if shares is None:
        return False
    for group, share in zip(problem.groups, shares):
        group.osts = deal(group.weights, share, sizes)
    return True


def _on_servers(problem: Problem, counts: Array, sizes: Array, turn: int) -> Array:
    loads = counts @ sizes
    osts = len(problem.osts)
    free = [list(np.flatnonzero(problem.oss == s)) for s in range(len(problem.oss_names))]
    width = [len(f) for f in free]
    held = [0.0] * len(free)
    placed = np.zeros_like(counts)
    for row in np.argsort(-loads, kind="stable").tolist():
        server = min(
            (s for s in range(len(free)) if free[s]),
            key=lambda s: (held[s] / width[s], (s - turn) % len(free)),
        )
        ost = free[server].pop((turn + len(free[server])) % len(free[server]))
        placed[ost] = counts[row]
        held[server] += float(loads[row])
    assert len(placed) == osts
    return placed


def _by_group(problem: Problem, counts: Array, sizes: Array) -> list[Array] | None:
    """How many objects of each size each OST takes from each group, at most one of each member."""
    groups = problem.groups
    left = [np.array([np.count_nonzero(g.weights == size) for size in sizes.tolist()]) for g in groups]
    shares = [np.zeros_like(counts) for _ in groups]
    for k in range(len(sizes)):
        having = [i for i in range(len(groups)) if left[i][k]]
        for ost in np.argsort(-counts[:, k], kind="stable").tolist():
            for _ in range(int(counts[ost, k])):
                open_to = [i for i in having if left[i][k] and shares[i][ost].sum() < len(groups[i].requests)]
                if not open_to:
                    return None
                best = max(open_to, key=lambda i: left[i][k] / (1 + int(shares[i][ost].sum())))
                left[best][k] -= 1
                shares[best][ost, k] += 1
    return shares


def deal(weights: Array, share: Array, sizes: Array) -> Array:
    """OSTs of each member's stripes, given how many objects of each size each OST takes (never above the
    members).

    This is the colouring of a bipartite multigraph: OSTs on one side, stripes on the other, an edge is an
    object, its colour the member that owns it. Its degrees are at most the number of members, so that many
    colours are enough (König); alternating paths find them. All members must have the same sizes, each row in
    any order.
    """
    members, stripes = weights.shape
    rank = np.argsort(weights, axis=1, kind="stable")
    # Column s of every member sorted by size: members of a group have equal sizes there.
    column_size = np.take_along_axis(weights, rank, axis=1)[0]
    at_ost: list[dict[int, int]] = [{} for _ in range(len(share))]
    at_stripe: list[dict[int, int]] = [{} for _ in range(stripes)]
    waiting = {k: [o for o in range(len(share)) for _ in range(int(share[o, k]))] for k in range(len(sizes))}
    number = {int(size): k for k, size in enumerate(sizes.tolist())}
    for stripe in range(stripes):
        pending = waiting[number[int(column_size[stripe])]]
        for ost in [pending.pop(0) for _ in range(members)]:
            _colour(at_ost, at_stripe, ost, stripe, members)
    osts = np.zeros((members, stripes), np.int64)
    for stripe, owners in enumerate(at_stripe):
        for member, ost in owners.items():
            osts[member, rank[member, stripe]] = ost
    return osts


def _colour(
    at_ost: list[dict[int, int]], at_stripe: list[dict[int, int]], ost: int, stripe: int, colours: int
) -> None:
    """Add one edge: a colour free at both ends, else swap two colours along the alternating path."""
    for colour in range(colours):
        if colour not in at_ost[ost] and colour not in at_stripe[stripe]:
            at_ost[ost][colour], at_stripe[stripe][colour] = stripe, ost
            return
    free_at_ost = next(c for c in range(colours) if c not in at_ost[ost])
    free_at_stripe = next(c for c in range(colours) if c not in at_stripe[stripe])
    # From the stripe, edges of colours a, b, a, ... in turn; exchanging them frees a at the stripe.
    a, b = free_at_ost, free_at_stripe
    path: list[tuple[int, int, int]] = []
    at, here, want = at_stripe, stripe, a
    while want in at[here]:
        there = at[here][want]
        path.append((there, here, want) if at is at_stripe else (here, there, want))
        at, here = (at_ost if at is at_stripe else at_stripe), there
        want = b if want == a else a
    for o, s, colour in path:
        del at_ost[o][colour]
        del at_stripe[s][colour]
    for o, s, colour in path:
        other = b if colour == a else a
        at_ost[o][other], at_stripe[s][other] = s, o
    at_ost[ost][a], at_stripe[stripe][a] = stripe, ost


def equal_rows(weights: Sequence[Array]) -> bool:
    """True when within each group all members have the same sizes: what `deal` needs."""
    return all(not np.ptp(np.sort(w, axis=1), axis=0).any() for w in weights)
