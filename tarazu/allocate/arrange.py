"""Last steps, which change no bytes per OST but by exchange of like ones: where lists begin, which OST is which."""

from __future__ import annotations

import numpy as np

from tarazu.allocate.draft import Draft, ring
from tarazu.allocate.marginal_cost import EVEN
from tarazu.allocate.problem import Array, Group

IN_STEP = 8
"""Stripes from a file's beginning on in which files that began together are still taken to be in step."""
MAX_BEGINNINGS = 50_000
"""Members × stripes up to which each list's beginning is chosen (0.1 s); beyond, each is one stripe after the last."""


def arrange(draft: Draft) -> None:
    """Spread first stripes."""
    problem = draft.problem
    rank = (ring(problem.oss) - draft.turn) % len(problem.osts)
    for group in problem.groups:
        if group.osts.shape[1] > 1 and not np.ptp(group.weights, axis=1).any():
            _spread_first(group, problem.waves, rank)


def _spread_first(group: Group, waves: Array, rank: Array) -> None:
    """From server to server; each list begins where, at its first stripes, fewest files of its wave write meanwhile:
    one that writes stripe after stripe waits for those that are on the same OST, and goes on beside them.
    """
    members, stripes = group.osts.shape
    columns = np.arange(stripes)
    lists = np.take_along_axis(group.osts, np.argsort(rank[group.osts], axis=1, kind="stable"), axis=1)
    begins = np.arange(members) % stripes
    if members * stripes <= MAX_BEGINNINGS:
        looked_at = columns[:IN_STEP]
        turns = (columns[:, None] + looked_at) % stripes
        firsts = np.zeros(len(rank), np.int64)
        meets = np.zeros((len(looked_at), len(rank)), np.int64)
        wave = -1
        for member in np.argsort(waves[group.requests], kind="stable").tolist():
            if waves[group.requests[member]] != wave:
                wave = waves[group.requests[member]]
                meets[:] = 0
            osts = lists[member][turns]
            met = meets[looked_at, osts].sum(axis=1)
            begin = int(np.lexsort(((columns - member) % stripes, firsts[lists[member]], met))[0])
            begins[member] = begin
            firsts[lists[member][begin]] += 1
            meets[looked_at, osts[begin]] += 1
    group.osts = np.take_along_axis(lists, (columns + begins[:, None]) % stripes, axis=1)


def relabel(draft: Draft) -> None:
    """Exchange OSTs that are alike in `draft`, an extent that is placed, by what lies on each already (`draft.before`).

    Its fullest OSTs go where the other extents put least. The exchange changes nothing for the extent itself, its waves
    or servers; all extents together come out even.
    """
    levels, oss = draft.levels, draft.problem.oss
    if draft.before is None or not draft.before.any() or not levels.equal or not draft.problem.eligible.all():
        return
    there = draft.before * levels.slope + levels.lean
    place = draft.rank()
    sizes = np.bincount(oss)
    by_server = np.argsort(oss, kind="stable")
    first = np.cumsum(sizes) - sizes
    servers = np.arange(len(sizes))
    target = servers.copy()
    for size in np.unique(sizes):
        alike = servers[sizes == size]
        ours = np.bincount(oss, draft.placed)[alike]
        theirs = np.bincount(oss, there)[alike]
        target[alike[np.argsort(-ours, kind="stable")]] = alike[np.argsort(theirs, kind="stable")]
    new = np.empty(len(oss), np.int64)
    for server, to in enumerate(target.tolist()):
        here = by_server[first[server] : first[server] + sizes[server]]
        away = by_server[first[to] : first[to] + sizes[to]]
        fullest = here[np.argsort(-draft.placed[here], kind="stable")]
        new[fullest] = away[np.lexsort((place[away], np.round(there[away], 6)))]
    moved = np.empty_like(draft.placed)
    moved[new] = draft.placed
    highest = float(levels.at(draft.placed).max())
    if (moved > levels.room).any() or levels.at(moved).max() > highest * (1 + EVEN):
        return  # fuller ones are not like the others
    draft.placed = moved
    for group in draft.problem.groups:
        group.osts = new[group.osts]
