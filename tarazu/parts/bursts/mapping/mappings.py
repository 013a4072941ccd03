"""Mappings: compute node → I/O node, each serving as many nodes as the others (give or take one).

A mapping is (nodes,) int32: for each node, in the order of the machine, the index of its I/O node; -1: none is known.

`folded` is in few rules: nodes whose addresses end alike have the same I/O node, in all subnets of a group. By i % n
each subnet of a machine is cut otherwise, and a rule names two or three nodes; where subnets are cut alike, a rule is
for all of them: `10.77.[0-44].[3-253/89]@tcp1`. So that no I/O node serves more than others, the subnets form groups,
each beginning its round elsewhere; the rules are as many as I/O nodes, times groups, and more where subnets do not have
the same addresses.

What each would have given is judged on the site's own traffic (`offers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tarazu.errors import BadInput
from tarazu.nids import Nid
from tarazu.parts.bursts.mapping.rules import Addresses, on_a_server, rules
from tarazu.parts.bursts.measures.characteristics import Places
from tarazu.parts.bursts.measures.intervals import Collector, Shares, intervals
from tarazu.parts.bursts.measures.report import of_mapping
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic


def contiguous(nodes: int, io_nodes: int) -> Numbers:
    """Neighbours share an I/O node: node i has ⌊i / (m / n)⌋ (spatially-bursty-io, 5.1). Raises BadInput."""
    _check(nodes, io_nodes)
    return (np.arange(nodes, dtype=np.int64) * io_nodes // max(1, nodes)).astype(np.int32)


def round_robin(nodes: int, io_nodes: int) -> Numbers:
    """Neighbours have different I/O nodes: node i has i % n (spatially-bursty-io, 5.1). Raises BadInput."""
    _check(nodes, io_nodes)
    return (np.arange(nodes, dtype=np.int64) % io_nodes).astype(np.int32)


def moved(before: Numbers, after: Numbers) -> int:
    """Nodes with another I/O node than before; one that had none (-1) is not moved."""
    return int(np.count_nonzero((before != after) & (before >= 0)))


def _check(nodes: int, io_nodes: int) -> None:
    if nodes < 0 or io_nodes < 1:
        raise BadInput("mapping", "an I/O node at least, and no fewer than 0 nodes", f"{io_nodes}, {nodes}")


@dataclass(frozen=True, eq=False)
class Units:
    """Nodes that can only be mapped together."""

    of_node: Numbers
    """(nodes,): index of its unit; a node without a NID is one of its own."""
    group: Numbers
    """(units,): of subnets; in a group, units follow one another by the last number of their addresses."""


def units(nodes: tuple[tuple[Nid, ...], ...], groups: int) -> Units:
    """By each node's first NID; the subnets, in order, belong to `groups` groups in turn."""
    first = [its[0] if its else None for its in nodes]
    subnets = sorted({(nid.net, nid.address[:-1]) for nid in first if nid})
    group_of = {subnet: number % max(1, groups) for number, subnet in enumerate(subnets)}
    keys: list[tuple[int, int]] = []
    for number, nid in enumerate(first):
        if nid is None:
            keys.append((groups, number))
        else:
            keys.append((group_of[nid.net, nid.address[:-1]], nid.address[-1]))
    ordered = {key: number for number, key in enumerate(sorted(set(keys)))}
    return Units(
        np.fromiter((ordered[key] for key in keys), np.int32, len(keys)),
        np.fromiter((group for group, _ in ordered), np.int32, len(ordered)),
    )


def units_in(known: Addresses, io_nodes: int, most_rules: int) -> Units:
    """Of as many groups as so many rules on a server allow; of one where they allow none."""
    for groups in range(max(1, most_rules // max(1, io_nodes)), 1, -1):
        grouping = units(known.nodes, groups)
        if on_a_server(rules(folded(grouping, io_nodes), known)) <= most_rules:
            return grouping
    return units(known.nodes, 1)


def folded(of: Units, io_nodes: int) -> Numbers:
    """(nodes,): neighbours have different I/O nodes; the rounds of groups begin at equal distances."""
    counts = np.bincount(of.group) if len(of.group) else np.zeros(1, np.int64)
    within = np.arange(len(of.group)) - (np.cumsum(counts) - counts)[of.group]
    begins = (np.arange(len(counts)) * io_nodes // len(counts))[of.group]
    return ((within + begins) % io_nodes).astype(np.int32)[of.of_node]


PRESENT = "present"


@dataclass(frozen=True, eq=False)
class Site:
    machine: Machine
    present: Numbers
    """(nodes,): -1 for a node whose data take all I/O nodes alike."""
    addresses: Addresses | None = None
    """None: nobody knows NIDs, and what is folded is not offered."""


def mappings(site: Site, most_rules: int = 1) -> dict[str, Numbers]:
    """By name; what is folded needs NIDs."""
    nodes, count = len(site.machine.nodes), len(site.machine.io_nodes)
    by_name = {"contiguous": contiguous(nodes, count), "round-robin": round_robin(nodes, count)}
    if site.addresses:
        by_name["folded"] = folded(units_in(site.addresses, count, most_rules), count)
    return by_name


def judge(by_name: Mapping[str, Numbers], chunks: Iterable[Traffic], machine: Machine) -> Shares:
    """How the traffic of a period would have lain on `machine.io_nodes` by each mapping (spatially-bursty-io, 7.4.1).
    It is read once. Raises BadInput for time that goes back.
    """
    collector = Collector(machine, by_name)
    for interval in intervals(chunks, Places(machine)):
        collector.add(interval)
    return collector.shares()


def offers(
    site: Site, by_name: Mapping[str, Numbers], chunks: Iterable[Traffic] | None
) -> list[dict[str, Any]]:
    """What there is at present first, where it is known. `chunks`: traffic to judge on. `moved`: nodes that get another
    I/O node than they have; `most_nodes`: that one I/O node serves; `rules`: on each server, None where NIDs are not
    known; `judged`: as in a report, None where no traffic came to an I/O node.
    """
    known = {PRESENT: site.present} if (site.present >= 0).any() else {}
    known |= by_name
    shares = judge(known, chunks or (), site.machine)
    return [
        {
            "name": name,
            "moved": moved(site.present, mapping),
            "most_nodes": int(np.bincount(mapping[mapping >= 0]).max(initial=0)),
            "rules": on_a_server(rules(mapping, site.addresses)) if site.addresses else None,
            "judged": its if (its := of_mapping(shares, mapped))["busiest"]["mean"] is not None else None,
        }
        for (name, mapping), mapped in zip(known.items(), shares.mapped.values(), strict=True)
    ]
