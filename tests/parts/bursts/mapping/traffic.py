"""Small traffic for tests of mappings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Traffic


def traffic(machine: Machine, intervals: Iterable[Mapping[int, int]], begin: int = 0) -> Traffic:
    """Of each interval: node → bytes; half of them read."""
    rows = [
        (begin + 10 * number, node, moved)
        for number, interval in enumerate(intervals)
        for node, moved in sorted(interval.items())
    ]
    columns = np.array(rows, np.int64).reshape(-1, 3)
    read = columns[:, 2] // 2
    return Traffic(
        machine.nodes, 10.0, columns[:, 0], columns[:, 1].astype(np.int32), read, columns[:, 2] - read
    )
