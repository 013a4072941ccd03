"""Where levers' parameters lie, below any root; they are read there, and set by `lctl`.

Read in Lustre's source at 2.12.9, 2.15.7, 2.16.1, 2.17.0 and 2.17.57 (ptlrpc/lproc_ptlrpc.c, osc/lproc_osc.c,
llite/lproc_llite.c): parameters of clients moved from procfs to sysfs one by one, those of NRS are in debugfs.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import Unavailable

PLACES = ("sys/fs/lustre", "sys/kernel/debug/lustre", "proc/fs/lustre")
MAX_BYTES = 1 << 20
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV)


class Found(NamedTuple):
    text: str
    of: str
    """The inode of the directory it lies in: another one when the device was taken away and another came under its
    name.
    """


def find(root: str | Path, parameter: str) -> Found | None:
    """`ost.OSS.ost_io.nrs_policies`; None where it is not there, or there is no such device. Takes 20 us.

    Raises Unavailable when it cannot be read.
    """
    device, _, name = parameter.replace(".", "/").rpartition("/")
    for place in PLACES:
        directory = f"{root}/{place}/{device}"
        try:
            text = _text(f"{directory}/{name}")
            return Found(text, str(os.stat(directory).st_ino))
        except OSError as error:
            if error.errno not in _ABSENT:
                raise Unavailable(f"{parameter}: {error.strerror}") from None
        except ValueError as error:
            raise Unavailable(f"{parameter}: {error}") from None
    return None


def read(root: str | Path, parameter: str) -> str | None:
    """Its text alone. Raises Unavailable."""
    file = find(root, parameter)
    return None if file is None else file.text


def _text(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("expected a regular file")
        pieces, left = [], MAX_BYTES
        while piece := os.read(descriptor, min(left + 1, 1 << 16)):
            pieces.append(piece)
            left -= len(piece)
            if left < 0:
                raise ValueError(f"expected at most {MAX_BYTES} bytes, found more")
        return b"".join(pieces).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def devices(root: str | Path, kind: str) -> list[str]:
    """Names below `osc` or `llite`, sorted. Raises Unavailable."""
    names: set[str] = set()
    for place in PLACES:
        try:
            names.update(os.listdir(f"{root}/{place}/{kind}"))
        except OSError as error:
            if error.errno not in _ABSENT:
                raise Unavailable(f"{kind}: {error.strerror}") from None
    return sorted(names)
