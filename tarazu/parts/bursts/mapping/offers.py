"""The mappings that a site can choose from, and what each would have given on its own traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tarazu.parts.bursts.mapping.mappings import contiguous, folded, moved, round_robin, units_in
from tarazu.parts.bursts.mapping.rules import Addresses, on_a_server, rules
from tarazu.parts.bursts.measures.characteristics import Places
from tarazu.parts.bursts.measures.dense import intervals
from tarazu.parts.bursts.measures.intervals import Collector, Shares
from tarazu.parts.bursts.measures.report import of_mapping
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

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
