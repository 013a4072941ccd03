"""An open log: what is in its regions, as arrays. Records of older versions read as those of the newest."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import TraceError
from tarazu.trace.darshan.counters import FOPENS, NEWEST, UNSIGNED, VERSION, columns
from tarazu.trace.darshan.log import SEGMENT, DarshanMount, Module
from tarazu.trace.darshan.regions import Regions, open_regions

_OF_FILES = ("H5D", "PNETCDF_VAR")
"""Modules whose records are parts of files."""
_METADATA = 1024
_JOB = {
    True: ("uid", "start_s", "start_ns", "end_s", "end_ns", "ranks", "job_id"),
    False: ("uid", "start_s", "end_s", "ranks", "job_id"),
}
"""Is the format 3.41 or later → the integers that a job begins with."""
_HEAD = (("record", "u8"), ("rank", "i8"), ("components", "i8"), ("stripes", "i8"))
_COMPONENT = (("counters", "i8", (7,)), ("pool", "S16"))
"""`struct darshan_lustre_component`; in the log, a record is a head, its components, and their OSTs."""
_PLAIN = (("record", "u8"), ("rank", "i8"), ("counts", "i8", (3,)), ("stripe_size", "i8"), ("stripes", "i8"))
"""Head of a LUSTRE record before Darshan 3.5; its OSTs follow."""
_TRACE = (
    ("record", "u8"),
    ("rank", "i8"),
    ("shared", "i8"),
    ("host", "S64"),
    ("writes", "i8"),
    ("reads", "i8"),
)
_CALL = (("offset", "i8"), ("bytes", "i8"), ("start_s", "f8"), ("end_s", "f8"))
_THREADS = {"DXT_POSIX": 2, "DXT_MPIIO": 3}
"""Version from which a traced call has its thread, too."""
_HEAT = (("record", "u8"), ("rank", "i8"), ("width_s", "f8"), ("slices", "i8"), ("unused", "i8", (2,)))


_MOUNT = re.compile(rb"\s*([^\t ]+)[\t ]+(/.*?)\r?", re.DOTALL)
"""Type, tab, path; a path may have blanks."""


class LoggedJob(NamedTuple):
    uid: int
    start_s: int
    end_s: int
    ranks: int
    job_id: int
    start_ns: int = 0
    end_ns: int = 0


class LoggedComponents(NamedTuple):
    """A record of the LUSTRE module as it stands in the log."""

    record: int
    rank: int
    counters: NDArray[np.int64]
    """Components × the seven LUSTRE_COMP_ counters, in Darshan's order."""
    pools: tuple[str, ...]
    osts: tuple[int, ...]
    """Of all components, one after another."""


class OpenLog:
    """One log; use `open_log`. Raises TraceError for records that are damaged or newer than this reader."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self.where, self.version = regions.where, regions.version
        self.modules = regions.modules
        raw = regions.job()
        self._job_fields = _JOB[tuple(map(int, self.version.split("."))) >= (3, 41)]
        size = 8 * len(self._job_fields)
        if len(raw) < size + _METADATA:
            raise TraceError(self.where, "the record of the job in a Darshan log", f"{len(raw)} bytes")
        self._job_numbers = np.frombuffer(raw, f"{regions.order}i8", len(self._job_fields)).tolist()
        self._lines = raw[size + _METADATA :].split(b"\0")[0].split(b"\n")

    def job(self) -> LoggedJob:
        return LoggedJob(**dict(zip(self._job_fields, self._job_numbers, strict=True)))

    def command(self) -> str:
        return os.fsdecode(self._lines[0])

    def mounts(self) -> tuple[DarshanMount, ...]:
        """Longest path first."""
        pairs = [_MOUNT.fullmatch(line) for line in self._lines[1:]]
        mounts = [DarshanMount(os.fsdecode(_unescaped(p[2])), os.fsdecode(p[1])) for p in pairs if p]
        return tuple(sorted(mounts, key=lambda m: -len(m.path)))

    def names(self) -> dict[int, str]:
        """Record id → name."""
        raw, at = self._regions.names(), 0
        little = "little" if self._regions.order == "<" else "big"
        measured = self.version == "3.00"
        names: dict[int, str] = {}
        while at + 8 < len(raw):
            record, at = int.from_bytes(raw[at : at + 8], little), at + 8  # type: ignore[arg-type]
            if measured:
                end = at + 4 + int.from_bytes(raw[at : at + 4], little)  # type: ignore[arg-type]
                name, at = raw[at + 4 : end], end
            else:
                end = raw.find(b"\0", at)
                end = end if end >= 0 else len(raw)
                name, at = raw[at:end], end + 1
            if not names.get(record):
                names[record] = _clean(os.fsdecode(name))
        return names

    def table(self, module: str) -> Module:
        """All records of a module whose records have one length: POSIX, STDIO, MPI-IO, H5D, PNETCDF_VAR."""
        version = self._version(module)
        there = columns(module, version)
        of_files = module in _OF_FILES and (module, version) != ("H5D", 1)
        rows = self._rows(module, (
            ("record", "u8"), ("rank", "i8"), *((("file", "u8"),) if of_files else ()),
            ("counters", "i8", (len(there.counters),)), ("fcounters", "f8", (len(there.fcounters),)),
        ))  # fmt: skip
        if FOPENS in there.counters:  # records that count STDIO, too, cannot be told apart
            rows = rows[rows["counters"][:, there.counters.index(FOPENS)] <= 0]
        places = {name: at for at, name in enumerate(there.counters)}
        fplaces = {name: at for at, name in enumerate(there.fcounters)}
        prefix = module.replace("-", "") + "_"
        files = rows["file"] if of_files else rows["record"] * (module not in _OF_FILES)
        return Module(
            module,
            version,
            self.modules[module].partial,
            rows["record"].astype(np.uint64),
            rows["rank"].astype(np.int64),
            {
                prefix + name: rows["counters"][:, places[name]].astype(np.int64)
                if name in places
                else np.full(len(rows), 0 if name == UNSIGNED else -1, np.int64)
                for name in NEWEST[module].counters
            },
            {
                prefix + name: rows["fcounters"][:, fplaces[name]].astype(np.float64)
                if name in fplaces
                else np.full(len(rows), -1.0)
                for name in NEWEST[module].fcounters
            },
            files.astype(np.uint64),
        )

    def components(self) -> Iterator[LoggedComponents]:
        """The records of the LUSTRE module, one after another."""
        plain = self._version("LUSTRE") == 1
        read = self._reader("LUSTRE")
        while read:
            head = read.take(_PLAIN if plain else _HEAD)[0]
            stripes = int(head["stripes"])
            if plain:
                counters = np.array([[head["stripe_size"], stripes, -1, -1, 0, -1, -1]], np.int64)
                pools: tuple[str, ...] = ("",)
            else:
                rows = read.take(_COMPONENT, int(head["components"]))
                # Room that was kept for components is at the end, and has no stripe size.
                unused = np.flatnonzero(rows["counters"][:, 0] == -1)
                rows = rows[: unused[0]] if len(unused) else rows
                counters = rows["counters"].astype(np.int64)
                pools = tuple(
                    pool.split(b"\0")[0].decode("ascii", "replace") for pool in rows["pool"].tolist()
                )
            osts = tuple(read.take((("ost", "i8"),), stripes)["ost"].tolist())
            if len(counters):
                yield LoggedComponents(int(head["record"]), int(head["rank"]), counters, pools, osts)

    def segments(self, module: str = "DXT_POSIX") -> NDArray[np.void]:
        """The trace, of dtype SEGMENT, in the order of the log."""
        version = self._version(module)
        form = (*_CALL, ("thread", "u8")) if version >= _THREADS[module] else _CALL
        read = self._reader(module)
        parts = [np.zeros(0, SEGMENT)]
        while read:
            head = read.take(_TRACE)[0]
            writes, reads = int(head["writes"]), int(head["reads"])
            calls = read.take(form, writes + reads)
            segments = np.zeros(len(calls), SEGMENT)
            for column, *_ in _CALL:
                segments[column] = calls[column]
            if (module, version) == ("DXT_MPIIO", 1):
                segments["offset"] = -1
            segments["record"], segments["rank"] = head["record"], head["rank"]
            segments["write"][: max(writes, 0)] = True
            parts.append(segments)
        return np.concatenate(parts)

    def heat(self) -> Iterator[tuple[int, int, float, NDArray[np.int64], NDArray[np.int64]]]:
        """Record id (its name is that of the interface), rank, seconds of a slice, bytes written and read by slice."""
        self._version("HEATMAP")
        read = self._reader("HEATMAP")
        first: tuple[float, int] | None = None
        while read:
            head = read.take(_HEAT)[0]
            width_s, slices = float(head["width_s"]), int(head["slices"])
            written, moved = (
                read.take((("bytes", "i8"),), slices)["bytes"].astype(np.int64) for _ in range(2)
            )
            first = first or (width_s, slices)
            # Darshan 3.4.0 to 3.4.3 could give one rank a slice more or less than another.
            if width_s == first[0] and abs(slices - first[1]) == 1:
                written, moved = (np.resize(np.append(b, 0), first[1]) for b in (written, moved))
            yield int(head["record"]), int(head["rank"]), width_s, written, moved

    def _version(self, module: str) -> int:
        version = self.modules[module].version
        if not 1 <= version <= VERSION[module]:
            known = f"records of {module} of version 1 to {VERSION[module]}"
            raise TraceError(self.where, known, f"version {version}")
        return version

    def _rows(self, module: str, form: Form) -> NDArray[np.void]:
        read = self._reader(module)
        return read.take(form, len(read) // np.dtype(list(form)).itemsize, last=True)

    def _reader(self, module: str) -> _Reader:
        return _Reader(self.where, module, self._regions.order, self._regions.records(module))


Form = tuple[tuple[str, str] | tuple[str, str, tuple[int, ...]], ...]


class _Reader:
    """The records of a module, taken one after another."""

    def __init__(self, where: str, module: str, order: str, content: bytes) -> None:
        self._where, self._module, self._order, self._content, self._at = where, module, order, content, 0
        self._types: dict[Form, np.dtype[np.void]] = {}

    def __len__(self) -> int:
        return len(self._content) - self._at

    def take(self, form: Form, count: int = 1, *, last: bool = False) -> NDArray[np.void]:
        """last: nothing may follow. Raises TraceError where so many are not there."""
        kind = self._types.get(form)
        if kind is None:
            kind = self._types[form] = np.dtype(list(form)).newbyteorder(self._order)  # type: ignore[arg-type]
        size = count * kind.itemsize
        if count < 0 or size > len(self) or (last and size != len(self)):
            found = f"{len(self)} bytes where {count} of {kind.itemsize} bytes should be"
            raise TraceError(self._where, f"whole records of {self._module}", found)
        rows = np.frombuffer(self._content, kind, count, self._at) if count else np.zeros(0, kind)
        self._at += size
        return rows


def _clean(name: str) -> str:
    return posixpath.normpath(name).replace("//", "/") if name.startswith("/") else name


def _unescaped(path: bytes) -> bytes:
    """A blank or tab in octal, as the kernel's own table of mounts has it."""
    return re.sub(rb"\\(0[0-7]{2}|134)", lambda m: bytes([int(m[1], 8)]), path)


@contextmanager
def open_log(where: str) -> Iterator[OpenLog]:
    """Open a log, close it at the end. Raises TraceError for a file that is no Darshan log or a damaged one."""
    with open_regions(where) as regions:
        yield OpenLog(regions)
