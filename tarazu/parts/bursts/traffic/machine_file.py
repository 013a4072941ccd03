"""Where nodes stand and which I/O node serves them: a file of the site's own, or Slurm's topology."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tarazu import reading
from tarazu.batch import nodes
from tarazu.batch.node_set import unfold
from tarazu.errors import BadInput
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.routers.hosts import MAX_FILE_BYTES


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
        told = dict(word.partition("=")[::2] for word in rest)
        if not told or not set(told) <= {"cabinet", "io_node"} or "" in told.values() or "=" in hosts:
            raise BadInput(
                f"{where}:{number}", "a line such as n[001-064] cabinet=c1 io_node=rtr1", words[:60]
            )
        rows += [(host, told.get("cabinet", ""), told.get("io_node", "")) for host in unfold(hosts)]
    return _machine(rows, where)


def _machine(found: list[tuple[str, str, str]], where: str) -> Machine:
    if not found:
        raise BadInput(where, "nodes and where they stand", "none")
    nodes = tuple(host for host, _, _ in found)
    if len(set(nodes)) < len(nodes):
        seen: set[str] = set()
        twice = next(host for host in nodes if host in seen or seen.add(host))  # type: ignore[func-returns-value]
        raise BadInput(where, "each node once", f"{twice} twice")
    cabinets = {name: i for i, name in enumerate(dict.fromkeys(c for _, c, _ in found if c))}
    io_nodes = {name: i for i, name in enumerate(dict.fromkeys(io for _, _, io in found if io))}
    return Machine(
        nodes,
        tuple(cabinets),
        tuple(io_nodes),
        np.array([cabinets.get(cabinet, -1) for _, cabinet, _ in found], np.int32),
        np.array([io_nodes.get(io, -1) for _, _, io in found], np.int32),
    )
