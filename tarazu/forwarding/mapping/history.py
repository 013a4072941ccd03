"""Which nodes burst together, out of traffic: intervals × nodes, bounded whatever the length of the period.

Of each interval the busiest nodes are kept that move `COVERED` of its bytes, as shares; of the intervals, a sample
with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tarazu.forwarding.traffic.machine import Machine
from tarazu.forwarding.traffic.traffic import Bytes, Numbers, Traffic

MAX_INTERVALS = 4_096
MAX_NODES = 1_024
"""Of one interval."""
COVERED = 0.95

Shares = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class History:
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

    def part(self, begin: int, end: int) -> History:
        """Intervals from `begin` to before `end`."""
        first, last = np.searchsorted(self.interval, (begin, end))
        return History(
            self.nodes,
            end - begin,
            (self.interval[first:last] - begin).astype(np.int32),
            self.node[first:last],
            self.share[first:last],
        )


def numbers(names: tuple[str, ...], machine: Machine, known: dict[str, int] | None = None) -> Numbers:
    """(names,): index of each in the machine's nodes; -1 for others (`known`: name → index, where it is at hand)."""
    known = known if known is not None else index(machine)
    return np.fromiter((known.get(name, -1) for name in names), np.int32, len(names))


def index(machine: Machine) -> dict[str, int]:
    """Name of a node → its index."""
    return {name: number for number, name in enumerate(machine.nodes)}


def intervals(chunks: Iterable[Traffic], machine: Machine) -> Iterator[tuple[int, Numbers, Bytes]]:
    """(when it began, nodes of the machine, bytes) of each interval with traffic; nodes that it has not are left out.

    `chunks` ascend in time; an interval may be cut between two of them.
    """
    known = index(machine)
    names: tuple[str, ...] | None = None
    of_name = np.empty(0, np.int32)
    left: list[tuple[int, Numbers, Bytes]] = []
    for chunk in chunks:
        if not len(chunk):
            continue
        if chunk.nodes is not names:
            names, of_name = chunk.nodes, numbers(chunk.nodes, machine, known)
        node, moved = of_name[chunk.node], chunk.bytes
        begins = np.flatnonzero(np.diff(chunk.time_s, prepend=chunk.time_s[0] - 1))
        for begin, end in zip(begins, [*begins[1:], len(chunk)], strict=True):
            time_s = int(chunk.time_s[begin])
            if left and left[0][0] != time_s:
                yield from _joined(left)
                left = []
            left.append((time_s, node[begin:end], moved[begin:end]))
    yield from _joined(left)


def _joined(parts: list[tuple[int, Numbers, Bytes]]) -> Iterator[tuple[int, Numbers, Bytes]]:
    if not parts:
        return
    node = np.concatenate([part[1] for part in parts]) if len(parts) > 1 else parts[0][1]
    moved = np.concatenate([part[2] for part in parts]) if len(parts) > 1 else parts[0][2]
    busy = (node >= 0) & (moved > 0)
    if busy.any():
        yield parts[0][0], node[busy], moved[busy]


def learn(
    chunks: Iterable[Traffic], machine: Machine, *, most: int = MAX_INTERVALS, seed: int = 1
) -> History:
    """Of at most `most` intervals, each as likely as the others (a reservoir)."""
    rng = np.random.default_rng(seed)
    kept: list[tuple[int, Numbers, Shares]] = []
    for seen, (_, node, moved) in enumerate(intervals(chunks, machine)):
        at = seen if seen < most else int(rng.integers(seen + 1))
        if at >= most:
            continue
        busiest = np.argsort(-moved, kind="stable")[:MAX_NODES]
        enough = 1 + int(np.searchsorted(np.cumsum(moved[busiest]), COVERED * float(moved.sum())))
        busiest = np.sort(busiest[:enough])
        share = moved[busiest].astype(np.float64)
        row = seen, node[busiest].astype(np.int32), (share / share.sum()).astype(np.float32)
        if at < len(kept):
            kept[at] = row
        else:
            kept.append(row)
    kept.sort(key=lambda row: row[0])
    counts = [len(node) for _, node, _ in kept]
    return History(
        len(machine.nodes),
        len(kept),
        np.repeat(np.arange(len(kept), dtype=np.int32), counts),
        np.concatenate([node for _, node, _ in kept]) if kept else np.empty(0, np.int32),
        np.concatenate([share for _, _, share in kept]) if kept else np.empty(0, np.float32),
    )
