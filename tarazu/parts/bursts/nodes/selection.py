"""Even node, even traffic and span (spatially-bursty-io, 6.4): the nodes of an optimizable job, or none chosen."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np
import numpy.typing as npt

from tarazu.parts.bursts.nodes import grouping
from tarazu.parts.bursts.nodes.slurm_fit import FITS, Flags, Indices
from tarazu.parts.bursts.traffic.machine import Machine

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
    by_number = "even node", _first(groups, grouping.even(wish.nodes, room))
    shares = wish.shares
    if shares is None or not any(shares):
        return by_number
    by_traffic = "even traffic", _first(groups, grouping.ordered(shares, room))
    # where I/O nodes serve nodes that lie between one another's, ranks come out in another order than planned
    weights = np.array(shares)
    return min(by_traffic, by_number, key=lambda way: float(loads(machine, way[1], weights).max()))


def _first(groups: list[Indices], sizes: list[int]) -> Indices:
    """So many of each group, ascending."""
    return np.sort(np.concatenate([group[:size] for group, size in zip(groups, sizes, strict=True)]))
