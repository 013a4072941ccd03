"""Where levers' parameters lie, below any root; they are read there, and set by `lctl`.

Read in Lustre's source at 2.12.9, 2.15.7, 2.16.1, 2.17.0 and 2.17.57 (ptlrpc/lproc_ptlrpc.c, osc/lproc_osc.c,
llite/lproc_llite.c): parameters of clients moved from procfs to sysfs one by one, those of NRS are in debugfs.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tarazu.errors import Unavailable
from tarazu.stats import reading

PLACES = ("sys/fs/lustre", "sys/kernel/debug/lustre", "proc/fs/lustre")
MAX_BYTES = 1 << 20
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV)


def read(root: str | Path, parameter: str) -> str | None:
    """The text of `ost.OSS.ost_io.nrs_policies`; None where it is not there, or there is no such device.

    Raises Unavailable when it cannot be read.
    """
    for place in PLACES:
        try:
            return reading.text(Path(root, place, *parameter.split(".")), MAX_BYTES)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise Unavailable(f"{parameter}: {error.strerror}") from None
        except ValueError as error:
            raise Unavailable(f"{parameter}: {error}") from None
    return None


def directory(root: str | Path, device: str, parameter: str) -> Path | None:
    """Where `parameter` of `ost.OSS.ost_io` lies."""
    for place in PLACES:
        found = Path(root, place, *device.split("."))
        if os.path.lexists(found / parameter):
            return found
    return None


def devices(root: str | Path, kind: str) -> list[str]:
    """Names below `osc` or `llite`, sorted. Raises Unavailable."""
    found: set[str] = set()
    for place in PLACES:
        try:
            found.update(os.listdir(Path(root, place, kind)))
        except OSError as error:
            if error.errno not in _ABSENT:
                raise Unavailable(f"{kind}: {error.strerror}") from None
    return sorted(found)


def identity(directory: Path | None) -> str:
    """Of a device's directory: another one when the device was taken away and another came under its name."""
    if directory is None:
        return ""
    try:
        return str(os.stat(directory).st_ino)
    except OSError:
        return ""
