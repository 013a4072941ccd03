"""Traced calls (DXT) → parts with times, offsets and sizes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tarazu.trace.phases.phase import Api, Operation, PhasePart

Key = tuple[int | str, Operation]
"""A file and what was done to it."""


def parts_of_calls(
    calls: NDArray[np.void],
    api: Api,
    distance_s: float,
    offsets: bool,
    opens: Mapping[Key, int],
    collective: Mapping[Key, int],
    requests: Mapping[Key, int],
) -> Iterator[PhasePart]:
    """Parts of `calls` (dtype SEGMENT), a new one after each pause of a rank of more than `distance_s`.

    What a trace does not have (opens, collective calls), each part gets by its part of the counted `requests`.
    """
    if not len(calls):
        return
    calls = calls[np.lexsort((calls["start_s"], calls["rank"], calls["write"], calls["record"]))]
    begins = np.ones(len(calls), np.bool_)
    begins[1:] = False
    for column in ("record", "write", "rank"):
        begins[1:] |= calls[column][1:] != calls[column][:-1]
    streams = np.cumsum(begins, dtype=np.int64)
    latest = _running_maximum(calls["end_s"], streams)
    before = np.concatenate([[0.0], latest[:-1]])
    offset_ends = calls["offset"] + calls["bytes"]
    follows = np.concatenate([[False], (calls["offset"][1:] == offset_ends[:-1]) & ~begins[1:]])
    behind = np.concatenate([[False], (calls["offset"][1:] >= offset_ends[:-1]) & ~begins[1:]])
    pauses = begins | (calls["start_s"] > before + distance_s)
    # Only what is not covered by the calls before counts: those of several threads overlap.
    busy = np.maximum(
        calls["end_s"] - np.where(begins, calls["start_s"], np.maximum(calls["start_s"], before)), 0
    )
    edges = [*np.flatnonzero(pauses).tolist(), len(calls)]
    for first, last in pairwise(edges):
        of = calls[first:last]
        file, number = int(of["record"][0]), last - first
        operation: Operation = "write" if of["write"][0] else "read"
        share = number / max(requests.get((file, operation), 0), number)
        sizes, counts = np.unique(of["bytes"], return_counts=True)
        yield PhasePart(
            file=file,
            api=api,
            operation=operation,
            rank=int(of["rank"][0]),
            ranks=1,
            start_s=float(of["start_s"][0]),
            end_s=float(latest[last - 1]),
            bytes=int(of["bytes"].sum()),
            io_s=float(busy[first:last].sum()),
            requests=number,
            # A part begins with a request that follows none.
            consecutive=int(follows[first + 1 : last].sum()) if offsets else -1,
            sequential=int(behind[first + 1 : last].sum()) if offsets else 0,
            opens=round(opens.get((file, operation), 0) * share),
            collective=round(collective.get((file, operation), 0) * share),
            sizes=tuple(zip(sizes.tolist(), counts.tolist(), strict=True)),
            timed=True,
        )


def _running_maximum(values: NDArray[np.float64], streams: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest value so far within each stream; streams are ascending numbers, values positive."""
    # Ranks of a rank order keep their precision, sums of times and numbers of streams do not.
    order = np.argsort(values, kind="stable")
    place = np.empty(len(values), np.int64)
    place[order] = np.arange(len(values))
    highest = np.maximum.accumulate(place + streams * len(values)) - streams * len(values)
    maxima: NDArray[np.float64] = values[order[highest]]
    return maxima
