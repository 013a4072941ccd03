"""The second exchange pass: bytes per OST of the servers are evened out without raising the highest OST."""

from __future__ import annotations

import numpy as np

from tarazu.allocate.improve import OPTIONS, State, best, free_pair, near, owners, with_state
from tarazu.allocate.levels import Levels
from tarazu.allocate.problem import Array, Problem

SERVER_PARTNERS = 8
SERVER_OSTS = 8
"""OSTs of each server that are tried, the highest of one with the lowest of the other."""
SERVER_EFFORT = 16
"""What a try of two servers counts, in steps."""
SERVER_TOLERANCE = 2e-3
"""A server this far above the mean is even enough."""
STUCK_SERVERS = 3
"""Servers from the fullest on that may fail to find an exchange before the pass ends."""
SERVER_CELLS = 30_000
"""Pairs of object sizes looked at in one step: fewer of the OSTs where they hold many sizes."""


def spread(problem: Problem, level: Levels, placed: Array, limit: int) -> Array:
    """Even out the servers without raising the highest OST; as `exchange`."""
    return with_state(problem, level, placed, limit, _lower_servers)


def _lower_servers(state: State, limit: int) -> None:
    """Even out bytes per OST of the servers by exchanges that do not raise the highest OST."""
    problem = state.problem
    servers = len(problem.oss_names)
    size = np.bincount(problem.oss, minlength=servers)
    top = float(state.level.max()) + 1e-9
    enough = float(state.x.sum()) / len(state.x) * (1 + SERVER_TOLERANCE)
    stuck = 0
    while limit > 0 and stuck < min(STUCK_SERVERS, servers - 1):
        filled = np.bincount(problem.oss, state.x, servers) / size
        order = np.argsort(-filled, kind="stable").tolist()
        high = order[stuck]
        if filled[high] <= enough:
            return
        lower = [low for low in reversed(order) if filled[low] < filled[high]][:SERVER_PARTNERS]
        moved = False
        while lower and not moved:
            low = lower.pop(0)
            limit -= SERVER_EFFORT
            moved = _between(state, high, low, filled, size, top)
        stuck = 0 if moved else stuck + 1


def _between(state: State, high: int, low: int, filled: Array, size: Array, top: float) -> bool:
    """The exchange from server `high` to server `low` that comes nearest to evening out the two."""
    gap = float(filled[high] - filled[low])
    most = gap * float(size[low]) * (1 - 1e-9)
    ideal = gap / (1 / float(size[high]) + 1 / float(size[low]))
    oss = state.problem.oss
    sources = np.flatnonzero(oss == high)
    targets = np.flatnonzero(oss == low)
    sources = sources[np.argsort(-state.level[sources], kind="stable")][:SERVER_OSTS].tolist()
    targets = targets[np.argsort(state.level[targets], kind="stable")][:SERVER_OSTS].tolist()
    for a, b, weight, other in _changes(state, sources, targets, most, ideal, top):
        if weight < 0:
            state.swap_all(a, b)
            return True
        pair = free_pair(state, a, b, state.objects(a)[weight], state.objects(b).get(other))
        if pair is not None:
            state.carry_out(pair, b)
            return True
    return False


def _changes(
    state: State, sources: list[int], targets: list[int], most: float, ideal: float, top: float
) -> list[tuple[int, int, int, int]]:
    """(source, target, our size, their size or 0) of less than `most` bytes, targets not above `top` then:
    nearest to `ideal` first. Size -1 stands for all that the two OSTs hold.
    """
    found: list[tuple[float, int, int, int, int]] = []
    ours = [state.sizes(a)[1:] for a in sources]
    theirs = [state.sizes(b) for b in targets]
    while len(ours) + len(theirs) > 2 and _cells(ours, theirs) > SERVER_CELLS:
        ours, theirs = ours[: (len(ours) + 1) // 2], theirs[: (len(theirs) + 1) // 2]
    sources, targets = sources[: len(ours)], targets[: len(theirs)]
    if _cells(ours, theirs) <= SERVER_CELLS:
        source, target = owners(sources, ours), owners(targets, theirs)
        weight, other = np.concatenate(ours), np.concatenate(theirs)
        change = weight[:, None] - other
        x = state.x[target] + change
        off = np.abs(change - ideal)
        off[(change <= 0) | (change >= most) | (x > state.levels.room[target])] = np.inf
        v = state.levels
        reached = np.maximum(v.base[target] + v.slope[target] * x, v.base2[target] + v.slope2[target] * x)
        off[reached > top] = np.inf
        for row, column in best(off, np.inf):
            a, b = int(source[row]), int(target[column])
            found.append((float(off[row, column]), a, b, int(weight[row]), int(other[column])))
    else:
        for a in sources:
            for b in targets:
                found += _changes_of(state, a, b, most, ideal, top)
    for a in sources:
        for b in targets:
            whole = float(state.x[a] - state.x[b])
            if 0 < whole < most and state.alike(a, b):
                found.append((abs(whole - ideal), a, b, -1, -1))
    return [option[1:] for option in sorted(found)[:OPTIONS]]


def _cells(ours: list[Array], theirs: list[Array]) -> int:
    return sum(map(len, ours)) * sum(map(len, theirs))


def _changes_of(
    state: State, a: int, b: int, most: float, ideal: float, top: float
) -> list[tuple[float, int, int, int, int]]:
    """As `_changes`, of two OSTs that hold very many sizes: (distance from ideal, a, b, sizes)."""
    room = float(state.levels.room[b] - state.x[b])
    found = []
    for change, weight, other in near(state.objects(a), state.objects(b), ideal):
        if change < min(most, room + 1) and state.level_at(b, float(state.x[b]) + change) <= top:
            found.append((abs(change - ideal), a, b, weight, other))
    return found
