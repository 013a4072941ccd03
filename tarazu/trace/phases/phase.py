"""One I/O phase (paper E, section 2)."""

from __future__ import annotations

from typing import Literal

import msgspec

Operation = Literal["read", "write"]
Api = Literal["POSIX", "STDIO", "MPI-IO", "HDF5", "PNETCDF"]
Spatiality = Literal["contiguous", "sequential", "random", "collective", "unknown"]
"""`contiguous` (consecutive), `sequential` (ascending with gaps: 1D-strided) and `random` where offsets are known;
`collective` or `unknown` where they are not (MPI-IO)."""
Sharing = Literal["shared", "unique"]
"""One file for several ranks, or files of one rank each (file per process)."""


class Phase(msgspec.Struct, frozen=True, omit_defaults=True):
    """What ranks did together between two moments."""

    start_s: float
    end_s: float
    """Seconds after the start of the run."""
    operation: Operation
    ranks: tuple[int, ...] | None
    """Ranks that took part, ascending; None: all of the run, where the log does not say which."""
    rank_count: int
    bytes: int
    io_s: float
    """Seconds spent in I/O by the slowest rank: the phase's parallel I/O time. 0: not known."""
    api: Api
    requests: int
    """0: not known."""
    spatiality: Spatiality
    sharing: Sharing
    files: int
    processes_per_file: int
    """The most frequent number of ranks per file (mode)."""
    request_sizes: tuple[tuple[int, int], ...] = ()
    """(bytes, how many), the most frequent first; Darshan keeps four for each file (`ACCESS*`). Empty: not known."""
