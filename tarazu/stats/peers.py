"""What an OST's speed is compared with: the usual one among OSTs that can be compared with it.

That is their upper median, unless the values fall into two clouds with a gap between them:

- many OSTs on several servers in the slow cloud: these are two kinds of hardware (flash and disks) that nobody told us
  of, and each OST is compared within its cloud;
- a few slow OSTs, or OSTs of one server only, however many: these are sick, and compared with the fast cloud.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

GAP = 3.0
"""Neighbouring values (sorted) that are further apart separate two clouds."""
CLASS_OSTS = 4
CLASS_SERVERS = 2
CLASS_SHARE = 0.25
"""A slow cloud is hardware from so many OSTs, on so many servers, that are such a share of those compared."""
FAST_OSTS = 2
FAST_SHARE = 0.25
"""A fast cloud is what the others are compared with from so many OSTs, and such a share, not an odd one."""
CERTAIN = 20.0
"""Beyond such a gap one fast OST will do."""


def groups(osts: Iterable[int], pools: Mapping[int, Sequence[str]]) -> list[list[int]]:
    """Sets of at least two OSTs that are compared: those of each pool, those in no pool.

    An OST that is the only one in each of its sets is compared with all.
    """
    every = sorted(osts)
    members: dict[str, list[int]] = {}
    for ost in every:
        for pool in pools.get(ost, ()) or ("",):
            members.setdefault(pool, []).append(ost)
    sets = [g for g in members.values() if len(g) > 1]
    if len(every) > 1 and {o for g in sets for o in g} != set(every):
        sets.append(every)
    return sets


def references(values: Mapping[int, float], servers: Mapping[int, str]) -> dict[int, float]:
    """OST → the value that its own is compared with. Values are above 0; `servers`: OST → OSS."""
    order = sorted(values, key=values.__getitem__)
    count = len(order)
    ascending = [values[o] for o in order]
    gaps = [(high / low, at) for at, (low, high) in enumerate(pairwise(ascending), 1) if high >= GAP * low]
    for gap, at in sorted(gaps, reverse=True):
        slow, fast = order[:at], {o: values[o] for o in order[at:]}
        if _is_class(slow, count, servers):
            return references({o: values[o] for o in slow}, servers) | references(fast, servers)
        if len(fast) >= max(FAST_OSTS if gap < CERTAIN else 1, FAST_SHARE * count):
            usual = references(fast, servers)
            return dict.fromkeys(slow, min(usual.values())) | usual
    return dict.fromkeys(order, ascending[count // 2]) if order else {}


def _is_class(osts: Sequence[int], compared: int, servers: Mapping[int, str]) -> bool:
    enough = len(osts) >= max(CLASS_OSTS, CLASS_SHARE * compared)
    return enough and len({servers.get(o, str(o)) for o in osts}) >= CLASS_SERVERS
