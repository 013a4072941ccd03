"""Even node, even traffic and span (spatially-bursty-io, 6.4): the nodes of an optimizable job, or none chosen.

A job's ranks are in groups, one an I/O node: of equal size, or of equal traffic. Slurm hands out ranks in the order of
the machine's nodes. So where a rank lies can be chosen only by how many nodes of each I/O node the job gets
(`ordered`). The paper regroups ranks at will, which Slurm cannot follow.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np
import numpy.typing as npt

from tarazu.parts.bursts.nodes.slurm_fit import FITS, Flags, Indices
from tarazu.parts.bursts.traffic.machine import Machine

CLOSE = 1e-9
"""Relative: loads that differ by less are the same."""
HALVINGS = 25
"""After so many the busiest group's traffic is known to 3e-8 of all."""


def even(nodes: int, room: Sequence[int]) -> list[int]:
    """Nodes of each group, as equal as `room` (idle nodes of each) allows; the first have one more.

    `nodes` is at most the sum of `room`."""
    sizes = [0] * len(room)
    left = nodes
    by_room = sorted(range(len(room)), key=lambda g: room[g])
    for position, group in enumerate(by_room):
        sizes[group] = min(room[group], left // (len(room) - position))
        left -= sizes[group]
    return _first_have_more(sizes, room)


def _first_have_more(sizes: list[int], room: Sequence[int]) -> list[int]:
    """Groups that differ by one, the larger ones to the front, where there is room."""
    top = max(sizes, default=0)
    large = [g for g, size in enumerate(sizes) if size == top]
    near = [g for g, size in enumerate(sizes) if size in (top - 1, top) and room[g] >= top]
    for group in large:
        sizes[group] = top - 1
    for group in sorted(near)[: len(large)]:
        sizes[group] = top
    return sizes


def ordered(shares: Sequence[float], room: Sequence[int]) -> list[int]:
    """Ranks of each group, consecutive ones: the least possible traffic in the busiest group, then as equal as that
    leaves. `shares`: traffic of each rank, >= 0; their number is at most the sum of `room`."""
    sums = [0.0, *np.cumsum(np.asarray(shares, dtype=np.float64)).tolist()]
    ranks, groups = len(shares), len(room)
    low, high = max([sums[-1] / max(1, groups), *shares], default=0.0), sums[-1]
    if _ends(sums, room, low)[-1] == ranks:
        high = low
    for _ in range(HALVINGS if high > low else 0):
        middle = (low + high) / 2
        if _ends(sums, room, middle)[-1] == ranks:
            high = middle
        else:
            low = middle
    most = _ends(sums, room, high)
    least = _starts(sums, room, high)
    sizes, start = [], 0
    for group in range(groups):
        target = sums[start] + (sums[-1] - sums[start]) / (groups - group)
        end = bisect.bisect_left(sums, target, start, ranks)
        if end > start + 1 and target - sums[end - 1] < sums[end] - target:
            end -= 1
        reach = min(most[group], start + room[group], _reach(sums, sums[start], high))
        end = max(least[group + 1], min(end, reach))
        sizes.append(end - start)
        start = end
    return sizes


def _reach(sums: list[float], before: float, load: float) -> int:
    return bisect.bisect_right(sums, before + load * (1 + CLOSE)) - 1


def _ends(sums: list[float], room: Sequence[int], load: float) -> list[int]:
    """Where each group ends at the latest, if none carries more than `load`."""
    ends, at = [], 0
    for free in room:
        at = min(at + free, _reach(sums, sums[at], load))
        ends.append(at)
    return ends or [0]


def _starts(sums: list[float], room: Sequence[int], load: float) -> list[int]:
    """Where each group (and the end behind the last) starts at the earliest, so that it and those behind it hold
    the rest."""
    at = len(sums) - 1
    starts = [at]
    for free in reversed(room):
        start = bisect.bisect_left(sums, sums[at] - load * (1 + CLOSE))
        at = max(at - free, start)
        starts.append(at)
    return starts[::-1]


Floats = npt.NDArray[np.float64]

LEAST, HALF, MOST = Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)

PER_IO_NODE = 8
"""4 to 8 compute nodes that do much I/O overload an I/O node (spatially-bursty-io, 6.4.3)."""


class Wish(msgspec.Struct, frozen=True):
    """Of a job that is optimizable (spatially-bursty-io, 6.2); others are left to Slurm without asking."""

    nodes: int
    shares: tuple[float, ...] | None = None
    """(nodes,): the traffic expected of each node, in the order of ranks, in any unit; None: its jobs differ too much
    (divergent), so that the number of nodes stands for their traffic."""
    next_size: int | None = None
    """Nodes of the next optimizable job in the queue; None: there is none."""


class SelectionOptions(msgspec.Struct, frozen=True):
    per_io_node: int = PER_IO_NODE
    """As many of the job's nodes an I/O node at least, on average."""
    fit: str = "tree"
    """Which of Slurm's own choices is the one to better: `tree` (topology/tree) or `consecutive`."""


DEFAULT = SelectionOptions()


class NodeChoice(msgspec.Struct, frozen=True):
    nodes: tuple[int, ...]
    """Indices of the machine's nodes in the order of ranks: ascending."""
    io_nodes: int
    """As many serve them."""
    strategy: str
    """`even node` or `even traffic`."""
    why: str


class Left(msgspec.Struct, frozen=True):
    """To Slurm's own choice."""

    why: str


def kept(nodes: int, next_size: int | None) -> Fraction:
    """Part of the I/O nodes with idle nodes that upcoming jobs are to find: 2/3 when the next optimizable job has
    more than twice as many nodes as this one, 1/3 when less than half as many, or when there is none; else 1/2."""
    if next_size is None or 2 * next_size < nodes:
        return LEAST
    return MOST if next_size > 2 * nodes else HALF


def span(
    nodes: int, diversity: int, by_default: int, least: int, next_size: int | None, per_io_node: int
) -> int:
    """I/O nodes for the job; not more than `by_default`: leave it to Slurm.

    `diversity`: I/O nodes that have idle nodes; `by_default`: that Slurm's own choice has; `least`: that hold the job.
    """
    spare = int(diversity * (1 - kept(nodes, next_size)))
    # too few to keep some: this job first, with what makes it better off at all
    most = min(diversity, nodes // per_io_node, spare if spare > by_default else by_default + 1)
    return max(most, least)


def choose(
    machine: Machine, idle: Flags, wish: Wish, options: SelectionOptions = DEFAULT, load: Floats | None = None
) -> NodeChoice | Left:
    """The job's nodes, or why it is better left to Slurm.

    `idle`: (nodes of the machine,), those that Slurm could give to this job. `load`: (I/O nodes,), traffic that is
    expected of jobs already running there, in any unit; I/O nodes that have less come first. None: they are alike."""
    own = FITS[options.fit](machine, idle, wish.nodes)
    if own is None:
        return Left("not so many nodes are idle")
    served = machine.served_by
    known = np.flatnonzero(idle & (served >= 0))
    room = np.bincount(served[known], minlength=len(machine.io_nodes))
    if int(room.sum()) < wish.nodes:
        return Left("of too many idle nodes the I/O node is not known")
    by_default = len(np.unique(served[own]))
    diversity = int(np.count_nonzero(room))
    least = int(np.searchsorted(np.cumsum(np.sort(room)[::-1]), wish.nodes)) + 1
    count = span(wish.nodes, diversity, by_default, least, wish.next_size, options.per_io_node)
    if count <= by_default:
        return Left(f"Slurm's own choice has {by_default} I/O nodes, no fewer than the {count} to be had")
    groups = _groups(served, known, _pick(room, count, wish.nodes, load))
    strategy, nodes = _place(machine, groups, wish)
    used = len(np.unique(served[nodes]))
    if used <= by_default:
        return Left(f"{used} I/O nodes would be used, Slurm's own choice has {by_default}")
    if load is not None and _worst(machine, nodes, wish, load) >= _worst(machine, own, wish, load):
        return Left("the busiest of its I/O nodes would be no less busy than by Slurm's own choice")
    return NodeChoice(
        tuple(nodes.tolist()),
        used,
        strategy,
        f"{used} I/O nodes instead of {by_default}, of {diversity} with idle nodes",
    )


def _worst(machine: Machine, nodes: Indices, wish: Wish, load: Floats) -> float:
    """What the busiest of its I/O nodes carries, for all: the job waits for that one."""
    part = loads(machine, nodes, wish.shares)
    return float((load + part)[part > 0].max())


def loads(
    machine: Machine, nodes: Sequence[int] | Indices, shares: Sequence[float] | Floats | None
) -> Floats:
    """(I/O nodes,): the part of a job's traffic that each carries, with ranks on `nodes` in their order."""
    share = np.ones(len(nodes)) if shares is None else np.asarray(shares, dtype=np.float64)
    total = float(share.sum())
    at = machine.served_by[np.asarray(nodes, dtype=np.int64)]
    known = at >= 0
    return np.bincount(at[known], share[known], len(machine.io_nodes)) / (total or 1.0)


def _pick(room: npt.NDArray[np.int64], count: int, nodes: int, load: Floats | None) -> list[int]:
    """`count` I/O nodes that together hold the job: first those with room for an equal group, of those the ones
    with the least traffic, of those the ones with the least room (so that large holes stay whole)."""
    equal = -(-nodes // count)
    traffic = np.zeros(len(room)) if load is None else load
    fits = room >= equal
    order = np.lexsort((np.where(fits, room, -room), np.where(fits, traffic, 0.0), ~fits))
    picked = order[:count].tolist()
    short = nodes - int(room[picked].sum())
    for large in np.argsort(-room, kind="stable").tolist():
        if short <= 0:
            break
        if (
            large not in picked
        ):  # only where not all have room for an equal group: the largest instead of the smallest
            small = min(picked, key=lambda i: room[i])
            picked[picked.index(small)] = large
            short -= int(room[large] - room[small])
    return sorted(picked)


def _groups(served: npt.NDArray[np.int32], known: Indices, picked: list[int]) -> list[Indices]:
    """Idle nodes of each I/O node that is to serve the job, ascending; in the order in which they come."""
    wanted = known[np.isin(served[known], picked)]
    by_io_node = wanted[np.argsort(served[wanted], kind="stable")]
    ends = np.cumsum(np.bincount(served[wanted])[picked])
    return sorted(np.split(by_io_node, ends[:-1]), key=lambda group: int(group[0]))


def _place(machine: Machine, groups: list[Indices], wish: Wish) -> tuple[str, Indices]:
    """The strategy and its nodes, in the order of ranks."""
    room = [len(group) for group in groups]
    by_number = "even node", _first(groups, even(wish.nodes, room))
    shares = wish.shares
    if shares is None or not any(shares):
        return by_number
    by_traffic = "even traffic", _first(groups, ordered(shares, room))
    # where I/O nodes serve nodes that lie between one another's, ranks come out in another order than planned
    weights = np.array(shares)
    return min(by_traffic, by_number, key=lambda way: float(loads(machine, way[1], weights).max()))


def _first(groups: list[Indices], sizes: list[int]) -> Indices:
    """So many of each group, ascending."""
    return np.sort(np.concatenate([group[:size] for group, size in zip(groups, sizes, strict=True)]))
