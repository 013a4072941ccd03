"""An open log: the C library inside PyDarshan (`libdarshan-util`), which fills arrays record by record.

PyDarshan's own collections make several Python objects a record, which takes minutes for 65,536 ranks, and they
pass over records without a name. Formats from 3.00 on; records of older versions are as the library converts them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import TraceError
from tarazu.trace.darshan.log import SEGMENT, DarshanMount, Module
from tarazu.trace.darshan.regions import check_regions

_CHUNK = 4096
"""Records in one array while their number is not known."""
_PIECE = 1 << 20
_OF_FILES = ("H5D", "PNETCDF_VAR")
"""Modules whose records are parts of files."""
_HEAD = np.dtype([("record", np.uint64), ("rank", np.int64), ("components", np.int64), ("stripes", np.int64)])
_COMPONENT = np.dtype([("counters", np.int64, (7,)), ("pool", "S16")])
"""`struct darshan_lustre_component`; in the log, a record is a head, its components, and their OSTs."""
_DXT_SEGMENT = np.dtype(
    [("offset", np.int64), ("bytes", np.int64), ("start_s", np.float64), ("end_s", np.float64)]
)


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
    """One log; use `open_log`. Raises TraceError for records that the library cannot read."""

    def __init__(self, where: str, backend: Any, handle: Any) -> None:
        self.where, self._backend, self._handle = where, backend, handle
        self._ffi, self._library = backend.ffi, backend.libdutil
        self.modules: dict[str, dict[str, Any]] = backend.log_get_modules({"handle": handle, "modules": None})

    def _text(self, pointer: Any) -> str:
        return os.fsdecode(self._ffi.string(pointer))

    def version(self) -> str:
        """Of the format: the handle begins with it, as PyDarshan reads it too."""
        return self._text(self._ffi.cast("char *", self._handle))

    def job(self) -> Any:
        """`struct darshan_job`."""
        job = self._ffi.new("struct darshan_job *")
        if self._library.darshan_log_get_job(self._handle, job):
            raise TraceError(self.where, "the record of the job in a Darshan log", "a damaged one")
        return job

    def command(self) -> str:
        text = self._ffi.new("char[]", 8192)
        self._library.darshan_log_get_exe(self._handle, text)
        return self._text(text)

    def mounts(self) -> tuple[DarshanMount, ...]:
        entries, count = self._ffi.new("struct darshan_mnt_info **"), self._ffi.new("int *")
        if self._library.darshan_log_get_mounts(self._handle, entries, count):
            return ()
        mounts = [
            DarshanMount(self._text(entries[0][i].mnt_path), self._text(entries[0][i].mnt_type))
            for i in range(count[0])
        ]
        if count[0]:
            self._library.darshan_free(entries[0])
        return tuple(sorted(mounts, key=lambda m: -len(m.path)))

    def names(self) -> dict[int, str]:
        """Record id → name."""
        records, count = self._ffi.new("struct darshan_name_record **"), self._ffi.new("int *")
        self._library.darshan_log_get_name_records(self._handle, records, count)
        names = {}
        for i in range(count[0]):
            names[int(records[0][i].id)] = self._text(records[0][i].name)
            self._library.darshan_free(records[0][i].name)
        if count[0]:
            self._library.darshan_free(records[0])
        return names

    def table(self, module: str) -> Module:
        """All records of a module whose records have one length: POSIX, STDIO, MPI-IO, H5D, PNETCDF_VAR."""
        counters = self._backend.counter_names(module)
        fcounters = self._backend.fcounter_names(module)
        dtype = np.dtype(
            [
                ("record", np.uint64),
                ("rank", np.int64),
                *([("file", np.uint64)] if module in _OF_FILES else []),
                ("counters", np.int64, (len(counters),)),
                ("fcounters", np.float64, (len(fcounters),)),
            ]
        )
        size = self._ffi.sizeof(self._backend._structdefs[module].removesuffix("**").strip())
        if size != dtype.itemsize:
            raise TraceError(self.where, f"{dtype.itemsize} bytes a record of {module} from PyDarshan", size)
        chunks: list[NDArray[np.void]] = []
        slot, used = self._ffi.new("void **"), _CHUNK
        while used == _CHUNK:
            chunk = np.zeros(_CHUNK, dtype)
            memory = self._ffi.cast("char *", self._ffi.from_buffer(chunk))
            used, slot[0] = 0, memory
            while used < _CHUNK and self._next(module, slot):
                used += 1
                slot[0] = memory + used * size
            chunks.append(chunk[:used])
        rows = np.concatenate(chunks)
        return Module(
            module,
            int(self.modules[module]["ver"]),
            bool(self.modules[module]["partial_flag"]),
            rows["record"].copy(),
            rows["rank"].copy(),
            {name: rows["counters"][:, at].copy() for at, name in enumerate(counters)},
            {name: rows["fcounters"][:, at].copy() for at, name in enumerate(fcounters)},
            rows["file" if module in _OF_FILES else "record"].copy(),
        )

    def components(self) -> Iterator[LoggedComponents]:
        """The records of the LUSTRE module, one after another."""
        if int(self.modules["LUSTRE"]["ver"]) == 1:
            yield from self._plain_components()
            return
        # Not by the library's own records: it makes up the number of stripes from the counts of the components, and
        # what is behind the OSTs that are in the log is then whatever was in that memory before.
        content, at = self._raw("LUSTRE"), 0
        while at < len(content):
            if at + _HEAD.itemsize > len(content):
                raise self._damaged(f"{len(content) - at} bytes of a record")
            head = np.frombuffer(content, _HEAD, 1, at)[0]
            number, stripes = int(head["components"]), int(head["stripes"])
            first = at + _HEAD.itemsize
            last = first + number * _COMPONENT.itemsize
            if number < 0 or stripes < 0 or last + 8 * stripes > len(content):
                raise self._damaged(f"one of {number} components and {stripes} stripes")
            rows = np.frombuffer(content, _COMPONENT, number, first)
            osts = tuple(np.frombuffer(content, np.int64, stripes, last).tolist())
            at = last + 8 * stripes
            # Room that was kept for components is at the end, and has no stripe size.
            unused = np.flatnonzero(rows["counters"][:, 0] == -1)
            rows = rows[: unused[0]] if len(unused) else rows
            if len(rows):
                pools = tuple(
                    pool.split(b"\0")[0].decode("ascii", "replace") for pool in rows["pool"].tolist()
                )
                yield LoggedComponents(int(head["record"]), int(head["rank"]), rows["counters"], pools, osts)

    def _plain_components(self) -> Iterator[LoggedComponents]:
        """Of before Darshan 3.5, as the library converts them; it leaves the name of the pool as the memory was."""
        size = self._ffi.sizeof("struct darshan_lustre_record")
        for memory in self._records("LUSTRE"):
            record = self._ffi.cast("struct darshan_lustre_record *", memory)
            if int(record.num_comps) < 1:
                continue
            first = self._ffi.cast("char *", memory) + size
            row = np.frombuffer(bytes(self._ffi.buffer(first, _COMPONENT.itemsize)), _COMPONENT)
            osts = self._ffi.cast("int64_t *", first + _COMPONENT.itemsize)
            yield LoggedComponents(
                int(record.base_rec.id),
                int(record.base_rec.rank),
                row["counters"],
                ("",),
                tuple(self._ffi.unpack(osts, int(record.num_stripes))),
            )

    def _raw(self, module: str) -> bytes:
        """All records of a module as they stand in the log."""
        self._ffi.cdef("int darshan_log_get_mod(void *, int, void *, int);", override=True)
        piece, parts, got = self._ffi.new("char[]", _PIECE), [], _PIECE
        # Less than was asked for is the end: what the library gives after that is no content.
        while got == _PIECE:
            got = self._library.darshan_log_get_mod(self._handle, self.modules[module]["idx"], piece, _PIECE)
            if got < 0:
                raise self._damaged("a region that cannot be read")
            parts.append(bytes(self._ffi.buffer(piece, got)))
        return b"".join(parts)

    def _damaged(self, found: str) -> TraceError:
        return TraceError(self.where, "whole records of LUSTRE", found)

    def segments(self, module: str = "DXT_POSIX") -> NDArray[np.void]:
        """The trace, of dtype SEGMENT, in the order of the log."""
        head = self._ffi.sizeof("struct dxt_file_record")
        size = self._ffi.sizeof("struct segment_info")
        parts = [np.zeros(0, SEGMENT)]
        for memory in self._records(module):
            record = self._ffi.cast("struct dxt_file_record *", memory)
            writes, reads = int(record.write_count), int(record.read_count)
            raw = bytes(self._ffi.buffer(self._ffi.cast("char *", memory) + head, (writes + reads) * size))
            rows = np.frombuffer(raw, np.uint8).reshape(-1, size)[:, : _DXT_SEGMENT.itemsize]
            calls = np.ascontiguousarray(rows).view(_DXT_SEGMENT).ravel()
            segments = np.zeros(len(calls), SEGMENT)
            for column in _DXT_SEGMENT.names or ():
                segments[column] = calls[column]
            segments["record"], segments["rank"] = int(record.base_rec.id), int(record.base_rec.rank)
            segments["write"][:writes] = True
            parts.append(segments)
        return np.concatenate(parts)

    def heat(self) -> Iterator[tuple[int, int, float, NDArray[np.int64], NDArray[np.int64]]]:
        """Record id (its name is that of the interface), rank, seconds of a slice, bytes written and read by slice."""
        for memory in self._records("HEATMAP"):
            record = self._ffi.cast("struct darshan_heatmap_record *", memory)
            size = 8 * int(record.nbins)
            written, read = (
                np.frombuffer(bytes(self._ffi.buffer(bins, size)), np.int64)
                for bins in (record.write_bins, record.read_bins)
            )
            head = record.base_rec
            yield int(head.id), int(head.rank), float(record.bin_width_seconds), written, read

    def _records(self, module: str) -> Iterator[Any]:
        """Each record in the library's own memory, which is freed after its use."""
        slot = self._ffi.new("void **")
        while self._next(module, slot):
            yield slot[0]
            self._library.darshan_free(slot[0])
            slot[0] = self._ffi.NULL

    def _next(self, module: str, slot: Any) -> bool:
        status = self._library.darshan_log_get_record(self._handle, self.modules[module]["idx"], slot)
        if status < 0:
            version = self.modules[module]["ver"]
            raise TraceError(self.where, f"records of {module} that PyDarshan can read", f"version {version}")
        return bool(status)


@contextmanager
def open_log(where: str) -> Iterator[OpenLog]:
    """Open a log, close it at the end.

    Raises TraceError when PyDarshan is missing, and for a file that is no Darshan log or a damaged one.
    """
    try:
        import darshan.backend.cffi_backend as backend
    except (ImportError, RuntimeError, NotImplementedError) as error:
        raise TraceError(where, "PyDarshan to be installed (tarazu[sim])", str(error)) from None
    check_regions(where)
    handle = backend.libdutil.darshan_log_open(os.fsencode(where))
    if not handle:
        raise TraceError(
            where, "a Darshan log", "one that PyDarshan's library cannot open (its wheels have no bzip2)"
        )
    try:
        yield OpenLog(where, backend, handle)
    finally:
        backend.libdutil.darshan_log_close(handle)
