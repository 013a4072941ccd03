"""A workload: the files of one job and what each of its ranks does to them, in order."""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.model import Layout


class OperationKind(IntEnum):
    """What an operation does. A barrier waits for all ranks of the job; it has no file (-1) and no bytes."""

    CREATE = 0
    OPEN = 1
    WRITE = 2
    READ = 3
    CLOSE = 4
    BARRIER = 5


OPERATION = np.dtype(
    [
        ("rank", np.int32),
        ("file", np.int32),  # index into Workload.files; -1 for a barrier
        ("kind", np.int8),  # Kind
        ("delay_s", np.float64),  # the rank's own time between its last operation's end and this one
        (
            "earliest_s",
            np.float64,
        ),  # not before this time after the start of the job; 0 where nothing is known
        ("offset", np.int64),  # of the first byte in the file
        ("bytes", np.int64),
        ("span_bytes", np.int64),  # the bytes lie evenly in [offset, offset + span); = bytes when contiguous
    ]
)
"""One operation of one rank. A rank does its operations one after another, in the order in which they stand."""


class File(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file of a workload."""

    key: str
    size_bytes: int
    """When the job has ended; of a file that is only read: what it has."""
    exists: bool = False
    """There before the job: somebody wrote it earlier, and it was placed then."""
    layout: Layout | None = None
    """As logged; None: the study's rule gives one."""
    osts: tuple[tuple[int, ...], ...] | None = None
    """As logged, by component; None: the policy decides."""


class Workload(msgspec.Struct, frozen=True):
    """One job as the simulator plays it: rank r runs on node r // ranks_per_node."""

    name: str
    ranks: int
    ranks_per_node: int
    files: tuple[File, ...]
    operations: NDArray[np.void]
    """Of dtype OPERATION; sorted by rank, each rank's in order."""
    stand_in: str = ""
    """Empty for what was recorded; else which published figures the generator was made to meet."""
    assumed: tuple[str, ...] = ()
    """What was taken for true where the record says nothing, a line each."""
    call_bytes: NDArray[np.int64] | None = None
    """(operations,) bytes of one call of each: an operation is many calls. None, 0: one. Counts where requests cost
    something (`ClusterSpec.costs`)."""

    @property
    def nodes(self) -> int:
        return -(-self.ranks // self.ranks_per_node)

    def moved_bytes(self, kind: OperationKind) -> int:
        """Bytes of all operations of that kind."""
        of_kind = self.operations["kind"] == kind
        return int(self.operations["bytes"][of_kind].sum())
