"""Max-min fair rates of flows over links (Bertsekas and Gallager, Data Networks, section 6.5.2), as pure numpy.

All rates rise alike from zero; where a link is full, or a flow at its limit, the flows concerned stay as they
are and the others rise on. A link's share is what each of its flows would get of what is left. Instead of one link
after the other, every link is settled in the same round whose flows find no smaller share elsewhere: shares only
rise while others are settled, so nothing can hold these flows back any more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def fair_rates(
    capacity: Floats,
    starts: Ints,
    links: Ints,
    weights: Floats,
    counts: Floats,
    limits: Floats,
    tolerance: float = 1e-12,
) -> Floats:
    """The rate of each flow (F,): feasible, and none can be raised without lowering one that is not higher.

    capacity (L,)    units/s of each link, >= 0; inf: never full
    starts (F + 1,)  flow f's entries of `links` and `weights` are starts[f]:starts[f + 1] (CSR)
    links (E,)       link of each entry
    weights (E,)     units of the link that one unit of the flow uses, > 0
    counts (F,)      like flows that each get this rate, > 0
    limits (F,)      the highest rate of the flow, > 0; inf: none
    tolerance        shares that differ by less than this part are settled together; more than rounding saves rounds

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
    load = weights * counts[flow]
    limits = limits[flows]
    link, left = _used_only(links, capacity)
    while len(flows):
        total = np.bincount(link, load, minlength=len(left))
        with np.errstate(divide="ignore", invalid="ignore"):  # links that no flow is left on
            share = left / total
        first = np.cumsum(lengths) - lengths
        level = np.minimum(np.minimum.reduceat(share.take(link), first), limits)
        level_here = np.repeat(level, lengths)
        lowest = np.full(len(left), np.inf)
        np.minimum.at(lowest, link, level_here)
        full = lowest >= share * (1 - tolerance)
        settled = np.logical_or.reduceat(full.take(link), first) | (level >= limits * (1 - tolerance))
        rates[flows[settled]] = level[settled]
        gone = np.repeat(settled, lengths)
        left -= np.bincount(link[gone], (load * level_here)[gone], minlength=len(left))
        np.maximum(left, 0.0, out=left)
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
