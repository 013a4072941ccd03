"""What each compute node moved in each interval: columns of numpy, as they lie in a file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Traffic:
    """Rows (time, node), ascending; a row that is not there moved nothing."""

    nodes: tuple[str, ...]
    """Names (of hosts), to which `node` points; each once."""
    interval_s: float
    time_s: Seconds
    """(rows,): when the interval began, in seconds since 1970."""
    node: Numbers
    """(rows,)"""
    read: Bytes
    """(rows,): bytes read from Lustre in the interval."""
    written: Bytes
    """(rows,)"""
    network: Bytes | None = None
    """(rows,): bytes besides Lustre's, sent and received; None: nobody counted them, as on a site."""

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def bytes(self) -> Bytes:
        """(rows,): read and written."""
        return self.read + self.written


def rows(traffic: Traffic, which: slice | np.ndarray) -> Traffic:
    """Of networks nothing is kept."""
    return replace(
        traffic,
        time_s=traffic.time_s[which],
        node=traffic.node[which],
        read=traffic.read[which],
        written=traffic.written[which],
        network=None,
    )


def joined(traffic: Traffic) -> Traffic:
    """Rows in any order as ascending ones, what is of one time and node summed up."""
    time_s, node = traffic.time_s, traffic.node
    later = time_s[1:] > time_s[:-1]
    if (later | ((time_s[1:] == time_s[:-1]) & (node[1:] > node[:-1]))).all():
        return traffic
    traffic = rows(traffic, np.lexsort((node, time_s)))
    time_s, node = traffic.time_s, traffic.node
    first = np.flatnonzero(np.concatenate([[True], (time_s[1:] != time_s[:-1]) | (node[1:] != node[:-1])]))
    return replace(
        traffic,
        time_s=time_s[first],
        node=node[first],
        read=np.add.reduceat(traffic.read, first),
        written=np.add.reduceat(traffic.written, first),
    )
