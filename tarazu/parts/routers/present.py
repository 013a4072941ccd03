"""The rules that are set on a server, and which of those that are wanted can be beside them.

Of one node there is one rule at most: Lustre applies each rule for a node in place of the one before, and forgets the
node's routers when either is deleted (`lnet_udsp_apply_rte_list_on_lpni`, up to 2.17).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tarazu import nids
from tarazu.errors import BadInput
from tarazu.parts.routers.udsp import Route, Rule, Udsp


class Present:
    """All rules of a server, whoever set them."""

    def __init__(self, rules: Sequence[Udsp]) -> None:
        self.rules = tuple(rules)
        self._numbers = {rule: each.idx for each in reversed(self.rules) if (rule := each.rule)}

    def index_of(self, rule: Rule) -> int | None:
        """The number that it has now."""
        return self._numbers.get(rule)

    def in_the_way(self, rule: Rule) -> Udsp | None:
        """One about routers that is for some of the same nodes; the very same rule is none."""
        for each in self.rules:
            if each.rte and each.rule != rule and _covers(each.dst, rule.dst):
                return each
        return None

    def went(self, after: Present) -> str:
        """What is there no more."""
        lost = [str(each[1:]) for each in self.rules if not after._has(each)]
        return ", ".join(lost) or "unknown"

    def _has(self, rule: Udsp) -> bool:
        return any(each[1:] == rule[1:] for each in self.rules)


class Usable(NamedTuple):
    rules: tuple[Rule, ...]
    refused: tuple[tuple[Rule, str], ...]
    """With the reason."""


def usable(wanted: Sequence[Rule], routes: Sequence[Route], most: int) -> Usable:
    """The rules that this server can follow now: a router that they name leads to the nodes' network, and is up.

    Beyond `most` rules the later ones are refused.
    """
    leads: dict[tuple[nids.Nid, str], bool] = {}
    for route in routes:
        key = (route.gateway, route.net)
        leads[key] = leads.get(key, False) or route.up
    rules: dict[Rule, None] = {}
    refused = []
    for rule in dict.fromkeys(wanted):
        if why := _refusal(rule, leads):
            refused.append((rule, why))
        elif len(rules) >= most:
            refused.append((rule, f"expected at most {most} rules"))
        elif any(rule.dst.overlaps(other.dst) for other in rules):
            refused.append((rule, "another rule is for some of the same nodes"))
        else:
            rules[rule] = None
    return Usable(tuple(rules), tuple(refused))


def _refusal(rule: Rule, leads: dict[tuple[nids.Nid, str], bool]) -> str:
    states = [up for (gateway, net), up in leads.items() if net == rule.dst.net and rule.rte.has(gateway)]
    if not states:
        return f"no route to {rule.dst.net} by {rule.rte}"
    return "" if any(states) else f"{rule.rte} is down"


def _covers(text: str, pattern: nids.NidPattern) -> bool:
    """What cannot be read covers its whole network."""
    _, at, net = text.rpartition("@")
    try:
        return nids.pattern(text).overlaps(pattern) if at else nids.net(net) == pattern.net
    except BadInput:
        return net == pattern.net
