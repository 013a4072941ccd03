"""Max-min fair rates of flows over links (Bertsekas and Gallager, Data Networks, section 6.5.2), as pure numpy.

All rates rise alike from zero; where a link is full, or a flow at its limit, the flows concerned stay as they
are and the others rise on. Instead of one link after the other, every link that nothing else can
hold back any more is settled in the same round, so that the number of rounds does not grow with that of links.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SAME = 1.0 - 1e-12
"""Shares that differ by less than rounding are one share."""


def fair_rates(
    capacity: Floats, starts: Ints, links: Ints, weights: Floats, counts: Floats, limits: Floats
) -> Floats:
    """The rate of each flow (F,): feasible, and none can be raised without lowering one that is not higher.

    capacity (L,)    units/s of each link, >= 0; inf: never full
    starts (F + 1,)  flow f's entries of `links` and `weights` are starts[f]:starts[f + 1] (CSR)
    links (E,)       link of each entry
    weights (E,)     units of the link that one unit of the flow uses, > 0
    counts (F,)      like flows that each get this rate, > 0
    limits (F,)      the highest rate of the flow, > 0; inf: none

    For each link, the sum of counts * weights * rates is at most its capacity, to 1e-12 of it. A flow
    over no link of finite capacity gets its limit.
    """
    rates = limits.astype(np.float64)
    lengths = np.diff(starts)
    flow = np.repeat(np.arange(len(limits)), lengths)
    finite = np.isfinite(capacity[links])
    if not finite.all():
        flow, links, weights = flow[finite], links[finite], weights[finite]
        lengths = np.bincount(flow, minlength=len(limits))
    flows = np.flatnonzero(lengths)
    lengths = lengths[flows]
    limits = limits[flows]
    load = weights * counts[flow]
    link, remaining = _used_only(links, capacity)
    while len(flows):
        total = np.bincount(link, load, minlength=len(remaining))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = remaining / total
        offered = share[link]
        first = np.cumsum(lengths) - lengths
        level = np.minimum(np.minimum.reduceat(offered, first), limits)
        level_here = np.repeat(level, lengths)
        contested = np.zeros(len(remaining), dtype=np.bool_)
        contested[link[level_here < offered * SAME]] = True
        settled = np.logical_or.reduceat(~contested[link], first) | (level >= limits * SAME)
        rates[flows[settled]] = level[settled]
        gone = np.repeat(settled, lengths)
        remaining -= np.bincount(link[gone], load[gone] * level_here[gone], minlength=len(remaining))
        np.maximum(remaining, 0.0, out=remaining)
        stay = ~settled
        flows, lengths, limits = flows[stay], lengths[stay], limits[stay]
        link, load = link[~gone], load[~gone]
    return rates


def _used_only(links: Ints, capacity: Floats) -> tuple[Ints, Floats]:
    """The links numbered anew without those that no entry names, and their capacities."""
    used = np.zeros(len(capacity), dtype=np.bool_)
    used[links] = True
    names = np.flatnonzero(used)
    number = np.empty(len(capacity), dtype=np.int64)
    number[names] = np.arange(len(names))
    return number[links], capacity[names]
