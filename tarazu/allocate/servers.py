"""Fourth step: bytes per OST of the servers are evened out by exchanges that do not raise the highest OST."""

from __future__ import annotations

import numpy as np

from tarazu.allocate.draft import Draft
from tarazu.allocate.holdings import Holdings, best, owners
from tarazu.allocate.problem import Array

SERVER_PARTNERS = 3
SERVER_OSTS = 8
"""OSTs of each server that are tried, the highest of one with the lowest of the other."""
SERVER_TRIES = 125
"""Pairs of servers that are tried in all."""
SERVER_TOLERANCE = 2e-3
"""A server this far above the mean is even enough, or as far as an OST is."""
OPTIONS = 16
"""Exchanges between two servers, best first, that are checked for distinct OSTs."""
SERVER_CELLS = 30_000
"""Pairs of object sizes looked at in one step: fewer of the OSTs where they hold many sizes."""


def even_out(draft: Draft) -> None:
    """Even out bytes per OST of the servers by exchanges that do not raise the highest OST."""
    if draft.problem.groups:
        held = Holdings(draft)
        _lower(held)
        held.store()


def _lower(held: Holdings) -> None:
    problem = held.draft.problem
    left = SERVER_TRIES
    servers = len(problem.oss_names)
    size = np.bincount(problem.oss, minlength=servers)
    # Others' bytes on an OST where none of ours lie hold up nobody.
    top = float(held.level[held.x > 0].max()) + 1e-9
    tolerance = max(SERVER_TOLERANCE, held.draft.enough)
    enough = float((held.x + held.draft.lately).sum()) / len(held.x) * (1 + tolerance)
    rank = held.draft.rank()
    moved = servers > 1
    while left > 0 and moved and not held.draft.due:
        filled = np.bincount(problem.oss, held.x + held.draft.lately, servers) / size
        order = np.argsort(-filled, kind="stable").tolist()
        high = order[0]
        if filled[high] <= enough:
            return
        lower = [low for low in reversed(order) if filled[low] < filled[high]][:SERVER_PARTNERS]
        moved = False
        while lower and not moved:
            low = lower.pop(0)
            left -= 1
            moved = _between(held, high, low, filled, size, top, rank)


def _between(
    held: Holdings, high: int, low: int, filled: Array, size: Array, top: float, rank: Array
) -> bool:
    """The exchange from server `high` to server `low` that comes nearest to evening out the two."""
    gap = float(filled[high] - filled[low])
    most = gap * float(size[low]) * (1 - 1e-9)
    ideal = gap / (1 / float(size[high]) + 1 / float(size[low]))
    oss = held.draft.problem.oss
    sources = np.flatnonzero(oss == high)
    targets = np.flatnonzero(oss == low)
    sources = sources[np.lexsort((-rank[sources], -held.level[sources]))][:SERVER_OSTS].tolist()
    targets = targets[np.lexsort((rank[targets], held.level[targets]))][:SERVER_OSTS].tolist()
    for a, b, weight, other in _changes(held, sources, targets, most, ideal, top, rank):
        if weight < 0:
            held.swap_all(a, b)
            return True
        if held.exchange(a, b, weight, other):
            return True
    return False


def _changes(
    held: Holdings,
    sources: list[int],
    targets: list[int],
    most: float,
    ideal: float,
    top: float,
    rank: Array,
) -> list[tuple[int, int, int, int]]:
    """(source, target, our size, their size or 0) of less than `most` bytes, targets not above `top` then:
    nearest to `ideal` first, among those the OST that comes first. Size -1 stands for all that the two OSTs hold.
    """
    options: list[tuple[float, int, int, int, int, int]] = []
    ours = [held.sizes(a)[1:] for a in sources]
    theirs = [held.sizes(b) for b in targets]
    while len(ours) + len(theirs) > 2 and sum(map(len, ours)) * sum(map(len, theirs)) > SERVER_CELLS:
        ours, theirs = ours[: (len(ours) + 1) // 2], theirs[: (len(theirs) + 1) // 2]
    sources, targets = sources[: len(ours)], targets[: len(theirs)]
    source, target = owners(sources, ours), owners(targets, theirs)
    weight, other = np.concatenate(ours), np.concatenate(theirs)
    change = weight[:, None] - other
    x = held.x[target] + change
    off = np.abs(change - ideal)
    off[(change <= 0) | (change >= most) | (x > held.levels.room[target])] = np.inf
    off[held.levels.at(x, target) > top] = np.inf
    for row, column in best(off, np.inf):
        a, b = int(source[row]), int(target[column])
        options.append((float(off[row, column]), int(rank[b]), a, b, int(weight[row]), int(other[column])))
    whole = held.x[sources][:, None] - held.x[targets]
    for row, column in np.argwhere((whole > 0) & (whole < most) & held.alike(sources, targets)).tolist():
        a, b = sources[row], targets[column]
        options.append((abs(float(whole[row, column]) - ideal), int(rank[b]), a, b, -1, -1))
    return [option[2:] for option in sorted(options)[:OPTIONS]]
