"""Rules for the same nodes get in one another's way, so of one node there is one rule at most.

Lustre applies each rule for a node in place of the one before, and forgets the node's routers when either is deleted
(`lnet_udsp_apply_rte_list_on_lpni`, up to 2.17).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tarazu.errors import BadInput
from tarazu.forwarding.routers import nids
from tarazu.forwarding.routers.nids import Pattern
from tarazu.forwarding.routers.udsp import Rule, Udsp


def overlap(one: Pattern, other: Pattern) -> bool:
    """Whether a NID is one of both."""
    return (
        one.net == other.net
        and len(one.places) == len(other.places)
        and not any(a.isdisjoint(b) for a, b in zip(one.places, other.places, strict=True))
    )


def others(own: Collection[Rule], shown: Sequence[Udsp]) -> list[Udsp]:
    """Somebody else's rules about routers. To be asked once for many rules: reading all that are shown takes long."""
    ours = frozenset(own)
    return [each for each in shown if each.rte and each.rule not in ours]


def in_the_way(rule: Rule, of_others: Sequence[Udsp]) -> Udsp | None:
    """One of these rules that is for some of the same nodes; the very same rule is none."""
    for each in of_others:
        if each.rule != rule and _covers(each.dst, rule.dst):
            return each
    return None


def _covers(text: str, pattern: Pattern) -> bool:
    """What cannot be read covers its whole network."""
    _, at, net = text.rpartition("@")
    try:
        return overlap(nids.pattern(text), pattern) if at else nids.net(net) == pattern.net
    except BadInput:
        return net == pattern.net
