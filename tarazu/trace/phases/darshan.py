"""I/O phases of a Darshan log (paper E, appendix A): from its counters and HEATMAP, or by DXT from the calls."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import ceil, floor
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import TraceError
from tarazu.model import ANY_RANK
from tarazu.trace.darshan.log import DarshanLog, Heat, Module
from tarazu.trace.darshan.read import heat, library_tables, segments
from tarazu.trace.phases.calls import Key, parts_of_calls
from tarazu.trace.phases.combine import DISTANCE_S, combine
from tarazu.trace.phases.heat import split
from tarazu.trace.phases.phase import THRESHOLD, Api, Phase, PhasePart

Choice = Literal["top", "all", "POSIX", "STDIO", "MPI-IO", "HDF5", "PNETCDF"]
"""Of which interfaces: `top`, for each file the one that the program called; `all`: the same bytes several times."""

MODULES: dict[str, Api] = {
    "POSIX": "POSIX",
    "STDIO": "STDIO",
    "MPI-IO": "MPI-IO",
    "H5D": "HDF5",
    "PNETCDF_VAR": "PNETCDF",
}
_TRACES = {"POSIX": "DXT_POSIX", "MPI-IO": "DXT_MPIIO"}
_LEVEL: dict[Api, int] = {"POSIX": 0, "STDIO": 0, "MPI-IO": 1, "HDF5": 2, "PNETCDF": 2}
"""One calls those below it; POSIX and STDIO count each their own bytes."""
_STREAMS = ("<STDIN>", "<STDOUT>", "<STDERR>")

_BINS = (
    "0_100",
    "100_1K",
    "1K_10K",
    "10K_100K",
    "100K_1M",
    "1M_4M",
    "4M_10M",
    "10M_100M",
    "100M_1G",
    "1G_PLUS",
)
_ENDS = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
"""Largest size of each of _BINS but the last."""


def phases(
    log: DarshanLog,
    threshold: float = THRESHOLD,
    distance_s: float = DISTANCE_S,
    *,
    api: Choice = "top",
    wanted: Callable[[str], bool] | None = None,
) -> tuple[Phase, ...]:
    """Phases in order of their start; of the files whose names are `wanted`, and never of standard input and output.

    Raises TraceError for records that cannot be read or cannot be.
    """
    return combine(parts(log, distance_s, api=api, wanted=wanted), log.ranks, threshold, distance_s)


def parts(
    log: DarshanLog,
    distance_s: float = DISTANCE_S,
    *,
    api: Choice = "top",
    wanted: Callable[[str], bool] | None = None,
) -> tuple[PhasePart, ...]:
    """Step 1, before anything is put together."""
    left_out = {r for r, name in log.names.items() if name in _STREAMS or (wanted and not wanted(name))}
    phase_parts: list[PhasePart] = []
    heats: list[Heat] | None = None
    for module in {**log.modules, **library_tables(log)}.values():
        of = MODULES[module.name]
        if api not in ("top", "all", of):
            continue
        counted = _counted(log, module, left_out)
        trace = _TRACES.get(module.name, "")
        if counted and trace in log.present:
            calls = segments(log, trace)
            for name in ("start_s", "end_s"):
                if not np.isfinite(calls[name]).all():
                    raise TraceError(log.path, f"a finite {name} of each call in {trace}", "another")
            phase_parts += _with_calls(counted, calls, distance_s)
        else:
            if heats is None:
                heats = heat(log)
            phase_parts += split(counted, [each for each in heats if each.module == module.name], distance_s)
    return tuple(_top(phase_parts) if api == "top" else phase_parts)


def choices() -> tuple[str, ...]:
    return get_args(Choice)


def _top(found: Iterable[PhasePart]) -> Iterator[PhasePart]:
    """Of each file and operation, the parts of the uppermost interface that moved bytes."""
    found = list(found)
    level: dict[Key, int] = {}
    for part in found:
        key = (part.file, part.operation)
        level[key] = max(level.get(key, 0), _LEVEL[part.api])
    return (part for part in found if _LEVEL[part.api] == level[part.file, part.operation])


def _with_calls(
    counted: Sequence[PhasePart], calls: NDArray[np.void], distance_s: float
) -> Iterator[PhasePart]:
    """Parts by their traced calls; by the counters where the trace does not have all their bytes."""
    expected: defaultdict[Key, int] = defaultdict(int)
    opens: defaultdict[Key, int] = defaultdict(int)
    collective: defaultdict[Key, int] = defaultdict(int)
    requests: defaultdict[Key, int] = defaultdict(int)
    for part in counted:
        key = (part.file, part.operation)
        expected[key] += part.bytes
        opens[key] += part.opens
        collective[key] += part.collective
        requests[key] += part.requests
    traced: defaultdict[Key, list[PhasePart]] = defaultdict(list)
    offsets = counted[0].api == "POSIX"
    for part in parts_of_calls(calls, counted[0].api, distance_s, offsets, opens, collective, requests):
        traced[part.file, part.operation].append(part)
    whole = {key for key, of in traced.items() if sum(part.bytes for part in of) == expected.get(key)}
    for key in sorted(whole):
        yield from traced[key]
    yield from (part for part in counted if (part.file, part.operation) not in whole)


def _counted(log: DarshanLog, module: Module, left_out: set[int]) -> list[PhasePart]:
    prefix = module.name.replace("-", "")
    seconds = {
        name: module.fcounters[f"{prefix}_F_{name}"]
        for name in (
            *("READ_START_TIMESTAMP", "READ_END_TIMESTAMP", "WRITE_START_TIMESTAMP", "WRITE_END_TIMESTAMP"),
            *("READ_TIME", "WRITE_TIME", "META_TIME", "SLOWEST_RANK_TIME"),
        )
    }
    for name, values in seconds.items():
        if not np.isfinite(values).all():
            raise TraceError(log.path, f"a finite number for {prefix}_F_{name} of each file", "another")
    count = _ModuleCounters(module, prefix)
    made = []
    for operation, verb, past in (("read", "READ", "READ"), ("write", "WRITE", "WRITTEN")):
        sizes = _Sizes(module, prefix, verb)
        moved = count[f"BYTES_{past}"]
        requests = count.total(verb)
        for at in np.flatnonzero(moved > 0).tolist():
            file, rank = int(module.files[at]), int(module.ranks[at])
            if file in left_out:
                continue
            everyone = rank == ANY_RANK
            ranks = log.ranks if everyone else 1
            start = max(float(seconds[f"{verb}_START_TIMESTAMP"][at]), 0.0)
            busy = _busy_s(at, everyone, ranks, verb, seconds)
            made.append(
                PhasePart(
                    file=file,
                    api=MODULES[module.name],
                    operation="read" if operation == "read" else "write",
                    rank=0 if everyone and ranks == 1 else rank,
                    ranks=ranks,
                    start_s=start,
                    # fsync is time of writing and no timestamp of it.
                    end_s=max(float(seconds[f"{verb}_END_TIMESTAMP"][at]), start + busy),
                    bytes=int(moved[at]),
                    io_s=busy,
                    requests=max(int(requests[at]), 1),
                    consecutive=int(count[f"CONSEC_{verb}S"][at]) if module.name == "POSIX" else -1,
                    sequential=int(count[f"SEQ_{verb}S"][at]) if module.name == "POSIX" else 0,
                    opens=_share(
                        count["OPENS"][at], requests[at], count.total("READ")[at] + count.total("WRITE")[at]
                    ),
                    collective=int(count.collective(verb, requests)[at]),
                    sizes=sizes.of(at, int(moved[at])),
                )
            )
    return made


def _share(opens: np.int64, of: np.int64, requests: np.int64) -> int:
    """Opens of a file that is read and written are shared out by requests: Darshan counts them in one."""
    return -(-int(opens) * int(of) // int(requests)) if requests > 0 else 0


def _busy_s(at: int, everyone: bool, ranks: int, verb: str, seconds: dict[str, NDArray[np.float64]]) -> float:
    """Seconds of the slowest rank.

    The time of a reduced record is the sum over its ranks; that of the slowest one is known for reading, writing and
    metadata together, of which this operation has its part.
    """
    busy = max(float(seconds[f"{verb}_TIME"][at]), 0.0)
    if not everyone:
        return busy
    whole = sum(max(float(seconds[f"{of}_TIME"][at]), 0.0) for of in ("READ", "WRITE", "META"))
    slowest = float(seconds["SLOWEST_RANK_TIME"][at])
    mean = busy / ranks
    return min(max(slowest * busy / whole, mean), busy) if whole > 0 and slowest > 0 else mean


class _ModuleCounters:
    """Counters of a module by what is common to all; 0 where a module has no such counter, or does not know it."""

    def __init__(self, module: Module, prefix: str) -> None:
        self._module, self._prefix = module, prefix
        self._totals: dict[str, NDArray[np.int64]] = {}

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        values = self._module.counters.get(f"{self._prefix}_{name}")
        if values is None:
            return np.zeros(len(self._module), np.int64)
        return np.maximum(values, 0)

    def total(self, verb: str) -> NDArray[np.int64]:
        """Requests."""
        if verb not in self._totals:
            kinds = ("", "INDEP_", "COLL_", "SPLIT_", "NB_")
            self._totals[verb] = np.sum([self[f"{kind}{verb}S"] for kind in kinds], axis=0)
        return self._totals[verb]

    def collective(self, verb: str, requests: NDArray[np.int64]) -> NDArray[np.int64]:
        """Requests that all ranks of a file make together."""
        by_hdf5 = np.where(self["USE_MPIIO_COLLECTIVE"] > 0, requests, 0)
        return self[f"COLL_{verb}S"] + self[f"SPLIT_{verb}S"] + by_hdf5


class _Sizes:
    """The four most frequent sizes of requests of a record (ACCESS1 … 4), as far as they are of one operation.

    Darshan counts them for reads and writes together; the histogram by size is kept for each.
    """

    def __init__(self, module: Module, prefix: str, verb: str) -> None:
        aggregated = "" if module.name == "POSIX" else "AGG_"
        count = _ModuleCounters(module, prefix)
        self._sizes = [count[f"ACCESS{i}_ACCESS"] for i in range(1, 5)]
        self._counts = [count[f"ACCESS{i}_COUNT"] for i in range(1, 5)]
        mine = [count[f"SIZE_{verb}_{aggregated}{size}"] for size in _BINS]
        both = [
            count[f"SIZE_READ_{aggregated}{size}"] + count[f"SIZE_WRITE_{aggregated}{size}"] for size in _BINS
        ]
        self._mine, self._both = mine, both

    def of(self, at: int, moved: int) -> tuple[tuple[int, int], ...]:
        """(size, how many) of one record, of which this operation moved so many bytes."""
        estimates = []
        for sizes, counts in zip(self._sizes, self._counts, strict=True):
            size, number = int(sizes[at]), int(counts[at])
            place = bisect_left(_ENDS, size)
            both = int(self._both[place][at])
            if number and both:
                estimates.append((size, number * int(self._mine[place][at]) / both))
        # Where sizes of reads and of writes stand in one bin, the bytes tell which were whose.
        options = product(*({floor(share), ceil(share)} for _, share in estimates))
        best = min(
            options,
            key=lambda numbers: abs(
                moved - sum(n * size for n, (size, _) in zip(numbers, estimates, strict=True))
            ),
        )
        chosen = [(size, n) for n, (size, _) in zip(best, estimates, strict=True) if n]
        return tuple(sorted(chosen, key=lambda one: (-one[1], -one[0])))
