"""The mappings that a site can choose from, and what each gives on its own traffic.

Those that learn are given the earlier days; all are judged on the later ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from tarazu.parts.bursts.mapping import hops as hops_of
from tarazu.parts.bursts.mapping.folded import folded, together_folded, units_in
from tarazu.parts.bursts.mapping.history import TrafficHistory
from tarazu.parts.bursts.mapping.judge import Judged, judge
from tarazu.parts.bursts.mapping.rules import Addresses, on_a_server, rules
from tarazu.parts.bursts.mapping.simple import contiguous, moved, round_robin
from tarazu.parts.bursts.mapping.together import MappingOptions, together
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

PRESENT = "present"
NAMES = ("contiguous", "round-robin", "folded", "together", "together-folded")
LEARN = ("together", "together-folded")

Progress = Callable[[str, float], None]
"""(what is done, how much of it, up to 1)."""


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
    hops: float | None = None
    """Mean from a node to its I/O node; None where no topology is given."""


@dataclass(frozen=True, eq=False)
class Site:
    machine: Machine
    present: Numbers
    """(nodes,): -1 for a node whose data take all I/O nodes alike."""
    addresses: Addresses | None = None
    """None: nobody knows NIDs, and what is folded is not offered."""
    hops: hops_of.Hops | None = None


def mappings(
    site: Site,
    history: TrafficHistory | None,
    names: Iterable[str] = NAMES,
    options: MappingOptions | None = None,
    most_rules: int = 1,
    progress: Progress = lambda what, share: None,
) -> dict[str, Numbers]:
    """Those of these names that are available: what learns needs a history, what is folded needs NIDs."""
    nodes, count = len(site.machine.nodes), len(site.machine.io_nodes)
    of = units_in(site.addresses, count, most_rules) if site.addresses else None
    by_name: dict[str, Numbers] = {}
    for name in names:
        if name == "contiguous":
            by_name[name] = contiguous(nodes, count)
        elif name == "round-robin":
            by_name[name] = round_robin(nodes, count)
        elif name == "folded" and of:
            by_name[name] = folded(of, count)
        elif name == "together" and history:
            by_name[name] = together(history, site.machine, site.present, options, _of(progress, name))
        elif name == "together-folded" and history and of:
            by_name[name] = together_folded(history, of, site.machine, options, _of(progress, name))
    return by_name


def offers(site: Site, found: Mapping[str, Numbers], chunks: Iterable[Traffic] | None) -> list[Offer]:
    """What there is at present first, where it is known. `chunks`: the days to judge on."""
    known = {PRESENT: site.present} if (site.present >= 0).any() else {}
    known |= found
    judged = judge(known, chunks, site.machine) if chunks is not None else {}
    return [
        Offer(
            name,
            moved(site.present, mapping),
            int(np.bincount(mapping[mapping >= 0]).max(initial=0)),
            its if (its := judged.get(name)) and not math.isnan(its.busiest_share) else None,
            on_a_server(rules(mapping, site.addresses)) if site.addresses else None,
            _hops(site, mapping),
        )
        for name, mapping in known.items()
    ]


def best(made: Iterable[Offer], most_rules: int) -> Offer | None:
    """The most even one of those that are judged and have no more rules than a server sets; of equal ones (1 %) that
    of the fewest rules. None: there is none that is better than the present one.
    """
    known = {offer.name: offer for offer in made if offer.judged}
    fit = [o for o in known.values() if o.name != PRESENT and o.rules is not None and o.rules <= most_rules]
    if not fit:
        return None
    least = min(_share(offer) for offer in fit)
    if PRESENT in known and least > 0.99 * _share(known[PRESENT]):
        return None
    return min((o for o in fit if _share(o) <= 1.01 * least), key=lambda o: (o.rules or 0, _share(o)))


def _hops(site: Site, mapping: Numbers) -> float | None:
    mean = math.nan if site.hops is None else hops_of.mean(mapping, site.machine, site.hops)
    return None if math.isnan(mean) else mean


def _share(offer: Offer) -> float:
    return offer.judged.busiest_share if offer.judged else 1.0


def _of(progress: Progress, name: str) -> Callable[[float], None]:
    return lambda share: progress(name, share)
