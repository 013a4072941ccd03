"""From the rules that are set and those that are wanted to the changes; what is not tarazu's is never among them.

Of one node there is one rule at most: Lustre applies each rule for a node in place of the one before, and forgets the
node's routers when either is deleted (`lnet_udsp_apply_rte_list_on_lpni`, up to 2.17).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tarazu import nids
from tarazu.errors import BadInput
from tarazu.forwarding.routers.udsp import Route, Rule, Udsp


class Difference(NamedTuple):
    """What to do, deletions first."""

    delete: tuple[Rule, ...] = ()
    """Ours, set and not wanted."""
    add: tuple[Rule, ...] = ()
    gone: tuple[Rule, ...] = ()
    """Noted as ours and not set any more: somebody else deleted them, or the node was started anew."""
    foreign: tuple[Rule, ...] = ()
    """Wanted, and set by somebody else: good as it is, and not ours to take back."""


def difference(own: Collection[Rule], shown: Sequence[Udsp], wanted: Sequence[Rule]) -> Difference:
    """`own`: what is noted as tarazu's."""
    present = {rule for each in shown if (rule := each.rule)}
    return Difference(
        tuple(rule for rule in own if rule in present and rule not in wanted),
        tuple(rule for rule in wanted if rule not in present),
        tuple(rule for rule in own if rule not in present),
        tuple(rule for rule in wanted if rule in present and rule not in own),
    )


def index_of(rule: Rule, shown: Sequence[Udsp]) -> int | None:
    """The number that a rule has now."""
    return next((each.idx for each in shown if each.rule == rule), None)


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


def _covers(text: str, pattern: nids.NidPattern) -> bool:
    """What cannot be read covers its whole network."""
    _, at, net = text.rpartition("@")
    try:
        return nids.pattern(text).overlaps(pattern) if at else nids.net(net) == pattern.net
    except BadInput:
        return net == pattern.net
