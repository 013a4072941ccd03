"""The control page beside the placement maps (`docs/formats.md`): which map is current, whether to stop."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from pathlib import Path

from tarazu.errors import StoreError

MAGIC = b"TZCTRL01"
VERSION = 1
PAGE_BYTES = 4096

_PAGE = struct.Struct("<8sIIQQ")
_GENERATION_AT, _STOP_AT = 16, 24


def write_control(directory: str | os.PathLike[str]) -> Path:
    """Create the control page of a job step, `<directory>/control`: no map yet, not stopped."""
    path = Path(directory) / "control"
    replace_file(path, new_page(0))
    return path


def new_page(generation: int) -> bytes:
    """A control page that names `map.<generation>`; 0: no map yet."""
    return _PAGE.pack(MAGIC, VERSION, 0, generation, 0).ljust(PAGE_BYTES, b"\0")


def announce(directory: str | os.PathLike[str], generation: int) -> None:
    """Tell every process of the job that `map.<generation>` is the current map."""
    _store(Path(directory) / "control", _GENERATION_AT, generation)


def stop(directory: str | os.PathLike[str]) -> None:
    """No more placement in this job, from the next create on."""
    _store(Path(directory) / "control", _STOP_AT, 1)


def read_control(directory: str | os.PathLike[str]) -> tuple[int, bool]:
    """(generation, stopped). Raises StoreError for what is no control page."""
    path = Path(directory) / "control"
    try:
        page = path.read_bytes()
    except OSError as error:
        raise StoreError(str(path), "a readable control page", str(error)) from None
    _check_control(path, page)
    _, _, _, generation, stopped = _PAGE.unpack_from(page)
    return generation, bool(stopped)


def _check_control(path: Path, page: bytes | mmap.mmap) -> None:
    if len(page) != PAGE_BYTES or page[:12] != MAGIC + struct.pack("<I", VERSION):
        raise StoreError(str(path), f"a control page of version {VERSION}", bytes(page[:12]))


def _store(path: Path, offset: int, value: int) -> None:
    """One aligned 8-byte store into the page that all readers have mapped."""
    try:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
            _check_control(path, page)
            word = ctypes.c_uint64.from_buffer(page, offset)
            word.value = value
            del word
            page.flush()  # on NFS other nodes see it once their server has it
    except (OSError, ValueError) as error:
        raise StoreError(str(path), "a writable control page", str(error)) from None


def replace_file(path: Path, data: bytes) -> None:
    """Write beside, sync, rename: a reader sees the old file or the whole new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with open(descriptor, "wb") as file:
                os.fchmod(file.fileno(), 0o644)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.rename(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(str(path), "a place that a file can be written to", str(error)) from None
