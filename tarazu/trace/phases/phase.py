"""One I/O phase (paper E, section 2), and the parts it is put together from (step 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from tarazu.malformed import described
from tarazu.model import ANY_RANK

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


THRESHOLD = 0.2
"""Share of requests that may be other than the rest of their phase (paper E, appendix A)."""


class PhasePart(msgspec.Struct, frozen=True, gc=False):
    """Of one (file, API, operation, rank); with a trace, between two pauses of that rank."""

    file: int | str
    api: Api
    operation: Operation
    rank: int
    """ANY_RANK: all ranks of the run."""
    ranks: int
    """How many: 1 but for ANY_RANK."""
    start_s: float
    end_s: float
    bytes: int
    io_s: float
    """Of the slowest of its ranks."""
    requests: int
    """0: not known."""
    consecutive: int = -1
    """Requests that begin where the one before ended; -1: not known."""
    sequential: int = 0
    """Those that begin there or behind it; -1: not known."""
    opens: int = 0
    """Each may begin anywhere; 0: not known."""
    collective: int = 0
    sizes: tuple[tuple[int, int], ...] = ()
    """(bytes of a request, how many)."""
    timed: bool = False
    """Times are those of the calls themselves."""


class AccessOrder(NamedTuple):
    """Sums over parts, of which follows in what order they went through their files."""

    requests: int
    firsts: int
    """First requests of a rank in a file: they follow none."""
    opens: int
    consecutive: int
    sequential: int
    collective: int


def order(parts: Iterable[PhasePart]) -> AccessOrder:
    """The sums; `consecutive` and `sequential` are negative where those of one part are not known."""
    requests = firsts = opens = consecutive = sequential = collective = 0
    known = ascending = True
    for part in parts:
        requests += part.requests
        firsts += min(part.ranks, part.requests)
        opens += min(max(part.opens, part.ranks), part.requests)
        known = known and part.consecutive >= 0
        ascending = ascending and part.sequential >= 0
        consecutive += part.consecutive
        sequential += part.sequential
        collective += part.collective
    return AccessOrder(
        requests,
        firsts,
        opens,
        consecutive if known else -1,
        sequential if ascending else -1,
        collective,
    )


def spatiality(found: AccessOrder, threshold: float = THRESHOLD) -> Spatiality:
    """Of requests that have one before them at least `1 - threshold` must be alike (paper E, appendix A, step 1).

    There a request without one before it counts as out of order, and four large requests of a rank can never be
    contiguous. Where files were opened again, the first request of each open may also stand for itself, as long as
    those are the smaller part.
    """
    if found.requests and found.collective >= (1 - threshold) * found.requests:
        return "collective"
    if found.consecutive < 0:
        return "unknown"
    following = [found.requests - found.firsts]
    if found.opens <= found.requests / 2:
        following.append(found.requests - found.opens)
    least = min((1 - threshold) * of for of in following) - 1e-9
    if found.consecutive >= least:
        return "contiguous"
    if found.sequential >= least:
        return "sequential"
    return "random" if found.sequential >= 0 else "unknown"


def io_s(parts: Sequence[PhasePart]) -> float:
    """Parallel I/O time of parts, which are in order of their start.

    Parts that overlap are one stretch: it takes as long as the slowest rank, whose own parts add up, and not longer
    than it lasts. Stretches follow each other and add up. SummarIO takes the longest part, which is wrong where
    files are used one after another.
    """
    total = shared = 0.0
    own: dict[int, float] = {}
    start = end = float("-inf")

    def stretch() -> float:
        return min(shared + max(own.values(), default=0.0), end - start) if end > start else 0.0

    for part in parts:
        if part.start_s > end:
            total += stretch()
            shared, own, start, end = 0.0, {}, part.start_s, part.end_s
        end = max(end, part.end_s)
        if part.rank == ANY_RANK:
            shared += part.io_s
        else:
            own[part.rank] = own.get(part.rank, 0.0) + part.io_s
    return total + stretch()


described(Phase)
