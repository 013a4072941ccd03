"""Compute nodes, the cabinets in which they stand, and the I/O nodes (LNet routers) that serve them: by a file of the
site's own, or Slurm's topology.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tarazu import reading
from tarazu.batch import nodes
from tarazu.batch.node_set import unfold
from tarazu.errors import BadInput
from tarazu.parts.bursts.traffic.traffic import Numbers
from tarazu.parts.routers.hosts import MAX_FILE_BYTES


@dataclass(frozen=True, eq=False)
class Machine:
    """Nodes are in the order of the batch system: neighbours stand beside one another."""

    nodes: tuple[str, ...]
    cabinets: tuple[str, ...]
    """Or frames, or leaf switches: what is near one another, and what the batch system fills first."""
    io_nodes: tuple[str, ...]
    cabinet: Numbers
    """(nodes,): index into `cabinets`."""
    served_by: Numbers
    """(nodes,): index into `io_nodes`; -1 where none is known."""

    def __post_init__(self) -> None:
        count = len(self.nodes)
        if len(set(self.nodes)) != count:
            raise BadInput("machine", "each node once", "one twice")
        for what, index, names in (
            ("cabinet", self.cabinet, self.cabinets),
            ("served_by", self.served_by, self.io_nodes),
        ):
            if index.shape != (count,):
                raise BadInput(f"machine: {what}", f"{count} numbers", str(index.shape))
            if count and not -1 <= int(index.min()) <= int(index.max()) < len(names):
                raise BadInput(f"machine: {what}", f"numbers from -1 to {len(names) - 1}", "others")


def regular(nodes: int, per_cabinet: int, *, name: str = "n") -> Machine:
    """Cabinets of `per_cabinet` nodes, each with an I/O node of its own (spatially-bursty-io, 2.1)."""
    cabinets = -(-nodes // per_cabinet)
    at = (np.arange(nodes) // per_cabinet).astype(np.int32)
    digits = len(str(max(0, nodes - 1)))
    return Machine(
        tuple(f"{name}{i:0{digits}}" for i in range(nodes)),
        tuple(f"c{i}" for i in range(cabinets)),
        tuple(f"io{i}" for i in range(cabinets)),
        at,
        at.copy(),
    )


def read(path: Path) -> Machine:
    """Lines `HOSTS cabinet=NAME io_node=NAME`, either of the two or both; `#` begins a comment. Also Slurm's
    topology.conf, or what `scontrol show topology` prints. Nodes are in the order of the lines. Raises BadInput.
    """
    return parse(reading.text(path, MAX_FILE_BYTES), str(path))


def parse(text: str, where: str) -> Machine:
    """Raises BadInput naming the line."""
    lines = nodes.lines(text)
    if (switches := nodes.topology(lines, where)) is not None:
        # A leaf switch is taken for a cabinet, with an I/O node of its own (spatially-bursty-io, 2.1).
        leaves = (each for each in switches if each.leaf)
        return _machine([(host, s.name, s.name) for s in leaves for host in unfold(s.nodes)], where)
    rows: list[tuple[str, str, str]] = []
    for number, words in lines:
        hosts, *rest = words.split()
        values = dict(word.partition("=")[::2] for word in rest)
        if not values or not set(values) <= {"cabinet", "io_node"} or "" in values.values() or "=" in hosts:
            raise BadInput(
                f"{where}:{number}", "a line such as n[001-064] cabinet=c1 io_node=rtr1", words[:60]
            )
        rows += [(host, values.get("cabinet", ""), values.get("io_node", "")) for host in unfold(hosts)]
    return _machine(rows, where)


def _machine(rows: list[tuple[str, str, str]], where: str) -> Machine:
    if not rows:
        raise BadInput(where, "nodes and where they stand", "none")
    nodes = tuple(host for host, _, _ in rows)
    if len(set(nodes)) < len(nodes):
        names: set[str] = set()
        twice = next(host for host in nodes if host in names or names.add(host))  # type: ignore[func-returns-value]
        raise BadInput(where, "each node once", f"{twice} twice")
    cabinets = {name: i for i, name in enumerate(dict.fromkeys(c for _, c, _ in rows if c))}
    io_nodes = {name: i for i, name in enumerate(dict.fromkeys(io for _, _, io in rows if io))}
    return Machine(
        nodes,
        tuple(cabinets),
        tuple(io_nodes),
        np.array([cabinets.get(cabinet, -1) for _, cabinet, _ in rows], np.int32),
        np.array([io_nodes.get(io, -1) for _, _, io in rows], np.int32),
    )
