"""Writes Darshan logs by Darshan's own C library (inside PyDarshan), for cases of which there is no log at hand.

`write` takes the records of each module as bytes; `table`, `layout_record`, `old_layout_record` and `trace_record`
make them. The job's own facts and the regions are the library's work, as in `darshan-convert`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import darshan
import darshan.backend.cffi_backend as backend
import numpy as np

EXE_LEN = 3015
VERSIONS = {"POSIX": 4, "STDIO": 2, "MPI-IO": 3, "LUSTRE": 2, "DXT_POSIX": 1, "HEATMAP": 1}
INIT = 0x10
"""Flag of a component that has its objects (`LCME_FL_INIT`)."""


class _Job(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("uid", "start_sec", "start_nsec", "end_sec", "end_nsec", "ranks", "job_id")
    ] + [("metadata", ctypes.c_char * 1024)]


class _Mount(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_char * EXE_LEN), ("path", ctypes.c_char * EXE_LEN)]


class _Name(ctypes.Structure):
    """`struct darshan_name_record_ref`; of the hash handle only `next` is followed."""


_Name._fields_ = [
    ("record", ctypes.c_void_p),
    ("table", ctypes.c_void_p),
    ("prev", ctypes.c_void_p),
    ("next", ctypes.c_void_p),
    ("rest", ctypes.c_void_p * 3),
    ("lengths", ctypes.c_uint * 2),
]


def _library() -> Any:
    (found,) = Path(darshan.__file__).parents[1].glob("darshan.libs/libdarshan-util*.so*")
    library = ctypes.CDLL(str(found))
    library.darshan_log_create.restype = ctypes.c_void_p
    for name in ("put_job", "put_exe", "put_mounts", "put_namehash", "put_mod"):
        getattr(library, f"darshan_log_{name}").argtypes = None
    return library


def write(
    path: Path,
    modules: Mapping[str, bytes],
    names: Mapping[int, str | bytes],
    *,
    ranks: int = 1,
    command: str = "/apps/app -n 4",
    job_id: int = 4711,
    uid: int = 1000,
    start_s: tuple[int, int] = (1_700_000_000, 250_000_000),
    end_s: tuple[int, int] = (1_700_000_100, 750_000_000),
    mounts: Sequence[tuple[str, str]] = (("/lustre", "lustre"), ("/", "ext4")),
    partial: Sequence[str] = (),
    versions: Mapping[str, int] = {},
) -> Path:
    """A log; times in (seconds, nanoseconds). Modules are written in Darshan's order, with `versions` if given."""
    library = _library()
    index = {name: backend.mod_name_to_idx(name) for name in modules}
    flags = sum(1 << backend.mod_name_to_idx(name) for name in partial)
    handle = ctypes.c_void_p(library.darshan_log_create(str(path).encode(), 0, flags))
    assert handle, path
    job = _Job(uid, *start_s, *end_s, ranks, job_id, b"lib_ver=3.5.0\n")
    assert library.darshan_log_put_job(handle, ctypes.byref(job)) == 0
    assert library.darshan_log_put_exe(handle, command.encode()) == 0
    mounted = (_Mount * len(mounts))(*(_Mount(kind.encode(), at.encode()) for at, kind in mounts))
    assert library.darshan_log_put_mounts(handle, mounted, len(mounts)) == 0
    kept = []
    head = ctypes.c_void_p(None)
    for record, name in reversed(names.items()):
        raw = name.encode() if isinstance(name, str) else name
        memory = ctypes.create_string_buffer(record.to_bytes(8, "little") + raw + b"\0")
        entry = _Name(ctypes.addressof(memory), None, None, head)
        kept.append((memory, entry))
        head = ctypes.c_void_p(ctypes.addressof(entry))
    assert library.darshan_log_put_namehash(handle, head) == 0
    for name in sorted(modules, key=lambda name: index[name]):
        version = {**VERSIONS, **versions}[name]
        content = modules[name]
        assert library.darshan_log_put_mod(handle, index[name], content, len(content), version) == 0
    library.darshan_log_close(handle)
    return path


def table(module: str, record: Any, rank: Any, **counters: Any) -> bytes:
    """Records of POSIX, STDIO or MPI-IO: columns by Darshan's names without that of the module; others are 0."""
    prefix = module.replace("-", "") + "_"
    names = (backend.counter_names(module), backend.fcounter_names(module))
    dtype = np.dtype([("id", "u8"), ("rank", "i8"), ("i", "i8", len(names[0])), ("f", "f8", len(names[1]))])
    rows = np.zeros(len(np.atleast_1d(record)), dtype)
    rows["id"], rows["rank"] = record, rank
    for counter, values in counters.items():
        at = "f" if counter.startswith("F_") else "i"
        rows[at][:, names[at == "f"].index(prefix + counter)] = values
    return rows.tobytes()


Comp = tuple[int, int, int, int, int, int, int, str]
"""Stripe size, count, pattern (0 raid0, 2 mdt, 4 overstriped), flags, start, end (-1: EOF), mirror, pool."""


def layout_record(record: int, components: Sequence[Comp], osts: Sequence[int], rank: int = -1) -> bytes:
    """A record of the LUSTRE module as Darshan writes it since 3.5."""
    head = np.array([rank, len(components), len(osts)], "i8")
    rows = np.array([(c[:7], c[7].encode()) for c in components], [("c", "i8", 7), ("pool", "S16")])
    return b"".join(
        (record.to_bytes(8, "little"), head.tobytes(), rows.tobytes(), np.array(osts, "i8").tobytes())
    )


def plain(record: int, osts: Sequence[int], stripe_size: int = 1 << 20) -> bytes:
    """The same of a file with a plain layout."""
    return layout_record(record, [(stripe_size, len(osts), 0, 0, 0, -1, 0, "")], osts)


def plains(records: Any, osts: Any, stripe_size: int = 1 << 20) -> bytes:
    """The same of many files with one stripe each."""
    form = [
        ("id", "u8"),
        ("rank", "i8"),
        ("numbers", "i8", 2),
        ("c", "i8", 7),
        ("pool", "S16"),
        ("ost", "i8"),
    ]
    rows = np.zeros(len(records), form)
    rows["id"], rows["rank"], rows["numbers"] = records, -1, 1
    rows["c"], rows["ost"] = (stripe_size, 1, 0, 0, 0, -1, 0), osts
    return rows.tobytes()


def old_layout_record(
    record: int, stripe_size: int, osts: Sequence[int], count: int | None = None, rank: int = -1
) -> bytes:
    """A record of the LUSTRE module before 3.5 (version 1): OSTs, MDTs, offset, size, width of the stripe."""
    head = np.array([rank, 248, 1, -1, stripe_size, len(osts) if count is None else count], "i8")
    return record.to_bytes(8, "little") + head.tobytes() + np.array(osts, "i8").tobytes()


def trace_record(
    record: int,
    rank: int,
    writes: Sequence[tuple[int, int, float, float]],
    reads: Sequence[tuple[int, int, float, float]] = (),
    host: str = "node0",
) -> bytes:
    """A record of DXT_POSIX; a call is offset, bytes, start and end in seconds."""
    head = np.array([(record, rank, 0, host.encode(), len(writes), len(reads))], "u8,i8,i8,S64,i8,i8")
    calls = np.array([*writes, *reads], "i8,i8,f8,f8") if writes or reads else np.zeros(0)
    return head.tobytes() + calls.tobytes()
