"""From how many objects of each size every OST holds to which file's they are: distinct OSTs within each component."""

from __future__ import annotations

import numpy as np

from tarazu.allocate.packing import ObjectSizes
from tarazu.allocate.problem import Array


def deal(objects: ObjectSizes, counts: Array) -> list[Array] | None:
    """(m, c) OSTs of each group's objects, OST j holding `counts[j]` of each size; None when that was not found."""
    shares = _by_group(objects, counts)
    if shares is None:
        return None
    return [_deal(group, share) for group, share in zip(objects.groups, shares)]


def _by_group(objects: ObjectSizes, counts: Array) -> list[Array] | None:
    """How many objects of each size each OST takes from each group, at most one of each member."""
    groups = objects.groups
    left = [np.bincount(group.ravel(), minlength=len(objects.sizes)) for group in groups]
    shares = [np.zeros_like(counts) for _ in groups]
    for k in range(len(objects.sizes)):
        having = [i for i in range(len(groups)) if left[i][k]]
        for ost in np.argsort(-counts[:, k], kind="stable").tolist():
            for _ in range(int(counts[ost, k])):
                open_to = [i for i in having if left[i][k] and shares[i][ost].sum() < len(groups[i])]
                if not open_to:
                    return None
                best = max(open_to, key=lambda i: left[i][k] / (1 + int(shares[i][ost].sum())))
                left[best][k] -= 1
                shares[best][ost, k] += 1
    return shares


def _deal(group: Array, share: Array) -> Array:
    """OSTs of each member's stripes, given how many objects of each size each OST takes (never above the
    members).

    This is the colouring of a bipartite multigraph: OSTs on one side, stripes on the other, an edge is an
    object, its colour the member that owns it. Its degrees are at most the number of members, so that many
    colours are enough (König); alternating paths find them. All members must have the same sizes, each row in
    any order.
    """
    members, stripes = group.shape
    rank = np.argsort(group, axis=1, kind="stable")
    # Column s of every member sorted by size: members of a group have equal sizes there.
    column_size = np.take_along_axis(group, rank, axis=1)[0]
    at_ost: list[dict[int, int]] = [{} for _ in range(len(share))]
    at_stripe: list[dict[int, int]] = [{} for _ in range(stripes)]
    waiting = {
        k: [o for o in range(len(share)) for _ in range(int(share[o, k]))] for k in range(share.shape[1])
    }
    for stripe in range(stripes):
        pending = waiting[int(column_size[stripe])]
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
