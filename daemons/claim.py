"""A directory that one daemon has for itself."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tarazu.errors import StoreError, Unavailable


def claim(directory: Path, other: str) -> int:
    """A descriptor that locks out others until it is closed; what a crash left half written is removed.

    `other`: what is said of the one that is there. Raises StoreError, Unavailable.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / "daemon", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(str(directory), "a directory that can be written", error.strerror) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise Unavailable(f"{directory}: {other}") from None
    for left in directory.glob(".*.part"):
        left.unlink(missing_ok=True)
    return descriptor
