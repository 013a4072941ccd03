"""Links of a kind: one in each direction for each thing that has a number."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tarazu.sim.kernel.network import Network

Links = NDArray[np.int64]
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Direction(IntEnum):
    """Which way bytes go."""

    WRITE = 0
    READ = 1


def pair(network: Network, count: int, bytes_per_s: float, name: str) -> tuple[Links, Links] | None:
    """Links number 0 to `count` - 1 for writes and for reads; None where nothing limits them."""
    if math.isinf(bytes_per_s):
        return None
    write, read = (
        np.array(
            [network.link(bytes_per_s, f"{name} {i}, {d.name.lower()}s") for i in range(count)], np.int64
        )
        for d in Direction
    )
    return write, read
