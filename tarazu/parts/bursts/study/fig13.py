"""The three microbenchmarks of spatially-bursty-io, figure 13, on the simulator's fluid network.

The figure's values cannot be read, and the paper prints no rate: what is compared are the three settings (table 4), in
which 64 compute nodes and up to 64 I/O nodes take part. Its own machines are known by this much: 8 processes on a node
(7.2), 4 to 8 nodes that do much I/O overload an I/O node (6.4.3), 64 nodes on a leaf router, 2 hops between leaf
routers of a row or column and 4 else (5.2). The rest is assumed (`Parameters`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import simpy

from tarazu.parts.bursts.nodes import grouping
from tarazu.sim.kernel.network import Network

NODES = (1, 2, 4, 8, 16, 32, 64)
"""Compute nodes of an experiment; 64 at most (7.1)."""
GB = 1e9
PER_LEAF = 64
GROUPS, PER_GROUP = 64, 8
"""Reallocation: 512 idle nodes, 8 behind each of 64 I/O nodes (7.1)."""


class Parameters(msgspec.Struct, frozen=True):
    processes: int = 8
    """On a node (7.2)."""
    node_bytes_per_s: float = 1 * GB
    """A node's I/O; assumed, it only sets the scale of time."""
    io_node: float = 6.0
    """An I/O node carries as much as so many nodes: the middle of 4 to 8 (6.4.3)."""
    process_bytes: float = 1 * GB
    """That a process reads or writes (7.2.2; not printed for 7.2.1)."""
    sent_bytes: float = 8 * GB
    """That a process sends to all others (7.2.2)."""
    message_bytes: int = 32
    """7.2.2"""
    latency_s: float = 1.5e-6
    """Of a message between nodes of one leaf router; assumed, as of networks of that time."""
    hop_s: float = 0.1e-6
    """That a further hop adds; assumed."""
    outstanding: int = 8
    """Messages that a process has on their way at once; assumed."""
    uplink: float = 0.25
    """What a leaf router's links to others carry, beside those to its nodes; assumed."""
    link_bytes_per_s: float = 10 * GB
    """Of a node to its leaf router; assumed."""


class Io(msgspec.Struct, frozen=True):
    """Figure 13a, for one number of nodes."""

    nodes: int
    original_s: float
    remapped_s: float
    reallocated_s: float


class Communicating(msgspec.Struct, frozen=True):
    """Figure 13b: seconds of I/O, then of communication."""

    nodes: int
    original: tuple[float, float]
    remapped: tuple[float, float]
    reallocated: tuple[float, float]
    break_even: float
    """Reallocation takes as long as the original where a process sends so many bytes for each that it reads or writes;
    inf: it never takes longer."""


class Uneven(msgspec.Struct, frozen=True):
    """Figure 13c: processes with 1/n to 1 of the I/O, two nodes an I/O node."""

    nodes: int
    io_node: float
    """As `Parameters.io_node`."""
    even_nodes_s: float
    ordered_s: float
    """Even traffic with ranks in the order of the nodes: what Slurm can be told."""
    even_traffic_s: float
    """Even traffic with ranks regrouped freely, as the paper has it."""


def io_s(amounts: Sequence[float], io_node_of: Sequence[int], parameters: Parameters) -> float:
    """Until the last node has moved its bytes: amounts (nodes,), I/O node of each (nodes,)."""
    env = simpy.Environment()
    network = Network(env)
    nodes = [network.link(parameters.node_bytes_per_s) for _ in amounts]
    serving = {
        i: network.link(parameters.io_node * parameters.node_bytes_per_s) for i in sorted(set(io_node_of))
    }
    each = parameters.processes
    flows = [
        network.start([nodes[node], serving[io_node_of[node]]], None, amount / each)
        for node, amount in enumerate(amounts)
        for _ in range(each)
    ]
    network.run(env.all_of(flows))
    return float(env.now)


def communication_s(leaf_of: Sequence[int], sent_bytes: float, parameters: Parameters) -> float:
    """Until each process has sent `sent_bytes` in equal parts to all processes: leaf_of (nodes,), the leaf router of
    each node. What stays on a node is not counted.
    """
    count = len(leaf_of)
    if count < 2:
        return 0.0
    env = simpy.Environment()
    network = Network(env)
    out, into = ([network.link(parameters.link_bytes_per_s) for _ in leaf_of] for _ in range(2))
    up, down = (
        {
            leaf: network.link(parameters.uplink * PER_LEAF * parameters.link_bytes_per_s)
            for leaf in sorted(set(leaf_of))
        }
        for _ in range(2)
    )
    processes = parameters.processes
    pair_bytes = processes * sent_bytes / count
    flows = []
    for a in range(count):
        for b in range(count):
            if a == b:
                continue
            hops = 0 if leaf_of[a] == leaf_of[b] else _hops(leaf_of[a], leaf_of[b])
            latency = parameters.latency_s + hops * parameters.hop_s
            # Messages go round robin to all, so that each destination has its part of those on their way.
            limit = processes * parameters.outstanding * parameters.message_bytes / latency / count
            links = [out[a], into[b]] + ([up[leaf_of[a]], down[leaf_of[b]]] if hops else [])
            flows.append(network.start(links, None, pair_bytes, limit))
    network.run(env.all_of(flows))
    return float(env.now)


COLUMNS = 4
"""Leaf routers of a row: where the eight of the private Slurm server stood is not printed."""


def _hops(a: int, b: int) -> int:
    """Between leaf routers: 2 in a row or column, 4 else (5.2)."""
    return 2 if a // COLUMNS == b // COLUMNS or a % COLUMNS == b % COLUMNS else 4


def _spread(nodes: int) -> list[int]:
    """Leaf routers of so many nodes, one of each group, groups evenly far from one another."""
    return [group * PER_GROUP // PER_LEAF for group in (np.arange(nodes) * (GROUPS // nodes)).tolist()]


def baseline(nodes: int, parameters: Parameters | None = None) -> Io:
    """Figure 13a."""
    parameters = parameters or Parameters()
    amounts = [parameters.processes * parameters.process_bytes] * nodes
    one, many = io_s(amounts, [0] * nodes, parameters), io_s(amounts, range(nodes), parameters)
    return Io(nodes, one, many, many)


def communicating(nodes: int, parameters: Parameters | None = None) -> Communicating:
    """Figure 13b."""
    parameters = parameters or Parameters()
    io = baseline(nodes, parameters)
    near = communication_s([0] * nodes, parameters.sent_bytes, parameters)
    far = communication_s(_spread(nodes), parameters.sent_bytes, parameters)
    gain = io.original_s - io.reallocated_s
    more = (far - near) / parameters.sent_bytes
    return Communicating(
        nodes,
        (io.original_s, near),
        (io.remapped_s, near),
        (io.reallocated_s, far),
        gain / more / parameters.process_bytes if more > 0 else float("inf"),
    )


def uneven(nodes: int, parameters: Parameters | None = None) -> Uneven:
    """Figure 13c: nodes / 2 I/O nodes."""
    parameters = parameters or Parameters()
    processes = parameters.processes
    amounts = (np.arange(nodes * processes) + 1) / (nodes * processes) * parameters.process_bytes
    each: list[float] = amounts.reshape(nodes, processes).sum(1).tolist()
    room = [PER_GROUP] * (nodes // 2)

    def taking(sizes: Sequence[int]) -> float:
        return io_s(each, np.repeat(np.arange(len(sizes)), sizes).tolist(), parameters)

    return Uneven(
        nodes,
        parameters.io_node,
        taking(grouping.even(nodes, room)),
        taking(grouping.ordered(each, room)),
        io_s(each, grouping.free(each, [2] * (nodes // 2)), parameters),
    )


SATURATED = (6.0, 1.0)
"""Nodes that an I/O node carries in figure 13c: as elsewhere here; and so few that two compete, as in the paper."""


class Figures(NamedTuple):
    io: list[Io]
    communicating: list[Communicating]
    uneven: list[Uneven]


def figures(nodes: Sequence[int] = NODES) -> Figures:
    """All three, by number of compute nodes; the last from two on."""
    return Figures(
        [baseline(n) for n in nodes],
        [communicating(n) for n in nodes],
        [uneven(n, Parameters(io_node=io_node)) for io_node in SATURATED for n in nodes if n > 1],
    )
