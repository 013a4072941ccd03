"""How far it is from compute nodes to their I/O nodes, in hops of a topology.

A topology says how far a cabinet (leaf switch, frame) is from each I/O node: out of a table of the site's own, or
Slurm's tree of switches, or a grid of boards as CS19's (spatially-bursty-io, 5.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tarazu import reading
from tarazu.batch import nodes
from tarazu.batch.node_set import unfold
from tarazu.batch.nodes import Switch
from tarazu.errors import BadInput
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers
from tarazu.parts.routers.hosts import MAX_FILE_BYTES

Hops = npt.NDArray[np.float64]
"""(cabinets, I/O nodes)."""
MAX_HOPS = 1_000.0
MAX_SWITCHES = 100_000


def mean(mapping: Numbers, machine: Machine, hops: Hops) -> float:
    """Of the nodes that have a cabinet and an I/O node; NaN where none has."""
    known = (mapping >= 0) & (machine.cabinet >= 0)
    distances = hops[machine.cabinet[known], mapping[known]]
    return float(distances.mean()) if len(distances) else float("nan")


def read(path: Path, machine: Machine) -> Hops:
    """A table of lines `CABINETS IO_NODES HOPS` (names may be folded, `*` stands for all, later lines count), or
    Slurm's topology.conf, in which I/O nodes are named as nodes. Raises BadInput.
    """
    lines = nodes.lines(reading.text(path, MAX_FILE_BYTES))
    switches = nodes.topology(lines, str(path))
    if switches is not None:
        return _of_tree(switches, str(path), machine)
    return _of_table(lines, str(path), machine)


def grid(boards: Sequence[tuple[int, int]], io_boards: Sequence[tuple[int, int]]) -> Hops:
    """Boards (row, column) of cabinets and of I/O nodes: 2 hops in one row or one column, also on one board, else 4."""
    one, other = np.array(boards).reshape(-1, 2), np.array(io_boards).reshape(-1, 2)
    near = (one[:, None, :] == other[None, :, :]).any(axis=2)
    return np.where(near, 2.0, 4.0)


def _of_table(lines: Sequence[tuple[int, str]], where: str, machine: Machine) -> Hops:
    distances = np.full((len(machine.cabinets), len(machine.io_nodes)), np.nan)
    cabinets = {name: number for number, name in enumerate(machine.cabinets)}
    io_nodes = {name: number for number, name in enumerate(machine.io_nodes)}
    for number, text in lines:
        words = text.split()
        at = f"{where}:{number}"
        if len(words) != 3:
            raise BadInput(at, "a line such as c[001-064] rtr1 2", text[:60])
        try:
            hops = float(words[2])
        except ValueError:
            hops = -1.0
        if not 0 <= hops <= MAX_HOPS:
            raise BadInput(at, f"hops from 0 to {MAX_HOPS:g}", words[2][:40])
        rows, columns = (
            _which(w, known, at) for w, known in zip(words[:2], (cabinets, io_nodes), strict=True)
        )
        distances[np.ix_(rows, columns)] = hops
    if np.isnan(distances).any():
        row, column = np.argwhere(np.isnan(distances))[0]
        missing = f"none from {machine.cabinets[row]} to {machine.io_nodes[column]}"
        raise BadInput(where, "hops from each cabinet to each I/O node", missing)
    return distances


def _which(text: str, known: Mapping[str, int], where: str) -> list[int]:
    names = list(known) if text == "*" else list(unfold(text))
    for name in names:
        if name not in known:
            raise BadInput(where, "names that the machine has", name[:40])
    return [known[name] for name in names]


def _of_tree(switches: Sequence[Switch], where: str, machine: Machine) -> Hops:
    """Up to the first switch above both, and down: 2 hops for each level below it; the same leaf: 0."""
    parent: dict[str, str] = {}
    leaf: dict[str, str] = {}
    for each in switches:
        if len(parent) + len(leaf) > MAX_SWITCHES + MAX_FILE_BYTES:
            raise BadInput(f"{where}:{each.line}", f"at most {MAX_SWITCHES} switches", "more")
        for switch in unfold(each.switches):
            parent[switch] = each.name
        for node in unfold(each.nodes):
            leaf.setdefault(node, each.name)
    ways: dict[str, tuple[str, ...]] = {}

    def way(switch: str) -> tuple[str, ...]:
        if switch not in ways:
            up, at = [switch], switch
            while at in parent:
                at = parent[at]
                if at in up:
                    raise BadInput(where, "a tree of switches", f"{at[:40]} above itself")
                up.append(at)
            ways[switch] = tuple(up)
        return ways[switch]

    of_cabinet: list[str | None] = [None] * len(machine.cabinets)
    for node, cabinet in zip(machine.nodes, machine.cabinet.tolist(), strict=True):
        if cabinet >= 0 and of_cabinet[cabinet] is None:
            of_cabinet[cabinet] = leaf.get(node)
    distances = np.zeros((len(machine.cabinets), len(machine.io_nodes)))
    for row, its in enumerate(of_cabinet):
        for column, name in enumerate(machine.io_nodes):
            other = leaf.get(name)
            if its is None or other is None:
                missing = machine.cabinets[row] if its is None else name
                raise BadInput(where, "a leaf switch of each cabinet and I/O node", f"none of {missing}")
            distances[row, column] = _apart(way(its), way(other), where)
    return distances


def _apart(one: tuple[str, ...], other: tuple[str, ...], where: str) -> float:
    for level, switch in enumerate(one):
        if switch in other:
            return float(level + other.index(switch))
    raise BadInput(where, "one tree of switches", f"{one[-1][:40]} and {other[-1][:40]} apart")
