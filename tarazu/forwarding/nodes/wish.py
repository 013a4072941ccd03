"""What a job would like of its nodes, and what the administrator lets it."""

from __future__ import annotations

import msgspec

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
    span: bool = True
    """Keep a third to two thirds of the I/O nodes with idle nodes for the jobs to come."""
    free: bool = False
    """Ranks may be put on the job's nodes in any order, as the paper has it; Slurm puts them in the nodes' order."""
    per_io_node: int = PER_IO_NODE
    """As many of the job's nodes an I/O node at least, on average."""
    even_out: bool = False
    """Also where there are no more I/O nodes to be had than by Slurm's own choice: as many, if the busiest of them then
    carries at least a tenth less. The paper leaves such jobs to Slurm."""
    fit: str = "tree"
    """Which of Slurm's own choices is the one to better: `tree` (topology/tree) or `consecutive`."""
    strategy: str = "traffic"
    """`traffic`: even traffic where shares are known, else even node; `node`: even node always."""


class NodeChoice(msgspec.Struct, frozen=True):
    nodes: tuple[int, ...]
    """Indices of the machine's nodes in the order of ranks: ascending, except where ranks were free."""
    io_nodes: int
    """As many serve them."""
    strategy: str
    """`even node`, `even traffic` (ordered) or `even traffic, free`."""
    why: str


class Left(msgspec.Struct, frozen=True):
    """To Slurm's own choice."""

    why: str
