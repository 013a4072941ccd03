"""The mappings that a site can choose from, and what each would have given on its own traffic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from tarazu.parts.bursts.mapping.mappings import contiguous, folded, moved, round_robin, units_in
from tarazu.parts.bursts.mapping.rules import Addresses, on_a_server, rules
from tarazu.parts.bursts.measures.characteristics import Places
from tarazu.parts.bursts.measures.dense import intervals
from tarazu.parts.bursts.measures.intervals import Collector
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

PRESENT = "present"


class Judged(msgspec.Struct, frozen=True):
    """Means over the intervals with traffic; those of one mapping leave out what it has no I/O node for."""

    intervals: int
    busiest_share: float
    """Of an interval's bytes, by the busiest tenth of the I/O nodes then; each interval counts alike."""
    busiest_share_of_bytes: float
    """The same, each byte counting alike."""
    io_nodes_of_busiest: float
    """I/O nodes that serve the busiest 1 % of the nodes then."""


class Offer(msgspec.Struct, frozen=True):
    name: str
    moved: int
    """Nodes that get another I/O node than they have."""
    most_nodes: int
    """That one I/O node serves."""
    judged: Judged | None = None
    """None: there was no traffic to judge it on, or none of it came to an I/O node."""
    rules: int | None = None
    """On each server; None where NIDs are not known."""


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


def judge(by_name: Mapping[str, Numbers], chunks: Iterable[Traffic], machine: Machine) -> dict[str, Judged]:
    """How the traffic of a period would have lain on `machine.io_nodes` by each mapping (spatially-bursty-io, 7.4.1);
    NaN where there was none. It is read once. Raises BadInput for time that goes back.
    """
    collector = Collector(machine, by_name)
    for interval in intervals(chunks, Places(machine)):
        collector.add(interval)
    shares = collector.shares()
    return {
        name: Judged(
            len(shares.time_s),
            shares.mean(mapped.busiest),
            shares.weighted(mapped.busiest),
            shares.mean(mapped.of_busiest.astype(float)),
        )
        for name, mapped in shares.mapped.items()
    }


def offers(site: Site, by_name: Mapping[str, Numbers], chunks: Iterable[Traffic] | None) -> list[Offer]:
    """What there is at present first, where it is known. `chunks`: traffic to judge on."""
    known = {PRESENT: site.present} if (site.present >= 0).any() else {}
    known |= by_name
    judged = judge(known, chunks, site.machine) if chunks is not None else {}
    return [
        Offer(
            name,
            moved(site.present, mapping),
            int(np.bincount(mapping[mapping >= 0]).max(initial=0)),
            its if (its := judged.get(name)) and not math.isnan(its.busiest_share) else None,
            on_a_server(rules(mapping, site.addresses)) if site.addresses else None,
        )
        for name, mapping in known.items()
    ]
