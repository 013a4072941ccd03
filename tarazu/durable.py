"""Files that are there whole or not at all, also after a crash."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def replace(
    path: str | os.PathLike[str],
    data: bytes,
    *,
    mode: int = 0o644,
    sync: bool = True,
    sync_name: bool = False,
) -> None:
    """Write beside, sync, rename: whoever reads sees the old file or the whole new one.

    `mode`: of the new file, whatever the umask. `sync`: False for what nobody reads after a crash. `sync_name`: also
    the new name is on disk when this returns. Raises OSError; the old file is then still there.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        part.rename(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if sync_name:
        sync_directory(target.parent)


def sync_directory(directory: str | os.PathLike[str]) -> None:
    """What was created, renamed or removed in it is on disk when this returns. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def boot_id() -> str:
    """Which boot of this node it is: what the kernel was told is gone with the one before. Empty: it does not say."""
    with contextlib.suppress(OSError):
        return BOOT_ID.read_text().strip()
    return ""
