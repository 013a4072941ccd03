"""Last steps, which change no bytes per OST but by exchange of like ones: who gets which list, which OST is which."""

from __future__ import annotations

import numpy as np

from tarazu.allocate.draft import Draft, ring
from tarazu.allocate.marginal_cost import EVEN
from tarazu.allocate.problem import Array, Group

MATCHED_MEMBERS = 512
"""Up to so many members every list is compared with every file; beyond, whole turns of the lists are."""
TURNS = 16
MAX_CELLS = 20_000_000
"""Files × OSTs up to which sharing between the components of a file is looked at."""
IN_STEP = 8
"""Stripes from a file's beginning on in which files that began together are still taken to be in step."""
MAX_BEGINNINGS = 50_000
"""Members × stripes up to which each list's beginning is chosen (0.1 s); beyond, each is one stripe after the last."""


def arrange(draft: Draft) -> None:
    """Keep the components of one file apart where lists can be exchanged for that; spread first stripes."""
    problem = draft.problem
    components = sum(len(g.requests) for g in problem.groups)
    cells = len(problem.requests) * len(problem.osts)
    if components > len(problem.requests) and cells <= MAX_CELLS:
        used = np.zeros((len(problem.requests), len(problem.osts)), bool)
        for group in sorted(problem.groups, key=lambda g: -g.weights.shape[1]):
            if len(group.requests) > 1 and not draft.due:
                if not np.ptp(group.weights, axis=0).any():
                    _separate(group, used)
                _part(group, used)
            used[group.requests[:, None], group.osts] = True
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


def _separate(group: Group, used: Array) -> None:
    """Give each file the list that shares fewest OSTs with its other components."""
    members = len(group.requests)
    if members > MATCHED_MEMBERS:
        files = group.requests[:, None]
        turns = np.unique(np.linspace(0, members - 1, TURNS).astype(np.int64)).tolist()
        shared = [int(used[files, np.roll(group.osts, t, axis=0)].sum()) for t in turns]
        group.osts = np.roll(group.osts, turns[int(np.argmin(shared))], axis=0)
        return
    held = np.zeros((members, used.shape[1]), np.float32)
    held[np.arange(members)[:, None], group.osts] = 1
    shared_with = used[group.requests].astype(np.float32) @ held.T
    group.osts = group.osts[_matching(shared_with)]


def _part(group: Group, used: Array) -> None:
    """Exchange equal objects of two members where one shares an OST and neither would then."""
    if len(group.requests) > MATCHED_MEMBERS:
        return
    osts, files = group.osts, group.requests
    for member, stripe in np.argwhere(used[files[:, None], osts]).tolist():
        ost = int(osts[member, stripe])
        free_here = ~used[files[member], osts] & ~np.isin(osts, osts[member])
        free_there = ~used[files, ost] & ~(osts == ost).any(axis=1)
        equal = group.weights == group.weights[member, stripe]
        places = np.argwhere(free_here & free_there[:, None] & equal)
        if len(places):
            other = tuple(places[0].tolist())
            osts[member, stripe], osts[other] = int(osts[other]), ost


def _matching(cost: Array) -> Array:
    """A row → column matching: cheapest pairs first, then exchanges of two while they help."""
    size = len(cost)
    column = np.full(size, -1, np.int64)
    taken = np.zeros(size, bool)
    rows = np.arange(size)
    for price in np.unique(cost):
        for row in rows.tolist():
            open_to = (cost[row] == price) & ~taken
            candidate = int(np.argmax(open_to))
            if open_to[candidate]:
                column[row] = candidate
                taken[candidate] = True
        rows = np.flatnonzero(column < 0)
    others = cost[:, column]
    """(size, size) cost of each row with each row's column."""
    own = others.diagonal()
    may_help = np.asarray(((own[:, None] + own - others - others.T) > 0).any(axis=1))
    for row in range(size):
        if may_help[row]:
            own = others.diagonal()
            gain = own[row] + own - others[row] - others[:, row]
            other = int(np.argmax(gain))
            if gain[other] > 0:
                pair, swapped = [row, other], [other, row]
                column[pair], others[:, pair] = column[swapped], others[:, swapped]
                own = np.diagonal(others)[:, None]
                may_help |= (own + own[pair, 0] - others[:, pair] - others[pair].T > 0).any(axis=1)
    return column


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
