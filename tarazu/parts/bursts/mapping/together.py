"""The mapping that knows: nodes that burst together get different I/O nodes, and few nodes are moved.

What is minimised is how concentrated the history's intervals are: the mean of Σ share² of the I/O nodes, over the
least that the interval's nodes allow. Some nodes at a time are taken off their I/O nodes, and dealt anew at the lowest
cost that leaves each I/O node its number of nodes (min-cost flow, `flow`); a deal that does not lower the sum is taken
back. Beside the intervals as they were stand others, shifted by whole cabinets: the next jobs run elsewhere, beginning
in cabinets as the last ones.

First it is tried on the last third of the history what comes of the first one; the third between them is left out, for
jobs that run across a line are on both sides of it. Where that is no better than round robin, round robin it is, which
knows all there is to know of jobs that run on neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

from tarazu.errors import InsufficientResources
from tarazu.flows import has_ortools, min_cost_flow
from tarazu.parts.bursts.mapping.history import TrafficHistory
from tarazu.parts.bursts.mapping.simple import round_robin
from tarazu.parts.bursts.measures.measures import how_many
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers
from tarazu.units import counted

MAX_ROWS = 1_000_000
"""Of the history, with its shifted copies."""
BLOCKS = 256, 64, 16, 4
"""Nodes that are dealt at once, in each pass over all: costs hold for one change at a time, so that few are dealt
better than many."""

FEW, AGAIN = 1_000, 8
"""Where `moves` allows so few nodes, the last pass is done so many times more, as long as it helps."""
QUIET = 0.25
"""Of the nodes that may be moved, where those that should be are on few I/O nodes."""

Progress = Callable[[float], None]


LARGEST = 1_000_000
"""Costs are made whole numbers up to this."""


def cheapest(costs: npt.NDArray[np.float64], room: npt.NDArray[np.int64]) -> Numbers:
    """(nodes,): for each node its I/O node, at the lowest sum of `costs` (nodes, I/O nodes), none over its `room`.

    Raises InsufficientResources when the rooms together are too small.
    """
    nodes, io_nodes = costs.shape
    if int(room.sum()) < nodes:
        raise InsufficientResources(
            f"expected room for {counted(nodes, 'node')}, found room for {int(room.sum())}"
        )
    open_to = np.flatnonzero(room > 0)
    among = costs[:, open_to]
    low, high = (float(among.min()), float(among.max())) if among.size else (0.0, 0.0)
    whole = np.rint((among - low) * (LARGEST / (high - low) if high > low else 0.0)).astype(np.int64)
    sink, pairs = nodes + io_nodes, nodes * len(open_to)
    heads = nodes + np.tile(open_to, nodes)
    flows = min_cost_flow(
        np.concatenate([np.repeat(np.arange(nodes), len(open_to)), nodes + open_to]),
        np.concatenate([heads, np.full(len(open_to), sink)]),
        np.concatenate([np.ones(pairs, np.int64), room[open_to]]),
        np.concatenate([whole.ravel(), np.zeros(len(open_to), np.int64)]),
        np.array([1] * nodes + [0] * io_nodes + [-nodes], np.int64),
        "ortools" if has_ortools() else "networkx",
    )
    mapping: Numbers = (heads[flows[:pairs] > 0] - nodes).astype(np.int32)
    return mapping


def relabelled(mapping: Numbers, kept: npt.NDArray[np.float64]) -> Numbers:
    """The same groups of nodes, each on the I/O node where most is kept: `kept` (groups, I/O nodes) is to be large."""
    of_group = cheapest(-kept, np.ones(kept.shape[1], np.int64))
    return of_group[mapping]


def overlap(mapping: Numbers, present: Numbers, io_nodes: int) -> npt.NDArray[np.float64]:
    """(groups, I/O nodes): nodes of a group that its I/O node serves at present."""
    counts = np.zeros((io_nodes, io_nodes))
    known = present >= 0
    np.add.at(counts, (mapping[known], present[known]), 1.0)
    return counts


class MappingOptions(msgspec.Struct, frozen=True):
    shifted: int = 4
    """Copies of each interval, elsewhere on the machine."""
    moves: int | None = None
    """Nodes at most that may get another I/O node than they have, the busiest on crowded ones; None: all."""
    quiet: float = 0.0
    """Share of `moves` for nodes that are quiet, with which busy ones change places."""
    price: float = 1e-3
    """Of a node that leaves the I/O node it has, in parts of its mean share of the concentration."""
    longest_s: float = 60.0
    """After so long no further deal is begun: on a busy machine. Otherwise `MAX_ROWS` bounds the work."""
    worth: float = 0.05
    """By this share the busiest tenth of the I/O nodes has to carry less of the last third than by round robin."""
    seed: int = 1


class _Bursts:
    """The history by node, and in `load` what lies on each I/O node in each interval."""

    def __init__(
        self, history: TrafficHistory, weight: npt.NDArray[np.float64], mapping: Numbers, io_nodes: int
    ) -> None:
        order = np.argsort(history.node, kind="stable")
        self.interval = history.interval[order]
        self.share = history.share[order].astype(np.float64)
        self.begin = np.searchsorted(history.node[order], np.arange(history.nodes + 1))
        self.weight = weight
        self.load = np.zeros((history.intervals, io_nodes))
        self.mapping = mapping.copy()
        np.add.at(self.load, (self.interval, mapping[history.node[order]]), self.share)

    def rows(self, nodes: Numbers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(rows of these nodes, which of the nodes each is of)."""
        counts = self.begin[nodes + 1] - self.begin[nodes]
        which = np.repeat(np.arange(len(nodes)), counts)
        first = np.cumsum(counts) - counts
        return self.begin[nodes][which] + np.arange(len(which)) - first[which], which

    def deal(self, nodes: Numbers, present: Numbers, price: float) -> bool:
        """Deal these nodes anew; False when nothing was better. `price`: of a node that leaves its present one."""
        rows, which = self.rows(nodes)
        interval, share = self.interval[rows], self.share[rows]
        had = self.mapping[nodes]
        touched = np.unique(interval)
        before = self._concentration(touched)
        np.subtract.at(self.load, (interval, had[which]), share)
        costs = np.zeros((len(nodes), self.load.shape[1]))
        scaled = 2.0 * share * self.weight[interval]
        # Rows of one node lie together, so that sums over them need no scattering.
        busy = np.flatnonzero(np.diff(which, prepend=-1))
        if len(busy):
            costs[which[busy]] = np.add.reduceat(self.load[interval] * scaled[:, None], busy, axis=0)
        wants = present[nodes]
        stay = np.flatnonzero(wants >= 0)
        costs[stay, wants[stay]] -= price
        dealt = cheapest(costs, np.bincount(had, minlength=self.load.shape[1]).astype(np.int64))
        np.add.at(self.load, (interval, dealt[which]), share)
        stayed = np.count_nonzero(dealt == wants) - np.count_nonzero(had == wants)
        if self._concentration(touched) - price * stayed < before - 1e-12:
            self.mapping[nodes] = dealt
            return True
        np.subtract.at(self.load, (interval, dealt[which]), share)
        np.add.at(self.load, (interval, had[which]), share)
        return False

    def concentration(self) -> float:
        """Σ weight × Σ share²."""
        return float(self.weight @ np.square(self.load).sum(axis=1))

    def _concentration(self, intervals: Numbers) -> float:
        return float(self.weight[intervals] @ np.square(self.load[intervals]).sum(axis=1))


def together(
    history: TrafficHistory,
    machine: Machine,
    present: Numbers | None = None,
    options: MappingOptions | None = None,
    progress: Progress = lambda share: None,
    start: Numbers | None = None,
) -> Numbers:
    """(nodes,): a mapping onto `machine.io_nodes`, each serving as many nodes as by round robin; with
    `options.moves`, as many as at present.

    `present`: (nodes,), -1 for a node without one; the machine's `served_by` where it is left out. `start`: what to
    better, and what comes of it where nothing is learned; round robin where it is left out.
    """
    options = options or MappingOptions()
    count = len(machine.io_nodes)
    present = machine.served_by if present is None else present
    start = round_robin(len(machine.nodes), count) if start is None else start
    until = time.monotonic() + options.longest_s
    if options.moves is not None:
        start = np.where(present >= 0, present, start).astype(np.int32)
        if not history.intervals or options.moves < 2:
            return start
        return dealt(history, machine, present, start, options, until, progress)
    start = relabelled(start, overlap(start, present, count))
    third = history.intervals // 3
    if not third or count == 1:
        return start
    halfway = until - options.longest_s / 2
    tried = dealt(
        history.part(0, third), machine, present, start, options, halfway, lambda x: progress(x / 2)
    )
    last = history.part(2 * third, history.intervals)
    if busiest(last, tried, count) > (1 - options.worth) * busiest(last, start, count):
        return start
    mapping = dealt(history, machine, present, start, options, until, lambda x: progress(0.5 + x / 2))
    return relabelled(mapping, overlap(mapping, present, count))


def concentration(history: TrafficHistory, mapping: Numbers, io_nodes: int) -> float:
    """Mean of Σ share² of the I/O nodes over the least that the interval's nodes allow; 1 where there is nothing."""
    if not history.intervals:
        return 1.0
    return _Bursts(history, _weight(history, io_nodes), mapping, io_nodes).concentration()


def busiest(history: TrafficHistory, mapping: Numbers, io_nodes: int) -> float:
    """Share of the busiest tenth of the I/O nodes, mean of the intervals; 1 where there is nothing."""
    if not history.intervals:
        return 1.0
    load = _Bursts(history, _weight(history, io_nodes), mapping, io_nodes).load
    most = how_many(io_nodes, 0.1)
    return float(np.partition(load, io_nodes - most, axis=1)[:, io_nodes - most :].sum(axis=1).mean())


def dealt(
    history: TrafficHistory,
    machine: Machine,
    present: Numbers,
    start: Numbers,
    options: MappingOptions,
    until: float | None = None,
    progress: Progress = lambda share: None,
) -> Numbers:
    """From `start`, with the numbers of nodes that each I/O node has there; nodes would rather keep those of `present`.

    `until`: on the monotonic clock.
    """
    until = time.monotonic() + options.longest_s if until is None else until
    count = len(machine.io_nodes)
    bursts = elsewhere(history, machine, options.shifted, options.seed)
    state = _Bursts(bursts, _weight(bursts, count), start, count)
    movable = np.arange(len(machine.nodes), dtype=np.int32)
    if options.moves is not None:
        movable = _movable(state, len(machine.nodes), min(options.moves, len(machine.nodes)), options.quiet)
    price = options.price * state.concentration() / len(machine.nodes)
    rng = np.random.default_rng(options.seed)
    again = AGAIN if options.moves is not None and len(movable) <= FEW else 0
    sizes = BLOCKS + BLOCKS[-1:] * again
    for number, size in enumerate(sizes):
        blocks = max(1, round(len(movable) / size))
        better = 0
        shuffled = movable[rng.permutation(len(movable))]
        for at, block in enumerate(np.array_split(shuffled, blocks)):
            if time.monotonic() > until:
                return state.mapping
            better += state.deal(np.sort(block), present, price)
            progress((number + (at + 1) / blocks) / len(sizes))
        if number >= len(BLOCKS) and not better:
            break
    return state.mapping


def elsewhere(history: TrafficHistory, machine: Machine, copies: int, seed: int) -> TrafficHistory:
    """With so many copies of each interval, shifted by whole cabinets."""
    nodes = history.nodes
    copies = min(copies, max(0, MAX_ROWS // max(1, len(history.node)) - 1))
    steps = np.diff(np.flatnonzero(np.diff(machine.cabinet, prepend=-1)))
    step = int(np.bincount(steps).argmax()) if len(steps) else 1
    rng = np.random.default_rng(seed)
    parts = [history.node]
    for _ in range(copies):
        shift = step * rng.integers(1, max(2, -(-nodes // step)), history.intervals)
        parts.append(((history.node + shift[history.interval]) % nodes).astype(np.int32))
    interval = np.concatenate([history.interval + n * history.intervals for n in range(1 + copies)])
    return TrafficHistory(
        nodes,
        history.intervals * (1 + copies),
        interval.astype(np.int32),
        np.concatenate(parts),
        np.tile(history.share, 1 + copies),
    )


def _weight(history: TrafficHistory, io_nodes: int) -> npt.NDArray[np.float64]:
    """(intervals,): so that an interval of few nodes, which no mapping spreads, does not outweigh the others."""
    alone = np.bincount(
        history.interval, weights=np.square(history.share, dtype=np.float64), minlength=history.intervals
    )
    return 1.0 / (np.maximum(alone, 1.0 / io_nodes) * history.intervals)


def _movable(state: _Bursts, nodes: int, most: int, quiet_share: float) -> Numbers:
    """Those that add most to the concentration, and for a share of them those that add least, of each I/O node as many:
    what leaves a crowded I/O node needs another one's place. Where the former are on few I/O nodes the share is not 0.
    """
    owner = np.repeat(np.arange(nodes), np.diff(state.begin))
    adds = state.weight[state.interval] * state.share * state.load[state.interval, state.mapping[owner]]
    order = np.argsort(-np.bincount(owner, weights=adds, minlength=nodes), kind="stable")
    if 2 * len(np.unique(state.mapping[order[:most]])) < state.load.shape[1]:
        quiet_share = max(QUIET, quiet_share)
    crowded = order[: max(1, most - int(quiet_share * most))]
    quiet = order[len(crowded) :][::-1]
    by_io_node = quiet[np.argsort(state.mapping[quiet], kind="stable")]
    counts = np.bincount(state.mapping[quiet], minlength=state.load.shape[1])
    rank = np.arange(len(quiet)) - np.repeat(np.cumsum(counts) - counts, counts)
    partners = by_io_node[np.argsort(rank, kind="stable")][: most - len(crowded)]
    return np.concatenate([crowded, partners]).astype(np.int32)
