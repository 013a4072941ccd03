"""Darshan log → workload, by the paper's method (section 6.3, after Snyder et al.'s IOWA).

Files in the order of their first opens. Of each file that a rank used: idle time = from its first open to its last
close, less the time in reads and writes; idle time and bytes are spread evenly between the two over equal requests;
then the activities of all files of a rank are merged by time. A rank does one thing at a time: what is idle time of
one file is, where the rank was busy with another, that other one's time. Idle time is kept as the rank's own
(`delay_s`): I/O that becomes faster or slower moves what comes after it.

What a trace (DXT) has is played at its own times, offsets and lengths (`earliest_s`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import BadInput
from tarazu.sim.workloads.operations import at_least
from tarazu.sim.workloads.uses import Timed, by_counters, by_trace, merge, spread, window
from tarazu.sim.workloads.workload import File, Workload
from tarazu.trace.darshan.log import SEGMENT, DarshanLog
from tarazu.trace.darshan.read import segments
from tarazu.trace.places import linked_names

REQUESTS = 8
"""Equal requests over which the bytes of a file and rank are spread, never more than were logged: enough to lie
between other files' requests, few enough for 65,536 ranks."""
MOST_OPERATIONS = 4_000_000
"""Shared records of many ranks are spread over fewer requests, then over fewer ranks, so that there are not more."""


class _Chosen(NamedTuple):
    """The accesses that are played, and which file each belongs to."""

    accesses: NDArray[np.void]
    file: NDArray[np.int64]
    records: list[int]
    """Of each file, in the order of first opens."""


def workload(
    log: DarshanLog,
    *,
    requests: int = REQUESTS,
    mount: str = "",
    ranks_per_node: int = 1,
    placement: bool = True,
    trace: bool = True,
) -> Workload:
    """The files of a log that moved bytes, and what each rank did to them.

    requests: over how many equal requests the bytes of a file and rank are spread; mount: only files below it (by
    default those on the Lustre file systems that the log names, else all with a path); ranks_per_node: Darshan does
    not log it; placement: files keep the layouts and OSTs of the log where it has them whole; trace: DXT's times are
    used where it is complete. Raises BadInput when nothing is left.
    """
    at_least(log.path, 1, requests=requests, ranks_per_node=ranks_per_node)
    chosen = _choose(log, mount)
    assumed = [gap.text for gap in log.gaps if gap.kind in ("partial", "mmap", "no-io")]
    traced = segments(log) if trace else np.zeros(0, SEGMENT)
    whole = _complete(chosen, traced, assumed)
    counted = ~whole[chosen.file] | chosen.accesses["stdio"]
    ranks = max(log.ranks, int(chosen.accesses["rank"].max()) + 1, 1)
    uses = spread(
        chosen.accesses[counted],
        chosen.file[counted],
        ranks,
        requests,
        MOST_OPERATIONS,
        assumed,
    )
    files = _files(log, chosen, placement, assumed)
    timed = [by_counters(uses)]
    if whole.any():
        timed.append(_traced(chosen, traced, whole))
    operations = merge(timed, np.array([file.exists for file in files], np.bool_))
    return Workload(
        log.application or "unknown",
        ranks,
        ranks_per_node,
        files,
        operations,
        assumed=tuple(assumed),
    )


# Which files


def _choose(log: DarshanLog, mount: str) -> _Chosen:
    moved = log.accesses["read_bytes"] + log.accesses["written_bytes"] > 0
    accesses = log.accesses[moved]
    wanted = _wanted(log, mount, accesses["record"].tolist())
    keep = np.array([wanted(record) for record in accesses["record"].tolist()], np.bool_)
    accesses = accesses[keep]
    if not len(accesses):
        raise BadInput(
            log.path, f"files with bytes read or written{f' below {mount}' if mount else ''}", "none"
        )
    open_s = window(accesses)[0]
    order = np.lexsort((accesses["record"], open_s))
    ids, first, inverse = np.unique(accesses["record"][order], return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    number = np.empty(len(ids), np.int64)
    number[by_first] = np.arange(len(ids))
    return _Chosen(accesses[order], number[inverse.ravel()], ids[by_first].tolist())


def _wanted(log: DarshanLog, mount: str, moved: list[int]) -> Callable[[int], bool]:
    """By record id: is it played? `moved`: the records that moved bytes."""
    root = mount.rstrip("/") + "/"
    linked = linked_names(log)
    streams = ("<STDIN>", "<STDOUT>", "<STDERR>")

    def below(record: int) -> bool:
        name = log.names.get(record, "")
        return name.startswith(root) or linked.get(name, "").startswith(root)

    def on_lustre(record: int) -> bool:
        held = log.mount_of(log.names.get(record, ""))
        return record in log.layouts or (held is not None and held.kind == "lustre")

    def any_file(record: int) -> bool:
        return log.names.get(record, "") not in streams

    if mount:
        return below
    return on_lustre if any(map(on_lustre, moved)) else any_file


def _files(log: DarshanLog, chosen: _Chosen, placement: bool, assumed: list[str]) -> tuple[File, ...]:
    count, rows_ = len(chosen.records), chosen.accesses
    read_end, written_end = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.maximum.at(read_end, chosen.file, rows_["read_end_bytes"])
    np.maximum.at(written_end, chosen.file, rows_["written_end_bytes"])
    first = np.full((2, count), np.inf)
    for number, name in enumerate(("read", "write")):
        moved = rows_[f"{name}_start_s"] > 0
        np.minimum.at(first[number], chosen.file[moved], rows_[f"{name}_start_s"][moved])
    # Read before anything was written, or where nothing was: somebody had written it before.
    exists = (read_end > written_end) | (first[0] < first[1])
    sizes = np.maximum(read_end, written_end).tolist()
    files = []
    unplaced = 0
    for record, size, there in zip(chosen.records, sizes, exists.tolist(), strict=True):
        held = log.layouts.get(record) if placement else None
        if held is not None and (held.known_bytes < size or held.mirrors > 1):
            held = None
        unplaced += held is None
        files.append(
            File(
                log.names.get(record, f"record {record}"),
                size,
                there,
                held.layout if held else None,
                held.osts if held and held.placed else None,
            )
        )
    if placement and unplaced:
        assumed.append(
            f"{unplaced} of {count} files: the log has no whole layout, the study's rule gives one"
        )
    return tuple(files)


# What was traced


def _complete(chosen: _Chosen, traced: NDArray[np.void], assumed: list[str]) -> NDArray[np.bool_]:
    """Of each file: the trace has all the bytes that POSIX counted."""
    counted, seen = np.zeros((2, len(chosen.records)), np.int64), np.zeros((2, len(chosen.records)), np.int64)
    posix = ~chosen.accesses["stdio"]
    for number, name in enumerate(("read_bytes", "written_bytes")):
        np.add.at(counted[number], chosen.file[posix], chosen.accesses[name][posix])
    mine, file = _of_files(chosen, traced)
    np.add.at(seen, (mine["write"].astype(np.int64), file), mine["bytes"])
    whole = (counted == seen).all(0) & (counted.sum(0) > 0)
    lost = int(((seen.sum(0) > 0) & ~whole).sum())
    if lost:
        assumed.append(
            f"{lost} files: the trace lacks bytes that the counters have, so the counters are used"
        )
    return np.asarray(whole, np.bool_)


def _of_files(chosen: _Chosen, traced: NDArray[np.void]) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """The segments of these files, and which file each belongs to."""
    ids = np.array(chosen.records, np.uint64)
    order = np.argsort(ids)
    place = np.searchsorted(ids[order], traced["record"])
    place = np.minimum(place, len(ids) - 1)
    known = ids[order][place] == traced["record"]
    return traced[known], order[place[known]]


def _traced(chosen: _Chosen, traced: NDArray[np.void], whole: NDArray[np.bool_]) -> Timed:
    segments_, file = _of_files(chosen, traced)
    segments_, file = segments_[whole[file]], file[whole[file]]
    opened, closed = window(chosen.accesses)
    pairs = zip(chosen.file.tolist(), chosen.accesses["rank"].tolist(), strict=True)
    windows = dict(zip(pairs, zip(opened.tolist(), closed.tolist(), strict=True), strict=True))
    return by_trace(segments_, file, windows)
