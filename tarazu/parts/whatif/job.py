"""What one logged job wrote to one Lustre file system: its files, where they lay, and what cannot be told of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tarazu.allocate.problem import Array
from tarazu.errors import TraceError
from tarazu.model import Layout
from tarazu.trace.darshan.log import DarshanLog, LoggedLayout
from tarazu.trace.places import lustre_mounts
from tarazu.units import counted, human_bytes

MOST_UNKNOWN = 0.01
"""Share of the bytes written of which so much may be unknown; beyond, figures that rest on all bytes are left out."""
SPARSE = 0.9
"""A file of several objects of which less than this share was written: which of them got the bytes is not known."""
MOST_BYTES = 2**53
"""Sums are exact below; a log with more is damaged."""

NO_RECORDS = (
    "the log has no Lustre records (Darshan without its Lustre module): where its files lay is not known"
)
_SEVERAL = "on Lustre, but below none of its mounts, of which the log has several: on which is not known"
UNNAMED = "a file system that the log does not name"
IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs", "proc", "sysfs", "devpts", "cgroup", "cgroup2", "hugetlbfs"}
STREAMS = ("<STDIN>", "<STDOUT>", "<STDERR>")


class WrittenFile(msgspec.Struct, frozen=True):
    """One file that the job wrote; times in seconds after the start of the job."""

    name: str
    size_bytes: int
    """That the job wrote of it: no byte counts twice."""
    written_bytes: int
    """By all calls: more than the size where something was written again."""
    layout: Layout
    osts: tuple[tuple[int, ...], ...]
    """By component."""
    start_s: float
    """First write began."""
    end_s: float
    """Last write returned."""
    write_s: float
    """Time spent in all its writes, added up over processes."""
    existed: bool = False
    """There before: it was read before it was written, or beyond what was written. No allocator would place it."""
    writers: int = 1
    """Processes that wrote it, as far as the log tells them apart."""


class LoggedJob(msgspec.Struct, frozen=True):
    """One job on one Lustre file system."""

    log: str
    """Path of the log."""
    application: str
    ranks: int
    run_time_s: float
    """0: not known."""
    mount: str
    """Empty where names do not tell."""
    files: tuple[WrittenFile, ...]
    """Those whose bytes can be told OST by OST."""
    osts: tuple[int, ...]
    """All that the log names on this file system, sorted, also those that were only read from."""
    unknown_bytes: int = 0
    """Written to files that are not among `files`."""
    untimed_bytes: int = 0
    """Of what is in `files`, written by calls whose times say nothing of OSTs (STDIO)."""
    notes: tuple[str, ...] = ()
    """What the log cannot tell, a line each."""
    why_no_figures: str = ""
    """Why nothing that rests on all bytes can be said; empty: it can."""
    why_no_times: str = ""
    """The same for times."""

    @property
    def written_bytes(self) -> int:
        return sum(f.written_bytes for f in self.files) + self.unknown_bytes

    @property
    def new_files(self) -> tuple[WrittenFile, ...]:
        return tuple(f for f in self.files if not f.existed)


class LoggedJobs(NamedTuple):
    """What is in one log."""

    jobs: list[LoggedJob]
    """One for each Lustre file system that the log's job wrote to."""
    notes: list[str]
    """What is to be said of the log as a whole."""
    elsewhere: dict[str, int]
    """Type of file system → bytes written to it, which are in no job; the empty one: not known."""
    need_assumed: bool
    """Nothing was on Lustre: with `assumed` the files are taken as if they had been."""


def jobs(log: DarshanLog, assumed: Layout | None = None) -> LoggedJobs:
    """assumed: layout of the files of a log without Lustre records, whose OSTs stay unknown. Where such a log names no
    Lustre either, all files but those in memory are taken as if they were on one.
    """
    notes = [gap.text for gap in log.gaps if gap.kind in ("partial", "unended", "anonymised")]
    accesses = _by_record(log)
    placed: dict[str, list[dict[str, Any]]] = {}
    elsewhere: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    lustre = lustre_mounts(log)
    anywhere = bool(log.gap("no-lustre")) and not lustre
    as_if = assumed is not None and anywhere
    taken: Counter[str] = Counter()
    for record in accesses:
        name = log.names.get(record["record"], "")
        if name in STREAMS:
            continue
        mount = log.mount_of(name)
        layout = log.layouts.get(record["record"])
        on_lustre = mount is not None and mount.path in lustre
        if layout and not on_lustre and len(lustre) <= 1:
            where = lustre[0] if lustre else ""
        elif layout and not on_lustre:
            lost[_SEVERAL] += record["written_bytes"]
            continue
        elif as_if and (mount is None or mount.kind not in IN_MEMORY):
            where = ""
            taken[mount.kind if mount else ""] += record["written_bytes"]
        elif mount is None or (mount.kind != "lustre" and layout is None):
            elsewhere[mount.kind if mount else ""] += record["written_bytes"]
            continue
        else:
            where = mount.path
        if layout is None and assumed and log.gap("no-lustre"):
            layout = LoggedLayout(assumed, ())
        placed.setdefault(where, []).append({**record, "name": name, "layout": layout})
    notes += [f"{human_bytes(size)} were written to files {why}" for why, size in lost.items()]
    kinds = ", ".join(kind or UNNAMED for kind in sorted(+taken))
    if kinds:
        notes.append(f"its files were on {kinds}: compared as if they were on Lustre")
    made = [
        job for where, records in sorted(placed.items()) if (job := _job(log, where, records)).written_bytes
    ]
    for kind, size in (+elsewhere).items() if made else ():
        notes.append(f"{human_bytes(size)} were written to {kind or UNNAMED}, no Lustre")
    if not made and not +elsewhere:
        notes[:0] = [gap.text for gap in log.gaps if gap.kind in ("no-io", "no-bytes")]
    need = anywhere and assumed is None and not set(+elsewhere) <= IN_MEMORY
    return LoggedJobs(made, notes, dict((+elsewhere).most_common()), need)


def _by_record(log: DarshanLog) -> list[dict[str, Any]]:
    """The accesses of each record, summed up over ranks and modules, in the order of their first access."""
    rows = log.accesses
    if not len(rows):
        return []
    ids, first, place = np.unique(rows["record"], return_index=True, return_inverse=True)
    count = len(ids)

    def total(name: str, chosen: Any = None) -> Any:
        values = rows[name] if chosen is None else np.where(chosen, rows[name], 0)
        sums = np.bincount(place, values.astype(float), count)
        if name.endswith("bytes") and sums.sum() >= MOST_BYTES:
            raise TraceError(log.path, "less than 8 PiB in one log", f"{sums.sum():.0f} {name}")
        return sums

    def edge(ufunc: Any, name: str, chosen: Any, nothing: float) -> Any:
        out = np.full(count, nothing)
        ufunc.at(out, place[chosen], rows[name][chosen].astype(float))
        return out

    wrote, read = rows["written_bytes"] > 0, rows["read_bytes"] > 0
    every = np.ones(len(rows), bool)
    columns = {
        "written_bytes": total("written_bytes").astype(np.int64),
        "stdio_bytes": total("written_bytes", rows["stdio"]).astype(np.int64),
        "read_bytes": total("read_bytes").astype(np.int64),
        "end_bytes": edge(np.maximum, "written_end_bytes", every, 0).astype(np.int64),
        "read_end_bytes": edge(np.maximum, "read_end_bytes", every, 0).astype(np.int64),
        "mmaps": total("mmaps").astype(np.int64),
        "writers": _distinct(place[wrote], rows["rank"][wrote], count),
        "write_s": total("write_s"),
        "start_s": edge(np.minimum, "write_start_s", wrote, np.inf),
        "end_s": edge(np.maximum, "write_end_s", wrote, 0.0),
        "read_start_s": edge(np.minimum, "read_start_s", read, np.inf),
    }
    order = np.argsort(first, kind="stable")
    lists = {name: values[order].tolist() for name, values in columns.items()}
    return [
        {"record": int(record), **dict(zip(lists, values, strict=True))}
        for record, values in zip(ids[order].tolist(), zip(*lists.values(), strict=True), strict=True)
    ]


def _distinct(place: Array, of: Array, count: int) -> Array:
    """(count,) how many different values there are at each place."""
    pairs = np.unique(np.column_stack([place, of]), axis=0)
    return np.bincount(pairs[:, 0], minlength=count)


def _job(log: DarshanLog, mount: str, records: Sequence[dict[str, Any]]) -> LoggedJob:
    odd = log.affected(("odd-layout", "mirrored", "no-osts"))
    files, unknown, osts = [], Counter[str](), set[int]()
    untimed = again = mapped = summed = 0
    of_all = log.affected(("shared",))
    for record in records:
        layout: LoggedLayout | None = record["layout"]
        if layout:
            osts.update(index for part in layout.osts for index in part)
        written = record["written_bytes"]
        mapped += bool(record["mmaps"])
        if not written:
            continue
        summed += record["record"] in of_all
        why = _why_unknown(record, layout, record["record"] in odd)
        if why or layout is None:
            unknown[why] += written
            continue
        size = min(record["end_bytes"], written)
        if not record["end_s"] > record["start_s"] or record["stdio_bytes"] > written / 2:
            untimed += written
        again += written - size
        files.append(
            WrittenFile(
                record["name"],
                size,
                written,
                layout.layout,
                layout.osts,
                min(record["start_s"], record["end_s"]),
                record["end_s"],
                record["write_s"],
                _existed(record),
                log.ranks if record["record"] in of_all else max(1, record["writers"]),
            )
        )
    return _with_words(
        LoggedJob(
            log.path, log.application, log.ranks, log.run_time_s, mount, tuple(files), tuple(sorted(osts)),
            sum(unknown.values()), untimed,
        ),
        log, unknown, again, mapped, summed,
    )  # fmt: skip


def _existed(record: dict[str, Any]) -> bool:
    return bool(
        record["read_bytes"]
        and (record["read_start_s"] < record["start_s"] or record["read_end_bytes"] > record["end_bytes"])
    )


def _why_unknown(record: dict[str, Any], layout: LoggedLayout | None, odd: bool) -> str:
    """Why the bytes of a written file cannot be told OST by OST; empty where they can."""
    if layout is None:
        return "without a record of their layout"
    if odd or layout.mirrors > 1:
        return "with a layout that is not striped as RAID 0, mirrored or without OSTs"
    if not layout.osts and record["written_bytes"] >= SPARSE * record["end_bytes"]:
        return ""  # assumed: it may be placed, and nothing is said of where it was
    if layout.known_bytes < record["end_bytes"]:
        return "longer than the components that had objects when they were opened"
    if not layout.placed:
        return "whose layout names no OSTs"
    if record["mmaps"]:
        return "that were also mapped into memory"
    several = sum(map(len, layout.osts)) > 1
    if several and record["written_bytes"] < SPARSE * record["end_bytes"]:
        return "written in parts (sparse, or changed in place): which objects got the bytes"
    return ""


def _with_words(
    job: LoggedJob, log: DarshanLog, unknown: Counter[str], again: int, mapped: int, summed: int
) -> LoggedJob:
    """The job with what is to be said of it, and which figures it cannot have."""
    notes = []
    total = job.written_bytes
    for why, size in unknown.most_common():
        tail = " is not known" if why.endswith("bytes") else ""
        notes.append(f"{human_bytes(size)} ({size / total:.1%}) were written to files {why}{tail}: left out")
    if mapped:
        notes.append(
            f"mapped into memory: {counted(mapped, 'file')}; what was written through the mapping is not counted"
        )
    if again > MOST_UNKNOWN * total:
        notes.append(f"{human_bytes(again)} were written over earlier bytes: taken as even over each file")
    if there := [f for f in job.files if f.existed]:
        stays = human_bytes(sum(f.written_bytes for f in there))
        notes.append(
            f"there before: {counted(len(there), 'file')}; the {stays} written there stay where they are"
        )
    if summed:
        notes.append(
            f"summed over all ranks: {counted(summed, 'file')}; which rank wrote what is not known, and not needed here"
        )
    why = ""
    if log.gap("no-lustre"):
        why = NO_RECORDS
    elif log.partial:
        why = "the log is partial: files are missing in it"
    elif job.unknown_bytes > MOST_UNKNOWN * total:
        why = f"where {job.unknown_bytes / total:.0%} of the bytes lay is not known"
    elif not job.files:
        why = "no file whose place is known"
    timeless = why
    if not why and job.untimed_bytes > MOST_UNKNOWN * total:
        share = f"{job.untimed_bytes / total:.0%} of the bytes"
        timeless = f"{share} have no times of their own (STDIO, or a write that ends before it begins)"
    return msgspec.structs.replace(job, notes=tuple(notes), why_no_figures=why, why_no_times=timeless)
