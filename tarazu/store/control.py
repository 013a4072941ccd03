"""What lies beside the placement maps of a running job step: its control page (`docs/formats.md`), which says which map
is current and whether the job is stopped; and the file `about`, which tells others whose step it is.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tarazu import durable, trusted
from tarazu.errors import StoreError
from tarazu.malformed import MALFORMED, described
from tarazu.names import to_text

if TYPE_CHECKING:
    from mmap import mmap

MAGIC = b"TZCTRL01"
VERSION = 1
PAGE_BYTES = 4096

REASON_BYTES = 256
"""A reason is kept in so many, cut off and with zeros behind."""

_PAGE = struct.Struct(f"<8sIIQQQ24x{REASON_BYTES}s{REASON_BYTES}s")
_GENERATION_AT = 16
_OWNER, _SITE = (24, 64), (32, 64 + REASON_BYTES)
"""Where it stands that the job is stopped, and why: by its owner, by the site."""


class Control(NamedTuple):
    """What a control page says."""

    generation: int
    """Of the current map, 0 = none yet."""
    stopped: str | None
    """Why the job's owner has stopped it, perhaps empty; None: he has not."""
    site_stopped: str | None
    """The same of the site."""


def write_control(directory: str | os.PathLike[str]) -> Path:
    """Create the control page of a job step, `<directory>/control`: no map yet, not stopped. Not synced, as its maps:
    after a crash the step is over too.
    """
    path = Path(directory) / "control"
    replace_file(path, new_page(0), sync=False)
    return path


def new_page(generation: int) -> bytes:
    """A control page that names `map.<generation>`; 0: no map yet."""
    return _PAGE.pack(MAGIC, VERSION, 0, generation, 0, 0, b"", b"").ljust(PAGE_BYTES, b"\0")


def announce(directory: str | os.PathLike[str], generation: int) -> None:
    """Tell every process of the job that `map.<generation>` is the current map."""
    _store(Path(directory) / "control", _GENERATION_AT, generation)


def stop(directory: str | os.PathLike[str], reason: str = "") -> None:
    """Neither record nor place in this job, from the next open on."""
    _set_stop(Path(directory) / "control", _OWNER, reason)


def resume(directory: str | os.PathLike[str]) -> None:
    """The inverse of `stop`."""
    _set_stop(Path(directory) / "control", _OWNER, None)


def set_site_stop(directory: str | os.PathLike[str], reason: str | None) -> None:
    """Hand the site's stop on to the job's processes; None: there is none any more."""
    _set_stop(Path(directory) / "control", _SITE, reason)


def read_control(directory: str | os.PathLike[str]) -> Control:
    """Raises StoreError for what is no control page."""
    path = Path(directory) / "control"
    try:
        with open(trusted.open_file(path, own=False), "rb") as file:
            page = file.read(PAGE_BYTES + 1)
    except OSError as error:
        raise StoreError(str(path), "a readable control page", str(error)) from None
    _check_control(path, page)
    _, _, _, generation, stopped, by_site, why, why_site = _PAGE.unpack_from(page)
    return Control(generation, _text(why) if stopped else None, _text(why_site) if by_site else None)


def _check_control(path: Path, page: bytes | mmap) -> None:
    if len(page) != PAGE_BYTES or page[:12] != MAGIC + struct.pack("<I", VERSION):
        raise StoreError(str(path), f"a control page of version {VERSION}", bytes(page[:12]))


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def _set_stop(path: Path, places: tuple[int, int], reason: str | None) -> None:
    flag_at, reason_at = places
    kept = (reason or "").encode()[: REASON_BYTES - 1]
    _store(path, flag_at, reason is not None, reason_at, kept + bytes(REASON_BYTES - len(kept)))


def _store(path: Path, offset: int, value: int, text_at: int = 0, text: bytes = b"") -> None:
    """One aligned 8-byte store into the page that all readers have mapped; before it a text that no library reads."""
    import ctypes
    from mmap import mmap

    try:
        with (
            open(trusted.open_file(path, os.O_RDWR), "r+b") as file,
            mmap(file.fileno(), 0) as page,
        ):
            _check_control(path, page)
            page[text_at : text_at + len(text)] = text
            word = ctypes.c_uint64.from_buffer(page, offset)
            word.value = value
            del word
            page.flush()  # on NFS other nodes see it once their server has it
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise StoreError(trusted.shown(path), "a writable control page", found) from None


def replace_file(path: Path, data: bytes, *, sync: bool = True) -> None:
    """As `durable.replace`. Raises StoreError."""
    try:
        durable.replace(path, data, sync=sync)
    except OSError as error:
        found = error.strerror or str(error)
        raise StoreError(trusted.shown(path), "a place that a file can be written to", found) from None


ABOUT = "about"
ABOUT_MOST_BYTES = 64 << 10


class RunningStep(msgspec.Struct, frozen=True):
    """A job step that runs."""

    run: str
    application: str
    job_id: str
    array_job: str
    array_index: int | None
    mode: str
    ranks: int
    nodes: int
    host: str
    """Of its leader."""
    pid: int
    started_s: float
    """Unix time."""


def write_about(directory: str | os.PathLike[str], about: RunningStep) -> None:
    """Into the directory of the step's maps. Not synced: after a crash the step is over too. Raises OSError."""
    fields = {name: to_text(v) if isinstance(v, str) else v for name, v in msgspec.to_builtins(about).items()}
    (Path(directory) / ABOUT).write_bytes(msgspec.json.encode(fields))


def read_about(directory: str | os.PathLike[str]) -> RunningStep | None:
    """None without such a file: the step has just begun or ended."""
    try:
        descriptor = os.open(
            Path(directory) / ABOUT, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        )
        with open(descriptor, "rb") as file:
            return msgspec.json.decode(file.read(ABOUT_MOST_BYTES), type=RunningStep)
    except (OSError, *MALFORMED):
        return None


def of_job(wanted: str, job_id: str, array_job: str = "", array_index: int | None = None) -> bool:
    """Is a step one of that job? `4711`, `4711.pbs1`, an array `4710` or its task `4710_3`."""
    task = f"{array_job}_{array_index}" if array_job else ""
    return bool(wanted) and (wanted in (job_id, array_job, task) or job_id.startswith(f"{wanted}."))


described(RunningStep)
