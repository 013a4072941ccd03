"""From what ranks did to files, as Darshan has it, to operations in time: the arithmetic of `darshan.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.model import ANY_RANK
from tarazu.sim.workloads.operations import even_parts, rows, within
from tarazu.sim.workloads.workload import OperationKind

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

USE = np.dtype(
    [
        ("rank", np.int64),
        ("file", np.int64),
        ("open_s", np.float64),
        ("close_s", np.float64),
        ("read_s", np.float64),
        ("write_s", np.float64),
        ("read_first", np.bool_),
        ("requests", np.int64),
        ("read_bytes", np.int64),
        ("read_from", np.int64),  # the bytes lie in [from, end)
        ("read_end", np.int64),
        ("written_bytes", np.int64),
        ("written_from", np.int64),
        ("written_end", np.int64),
    ]
)
"""What one rank did to one file. Seconds after the start of the job, but read_s and write_s: time spent."""


class Timed(NamedTuple):
    """Operations and when each was under way, in seconds after the start of the job."""

    operations: NDArray[np.void]
    start_s: Floats
    end_s: Floats
    traced: bool
    """The times are those of the calls themselves."""


def window(accesses: NDArray[np.void]) -> tuple[Floats, Floats]:
    """From the first open to the last close; where one was not seen, from or to the reads and writes."""
    starts = np.stack([accesses[name] for name in ("open_start_s", "read_start_s", "write_start_s")])
    starts = np.where(starts > 0, starts, np.inf)
    first = np.where(np.isfinite(starts[0]), starts[0], starts.min(0))
    open_s = np.where(np.isfinite(first), first, 0.0)
    ends = [accesses[name] for name in ("close_end_s", "read_end_s", "write_end_s")]
    return open_s, np.maximum.reduce([open_s, *ends])


def spread(
    accesses: NDArray[np.void], file: Integers, ranks: int, requests: int, most: int, assumed: list[str]
) -> NDArray[np.void]:
    """Accesses → uses, of dtype USE; those that are summed over ranks become one of each rank.

    most: as many operations at the most, by fewer requests and then fewer ranks; what is done is added to `assumed`.
    """
    summed = (accesses["rank"] == ANY_RANK) & (ranks > 1)
    players = ranks
    if summed.any():
        shared = len(np.unique(file[summed]))
        kinds = (accesses["read_bytes"] > 0).astype(np.int64) + (accesses["written_bytes"] > 0)
        if int((2 + requests * kinds[summed]).sum()) * ranks > most:
            requests = 1
            players = max(1, min(ranks, most // max(1, int((2 + kinds[summed]).sum()))))
        over = f"{ranks} ranks" if players == ranks else f"{players} of {ranks} ranks"
        assumed.append(f"{shared} shared files, summed over all ranks in the log: bytes spread over {over}")
    owner, part = within(0, np.where(summed, players, 1))
    made, rank = _parts(accesses[owner], np.where(summed, players, 1)[owner], part)
    made["file"] = file[owner]
    made["rank"] = np.where(summed[owner], part * ranks // players, np.maximum(rank, 0))
    calls = np.maximum(accesses["reads"], accesses["writes"])[owner]
    per_part = -(-calls // np.where(summed, players, 1)[owner])
    made["requests"] = np.clip(per_part, 1, requests)
    for kind in ("read", "written"):
        length = made[f"{kind}_end"] - made[f"{kind}_from"]
        some = made[f"{kind}_bytes"] > 0
        made["requests"] = np.where(
            some, np.minimum(made["requests"], np.maximum(length, 1)), made["requests"]
        )
    return made


def _parts(accesses: NDArray[np.void], parts: Integers, part: Integers) -> tuple[NDArray[np.void], Integers]:
    """The part-th of so many parts of each access."""
    made = np.zeros(len(accesses), USE)
    made["open_s"], made["close_s"] = window(accesses)
    made["read_s"], made["write_s"] = (np.maximum(accesses[n], 0) / parts for n in ("read_s", "write_s"))
    reads, writes = (
        np.where(accesses[n] > 0, accesses[n], np.inf) for n in ("read_start_s", "write_start_s")
    )
    made["read_first"] = reads < writes
    for kind in ("read", "written"):
        moved, end = accesses[f"{kind}_bytes"], accesses[f"{kind}_end_bytes"]
        _, made[f"{kind}_bytes"] = even_parts(moved, parts, part)
        first = np.where(parts > 1, 0, _segment_starts(accesses, kind))
        # Where each of them moved all of it, as of an input that all ranks read, or there is less than a byte each.
        whole = (parts == 1) | (moved >= parts * end) | (end < parts)
        begin, length = even_parts(end, parts, part)
        made[f"{kind}_from"] = np.where(whole, first, begin)
        made[f"{kind}_end"] = np.where(whole, end, begin + length)
    return made, accesses["rank"]


def _segment_starts(accesses: NDArray[np.void], kind: str) -> Integers:
    """Where the bytes of each access begin, which end at its highest byte.

    One piece each, where those of all ranks in a file then do not overlap; else (strides, bytes written again)
    evenly from the file's beginning.
    """
    end, moved = accesses[f"{kind}_end_bytes"], accesses[f"{kind}_bytes"]
    begin = end - moved
    some = np.flatnonzero(moved > 0)
    order = some[np.lexsort((end[some], accesses["record"][some]))]
    record = accesses["record"][order]
    before = np.zeros(len(order), np.int64)
    before[1:] = np.where(record[1:] == record[:-1], end[order][:-1], 0)
    overlapping = np.unique(record[begin[order] < before])
    return np.where(np.isin(accesses["record"], overlapping), 0, np.maximum(begin, 0))


def by_counters(uses: NDArray[np.void]) -> Timed:
    """Open, requests, close of each use: idle time and bytes in equal parts between the open and the close."""
    io_s = uses["read_s"] + uses["write_s"]
    span_s = np.maximum(uses["close_s"] - uses["open_s"], io_s)
    ends_s = uses["open_s"] + span_s
    use, turn = within(0, uses["requests"])
    of = uses[use]
    number = of["requests"]
    begin_s = of["open_s"] + span_s[use] * turn / number + (span_s - io_s)[use] / number
    parts = []
    for kind, name, time_name in (
        (OperationKind.WRITE, "written", "write_s"),
        (OperationKind.READ, "read", "read_s"),
    ):
        other = "read_s" if kind is OperationKind.WRITE else "write_s"
        second = of["read_first"] if kind is OperationKind.WRITE else ~of["read_first"]
        # Not after the close by a rounding error.
        start_s = np.minimum(begin_s + np.where(second, of[other] / number, 0.0), ends_s[use])
        _, size = even_parts(of[f"{name}_bytes"], number, turn)
        offset, length = even_parts(of[f"{name}_end"] - of[f"{name}_from"], number, turn)
        some = size > 0
        made = rows(
            kind,
            of["rank"][some],
            of["file"][some],
            bytes=size[some],
            offset=(of[f"{name}_from"] + offset)[some],
            span_bytes=length[some],
        )
        parts.append((made, start_s[some], (start_s + of[time_name] / number)[some]))
    opens, closes = (
        rows(kind, uses["rank"], uses["file"]) for kind in (OperationKind.OPEN, OperationKind.CLOSE)
    )
    parts = [(opens, uses["open_s"], uses["open_s"]), *parts, (closes, ends_s, ends_s)]
    operations, started, ended = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Timed(operations, started, ended, False)


def by_trace(
    segments: NDArray[np.void], file: Integers, windows: Mapping[tuple[int, int], tuple[float, float]]
) -> Timed:
    """The calls of a trace, an open before and a close behind those of each rank and file.

    file: of each segment; windows: first open and last close by (file, rank), where they are known.
    """
    number = int(segments["rank"].max(initial=0)) + 1
    keys, inverse = np.unique(file * number + segments["rank"], return_inverse=True)
    pairs = np.stack([keys // number, keys % number])
    known = [windows.get(pair, (np.inf, -np.inf)) for pair in zip(*pairs.tolist(), strict=True)]
    first, last = np.array(known).reshape(-1, 2).T.copy()
    np.minimum.at(first, inverse, segments["start_s"])
    np.maximum.at(last, inverse, segments["end_s"])
    kinds = np.where(segments["write"], OperationKind.WRITE, OperationKind.READ)
    calls = rows(
        OperationKind.WRITE,
        segments["rank"],
        file,
        bytes=segments["bytes"],
        offset=np.maximum(segments["offset"], 0),
    )
    calls["kind"] = kinds
    opens, closes = (rows(kind, pairs[1], pairs[0]) for kind in (OperationKind.OPEN, OperationKind.CLOSE))
    return Timed(
        np.concatenate([opens, calls, closes]),
        np.concatenate([first, segments["start_s"], last]),
        np.concatenate([first, segments["end_s"], last]),
        True,
    )


def merge(timed: list[Timed], exists: NDArray[np.bool_]) -> NDArray[np.void]:
    """All operations by rank and time, each with its delay or, where it was traced, its earliest time.

    exists: of each file, by its number; the first open of one that does not is its creation.
    """
    operations = np.concatenate([of.operations for of in timed])
    start_s = np.concatenate([of.start_s for of in timed])
    end_s = np.concatenate([of.end_s for of in timed])
    traced = np.concatenate([np.full(len(of.operations), of.traced) for of in timed])
    opens = np.flatnonzero((operations["kind"] == OperationKind.OPEN) & ~exists[operations["file"]])
    opens = opens[np.lexsort((operations["rank"][opens], start_s[opens], operations["file"][opens]))]
    _, first = np.unique(operations["file"][opens], return_index=True)
    operations["kind"][opens[first]] = OperationKind.CREATE
    # At one moment: opens before requests before closes, each file's together.
    step = np.select(
        [operations["kind"] <= OperationKind.OPEN, operations["kind"] == OperationKind.CLOSE], [0, 2], 1
    )
    order = np.lexsort((step, start_s, operations["rank"]))
    operations, start_s, end_s, traced = operations[order], start_s[order], end_s[order], traced[order]
    operations["delay_s"] = np.where(
        traced, 0.0, np.maximum(start_s - _busy_until(operations["rank"], end_s), 0)
    )
    operations["earliest_s"] = np.where(traced, start_s, 0.0)
    return operations


def _busy_until(rank: NDArray[np.int32], end_s: Floats) -> Floats:
    """When all that a rank did before was done: the running maximum of the ends, shifted by one, from 0."""
    first = np.flatnonzero(np.concatenate([[True], rank[1:] != rank[:-1]]))
    group = np.cumsum(np.concatenate([[0], (rank[1:] != rank[:-1]).astype(np.int64)]))
    # Ranks of ends, not ends: exact, and later groups lie above.
    values, place = np.unique(end_s, return_inverse=True)
    running = np.maximum.accumulate(place.ravel() + group * len(values)) - group * len(values)
    before = np.concatenate([[0.0], values[running[:-1]]])
    before[first] = 0.0
    return before
