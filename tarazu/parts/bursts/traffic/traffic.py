"""What each compute node moved in each interval: columns of numpy, as they lie in a day's file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.int64]

UNKNOWN = -1
"""Of `network`: nobody counted it."""


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
    """(rows,): bytes besides Lustre's, sent and received; `UNKNOWN` where nobody counted them. None: nowhere."""

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def bytes(self) -> Bytes:
        """(rows,): read and written."""
        return self.read + self.written
