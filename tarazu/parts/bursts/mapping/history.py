"""Which nodes burst together, out of traffic: intervals × nodes, bounded whatever the length of the period.

Of each interval the busiest nodes are kept that move `COVERED` of its bytes, as shares; of the intervals, a sample
with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tarazu.parts.bursts.measures.characteristics import Places
from tarazu.parts.bursts.measures.dense import intervals
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

MAX_INTERVALS = 4_096
MAX_NODES = 1_024
"""Of one interval."""
COVERED = 0.95

Shares = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TrafficHistory:
    """One row an interval and node that was busy then, ascending by interval."""

    nodes: int
    """Of the machine."""
    intervals: int
    """From 0, ascending in time; each has rows."""
    interval: Numbers
    """(rows,)"""
    node: Numbers
    """(rows,): index into the machine's nodes."""
    share: Shares
    """(rows,): of the bytes of the interval's rows; the sum of an interval is 1."""

    def part(self, begin: int, end: int) -> TrafficHistory:
        """Intervals from `begin` to before `end`."""
        first, last = np.searchsorted(self.interval, (begin, end))
        return TrafficHistory(
            self.nodes,
            end - begin,
            (self.interval[first:last] - begin).astype(np.int32),
            self.node[first:last],
            self.share[first:last],
        )


def learn(
    chunks: Iterable[Traffic], machine: Machine, *, most: int = MAX_INTERVALS, seed: int = 1
) -> TrafficHistory:
    """Of at most `most` intervals, each as likely as the others (a reservoir)."""
    rng = np.random.default_rng(seed)
    kept: list[tuple[int, Numbers, Shares]] = []
    busy = (each.moved for each in intervals(chunks, Places(machine)) if each.moved.any())
    for seen, moved in enumerate(busy):
        at = seen if seen < most else int(rng.integers(seen + 1))
        if at >= most:
            continue
        busiest = np.argsort(-moved, kind="stable")[:MAX_NODES]
        enough = 1 + int(np.searchsorted(np.cumsum(moved[busiest]), COVERED * float(moved.sum())))
        busiest = np.sort(busiest[:enough])
        share = moved[busiest]
        row = seen, busiest.astype(np.int32), (share / share.sum()).astype(np.float32)
        if at < len(kept):
            kept[at] = row
        else:
            kept.append(row)
    kept.sort(key=lambda row: row[0])
    counts = [len(node) for _, node, _ in kept]
    return TrafficHistory(
        len(machine.nodes),
        len(kept),
        np.repeat(np.arange(len(kept), dtype=np.int32), counts),
        np.concatenate([node for _, node, _ in kept]) if kept else np.empty(0, np.int32),
        np.concatenate([share for _, _, share in kept]) if kept else np.empty(0, np.float32),
    )
