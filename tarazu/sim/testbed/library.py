"""The testbed's C libraries: where they are, and the control functions of libtestbed.so (control.c) through ctypes."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tarazu.errors import BadInput, TarazuError
from tarazu.lustre import XATTR_SIZE_MAX

REQUESTS = (
    "mds_open", "mds_close", "mds_layout", "mds_setxattr", "mds_getattr", "mds_getxattr", "mds_cancel", "ost",
)  # fmt: skip
"""Kinds of `Mds.requests`; an OST's are those of fallocate and truncation only."""

MAX_OSTS = 1024
FLAGS = {"inactive": 1, "no_create": 2, "degraded": 4, "readonly": 8, "full": 16, "dead": 32}
"""Bits of an OST's `flags` in the shared state (tb.h)."""
MDT_FLAGS = {"inactive": 1, "no_create": 2, "away": 4}
"""The same of an MDT."""
MAX_MDTS, MAX_MDT_CLIENTS = 16, 64
MD_OPERATIONS = ("open", "close", "mknod", "unlink", "mkdir", "rmdir", "rename")
"""Rows of `md_stats` that the testbed counts."""


def library_directory() -> Path:
    """Where the build installed `libtestbed.so`; the environment's TESTBED_LIB_DIR goes first.

    Raises BadInput when the C part was not built.
    """
    override = os.environ.get("TESTBED_LIB_DIR")
    candidates = [Path(override)] if override else []
    candidates.append(Path(__file__).resolve().parents[2] / "lib")
    try:
        located = importlib.metadata.distribution("tarazu").locate_file("tarazu/lib")
        candidates.append(Path(str(located)))
    except importlib.metadata.PackageNotFoundError:
        pass
    for directory in candidates:
        if (directory / "libtestbed.so").exists():
            return directory.resolve()
    raise BadInput("libtestbed.so", "the C part built (make setup)", [str(c) for c in candidates])


_loaded: ctypes.CDLL | None = None
_attached: tuple[str, int, int] | None = None


def _library() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        library = ctypes.CDLL(str(library_directory() / "libtestbed.so"))
        u32, u64 = ctypes.c_uint32, ctypes.c_uint64
        text, words = ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32)
        library.testbed_format.argtypes = [text, u32, u32, words, u64]
        library.testbed_attach.argtypes = [text]
        library.testbed_set.argtypes = [text, u32, u64]
        library.testbed_get.argtypes = [text, u32, ctypes.POINTER(u64)]
        for change in (library.testbed_pool_add, library.testbed_pool_remove):
            change.argtypes = [text, u32]
        library.testbed_pool_new.argtypes = library.testbed_pool_destroy.argtypes = [text]
        library.testbed_pool_get.argtypes = [u32, text, ctypes.POINTER(ctypes.c_uint16)]
        library.testbed_pool_set_spill.argtypes = [text, text, u32]
        library.testbed_pool_spill.argtypes = [text, text, words]
        library.testbed_set_default.argtypes = [text, text, ctypes.c_size_t]
        library.testbed_layout.argtypes = [text, text, ctypes.c_size_t]
        library.testbed_layout.restype = ctypes.c_ssize_t
        library.testbed_requests.argtypes = [ctypes.POINTER(u64)]
        library.testbed_account.argtypes = [text, u32, ctypes.POINTER(u64), words]
        library.testbed_account.restype = ctypes.c_int64
        library.testbed_set_mdts.argtypes = [text, u32, u64, u64]
        library.testbed_mdt_set.argtypes = [text, u32, u64]
        library.testbed_mdt_get.argtypes = [text, u32, ctypes.POINTER(u64)]
        library.testbed_mdt_done.argtypes = [u32, ctypes.POINTER(u64)]
        library.testbed_mdt_of.argtypes = [text]
        _loaded = library
    return _loaded


def _check(rc: int, what: str) -> int:
    if rc < 0:
        raise TarazuError(f"testbed: {what}: {os.strerror(-rc)}")
    return rc


class Mds:
    """The emulated MDS of one testbed directory: its shared state and the layouts that it keeps."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def format(cls, directory: Path, oss_of: Sequence[int], seed: int) -> Mds:
        """Makes the shared state; `oss_of[i]` is the number of the server of OST i."""
        words = (ctypes.c_uint32 * len(oss_of))(*oss_of)
        rc = _library().testbed_format(
            os.fsencode(directory), len(oss_of), max(oss_of) + 1, words, seed & (2**64 - 1)
        )
        _check(rc, f"{directory}/mds/state")
        return cls(directory)

    def _library(self) -> ctypes.CDLL:
        global _attached
        path = self.directory / "mds" / "state"
        try:
            status = path.stat()
        except OSError as error:
            raise BadInput(str(self.directory), "a testbed", str(error)) from None
        wanted = (str(path), status.st_dev, status.st_ino)
        library = _library()
        if _attached != wanted:
            _check(library.testbed_attach(os.fsencode(self.directory)), str(self.directory))
            _attached = wanted
        return library

    def set(self, field: str, value: int, index: int = 0) -> None:
        """Sets a field of the state (`control.c` has their names), of target `index` where there is one each."""
        _check(self._library().testbed_set(field.encode(), index, value), f"no field {field}[{index}]")

    def look(self) -> None:
        """Mode and penalties of the allocator are computed anew at the next creation."""
        self._library().testbed_look()

    def get(self, field: str, index: int = 0) -> int:
        value = ctypes.c_uint64()
        _check(
            self._library().testbed_get(field.encode(), index, ctypes.byref(value)),
            f"no field {field}[{index}]",
        )
        return value.value

    def requests(self) -> dict[str, int]:
        """Requests that clients' calls would have sent on a real Lustre, by kind, since the testbed was made."""
        counts = (ctypes.c_uint64 * len(REQUESTS))()
        _check(self._library().testbed_requests(counts), "request counters")
        return dict(zip(REQUESTS, counts, strict=True))

    def osts(self) -> int:
        return self.get("osts")

    def flags(self, index: int) -> dict[str, bool]:
        bits = self.get("flags", index)
        return {name: bool(bits & bit) for name, bit in FLAGS.items()}

    def set_flags(self, index: int, changes: Mapping[str, bool]) -> None:
        bits = self.get("flags", index)
        for name, on in changes.items():
            bits = bits | FLAGS[name] if on else bits & ~FLAGS[name]
        self.set("flags", bits, index)

    def set_mdts(self, fs_name: str, count: int, total_bytes: int, files: int) -> None:
        """Once, before anybody else is there: `count` MDTs of that size and number of inodes."""
        rc = self._library().testbed_set_mdts(fs_name.encode(), count, total_bytes, files)
        _check(rc, f"{count} MDTs of {fs_name}")

    def mdts(self) -> int:
        return self.get_mdt("count")

    def set_mdt(self, field: str, value: int, index: int = 0) -> None:
        """`total`, `base`, `files_total`, `files_base`, `files`, `directories` of one MDT; `wait_ms` of all; `rr_index`
        of client `index`.
        """
        _check(
            self._library().testbed_mdt_set(field.encode(), index, value), f"no field {field} of MDT {index}"
        )

    def get_mdt(self, field: str, index: int = 0) -> int:
        """The same, and `count`: how many there are."""
        value = ctypes.c_uint64()
        rc = self._library().testbed_mdt_get(field.encode(), index, ctypes.byref(value))
        _check(rc, f"no field {field} of MDT {index}")
        return value.value

    def mdt_flags(self, index: int) -> dict[str, bool]:
        bits = self.get_mdt("flags", index)
        return {name: bool(bits & bit) for name, bit in MDT_FLAGS.items()}

    def set_mdt_flags(self, index: int, changes: Mapping[str, bool]) -> None:
        bits = self.get_mdt("flags", index)
        for name, on in changes.items():
            bits = bits | MDT_FLAGS[name] if on else bits & ~MDT_FLAGS[name]
        self.set_mdt("flags", bits, index)

    def mdt_done(self, index: int) -> list[dict[str, int]]:
        """What this MDT has done by operation: for nobody knows whom, then for each client."""
        width = len(MD_OPERATIONS)
        counts = (ctypes.c_uint64 * ((MAX_MDT_CLIENTS + 1) * width))()
        _check(self._library().testbed_mdt_done(index, counts), f"no MDT {index}")
        rows = [counts[i * width : (i + 1) * width] for i in range(MAX_MDT_CLIENTS + 1)]
        return [dict(zip(MD_OPERATIONS, row, strict=True)) for row in rows]

    def mdt_of(self, path: Path) -> int:
        """The MDT on which a directory lies, or that of a file's directory. Raises TarazuError."""
        return _check(self._library().testbed_mdt_of(os.fsencode(path)), str(path))

    def add_pool(self, name: str, osts: Sequence[int]) -> None:
        _check(self._library().testbed_pool_new(name.encode()), f"pool {name}")
        for index in osts:
            _check(self._library().testbed_pool_add(name.encode(), index), f"pool {name}, OST {index}")

    def destroy_pool(self, name: str) -> None:
        """With all its OSTs; nothing where there is none."""
        for index in self.pools().get(name, []):
            _check(self._library().testbed_pool_remove(name.encode(), index), f"pool {name}, OST {index}")
        self._library().testbed_pool_destroy(name.encode())

    def pools(self) -> dict[str, list[int]]:
        """Every pool and its OSTs, in the order in which they were added."""
        library = self._library()
        by_name: dict[str, list[int]] = {}
        name, members = ctypes.create_string_buffer(64), (ctypes.c_uint16 * MAX_OSTS)()
        while (count := library.testbed_pool_get(len(by_name), name, members)) >= 0:
            by_name[name.value.decode()] = members[:count]
        return by_name

    def set_spill(self, pool: str, target: str, threshold_pct: int) -> None:
        """From this share of its space on a pool's files go to another one; 0: never."""
        rc = self._library().testbed_pool_set_spill(pool.encode(), target.encode(), threshold_pct)
        _check(rc, f"pool {pool}")

    def spill(self, pool: str) -> tuple[str, int, bool]:
        """Target, threshold, and whether it is so now."""
        target, percent = ctypes.create_string_buffer(64), ctypes.c_uint32()
        active = self._library().testbed_pool_spill(pool.encode(), target, ctypes.byref(percent))
        _check(active, f"pool {pool}")
        return target.value.decode(), percent.value, active > 0

    def set_default(self, directory: Path, blob: bytes) -> None:
        """Default layout of a directory, from a `lustre.lov` blob."""
        rc = self._library().testbed_set_default(os.fsencode(directory), blob, len(blob))
        _check(rc, f"default layout of {directory}")

    def layout_blob(self, path: Path) -> bytes | None:
        """The `lustre.lov` of a file or directory; None when it has none."""
        buffer = ctypes.create_string_buffer(XATTR_SIZE_MAX)
        size = self._library().testbed_layout(os.fsencode(path), buffer, XATTR_SIZE_MAX)
        return buffer.raw[:size] if size >= 0 else None

    def account(self, paths: Sequence[str]) -> tuple[list[int], list[int]]:
        """Bytes and objects on each OST of the files at `paths`; files that vanished meanwhile count nothing."""
        used, objects = self.account_of_clients(paths, 0)
        return used[0], objects

    def account_of_clients(self, paths: Sequence[str], clients: int) -> tuple[list[list[int]], list[int]]:
        """The same, bytes by the client that made a file: row 0 is of files that were made elsewhere, or nobody knows
        where, row i of client i.
        """
        library, count, rows = self._library(), self.osts(), clients + 1
        used, objects = (ctypes.c_uint64 * (rows * count))(), (ctypes.c_uint32 * count)()
        for path in paths:
            library.testbed_account(os.fsencode(path), rows, used, objects)
        return [list(used[i * count : (i + 1) * count]) for i in range(rows)], list(objects)
