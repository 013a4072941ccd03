"""Where nodes stand and which I/O node serves them: a file of the site's own, or Slurm's topology."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tarazu.errors import BadInput
from tarazu.forwarding import reading
from tarazu.forwarding.routers.hosts import MAX_FILE_BYTES, unfold
from tarazu.forwarding.traffic.machine import Machine

_WORD = re.compile(r"(\w+)=(\S+)")


def read(path: Path) -> Machine:
    """Lines `HOSTS cabinet=NAME io_node=NAME`, either of the two or both; `#` begins a comment. Also Slurm's
    topology.conf, or what `scontrol show topology` prints. Nodes are in the order of the lines. Raises BadInput.
    """
    return parse(reading.text(path, MAX_FILE_BYTES), str(path))


def parse(text: str, where: str) -> Machine:
    """Raises BadInput naming the line."""
    lines = [
        (number, words)
        for number, line in enumerate(text.splitlines(), 1)
        if (words := line.partition("#")[0].strip())
    ]
    if any(words.lower().startswith("switchname=") for _, words in lines):
        return _topology(lines, where)
    found: list[tuple[str, str, str]] = []
    for number, words in lines:
        hosts, *rest = words.split()
        told = dict(word.partition("=")[::2] for word in rest)
        if not told or not set(told) <= {"cabinet", "io_node"} or "" in told.values() or "=" in hosts:
            raise BadInput(
                f"{where}:{number}", "a line such as n[001-064] cabinet=c1 io_node=rtr1", words[:60]
            )
        found += [(host, told.get("cabinet", ""), told.get("io_node", "")) for host in unfold(hosts)]
    return _machine(found, where)


def _topology(lines: Iterable[tuple[int, str]], where: str) -> Machine:
    """A leaf switch is taken for a cabinet, with an I/O node of its own (spatially-bursty-io, 2.1)."""
    found: list[tuple[str, str, str]] = []
    for number, words in lines:
        told = {name.lower(): value for name, value in _WORD.findall(words)}
        if "switchname" not in told:
            raise BadInput(f"{where}:{number}", "a line such as SwitchName=leaf1 Nodes=n[1-16]", words[:60])
        if "nodes" in told and "switches" not in told and told.get("level", "0") == "0":
            name = told["switchname"]
            found += [(host, name, name) for host in unfold(told["nodes"])]
    return _machine(found, where)


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
