"""CephFS: a target is a data pool, which the MDS knows by its id; a file lies in one.

The client has no list of pools: the MDS refuses what is none (EINVAL), and the OSDs refuse whoever has no rights in a
pool, only when data comes. So a pool is tried, once a step, before a plan that names it is used: with a file of one
byte beside the first that is planned there.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

from tarazu import native
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.stats.client import FileSystem, Mount

KIND = "ceph"
PLACE_S = 5e-3
"""The pool is set, and fsync has the MDS write its journal (preload/place/ceph.c): one file after the other, whoever
asks. `python -m tests.ceph.cost`, Ceph 16.2 on one machine, OSDs in files; a journal on slower disks costs more.
"""
XATTR_FILE = "ceph.file.layout"
XATTR_FILE_POOL = "ceph.file.layout.pool"
XATTR_DIRECTORY = "ceph.dir.layout"
OBJECT_BYTES = 4 << 20
"""`object_size` of a file that nobody has given a layout."""
TRIED = ".tarazu-pool-"
"""What the name of a file begins with by which a pool is tried."""
MOST_DIRECTORIES = 8
"""In which pools are tried, as long as the client's rights refuse all."""


def file_system(fs_name: str, root: str) -> FileSystem:
    """Its targets are the monitors', of whom a client need not know."""
    return FileSystem(fs_name, frozenset(), frozenset())


def directory_default(path: str) -> bytes:
    """A layout as Lustre has it, with one target where the directory, or one above it, names a pool of its own.

    The topmost directory names the file system's default pool, or what its administrator put in its place: that is no
    user's choice. Raises OSError.
    """
    for above in (PurePosixPath(path), *PurePosixPath(path).parents):
        if os.path.ismount(above):
            break
        try:
            os.getxattr(above, XATTR_DIRECTORY)
        except OSError as error:
            if error.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
                raise
            continue
        return native.encode_lov(_one(), [(0,)])
    return b""


def layout_of(path: str) -> str:
    """A file's layout in Ceph's own words; empty where it is not on CephFS. Raises OSError."""
    try:
        return os.getxattr(path, XATTR_FILE).decode(errors="replace")
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return ""
        raise


def own_default(fs: FileSystem) -> bytes:
    return native.encode_lov(_one(), [()])


def _one() -> Layout:
    return Layout((Component(0, EOF, OBJECT_BYTES, 1),))


def refusal(layout: Layout) -> str:
    """The MDS takes any pool; what of a layout tarazu chooses is nothing else."""
    return (
        "" if len(layout.components) == 1 and layout.components[0].stripe_count == 1 else "more than one pool"
    )


def not_there(fs: FileSystem, targets: Collection[int]) -> list[int]:
    """Nobody here knows."""
    return []


def refused_targets(mounts: Sequence[Mount], keys: Sequence[str], targets: Collection[int]) -> dict[int, str]:
    """Pools in which this user cannot write → why, tried in directories in which files are planned.

    Rights to set layouts may differ by directory: one that refuses them all says nothing of the next one, where the
    library asks for itself. Only what is refused in all that are tried counts as refused.
    """
    refused: dict[int, str] = {}
    untried = sorted(targets)
    for directory in islice(_existing(mounts, keys), MOST_DIRECTORIES):
        while untried:
            try:
                refused[untried[0]] = _tried(directory, untried[0])
            except _NoLayoutsHere as error:
                refused |= dict.fromkeys(untried, str(error))
                break
            untried.pop(0)
    return {pool: why for pool, why in sorted(refused.items()) if why}


class _NoLayoutsHere(Exception):
    """The client's key lacks `p` for this directory."""


def _tried(directory: str, pool: int) -> str:
    """Why a byte cannot be written to a pool; empty: it can, or here no file can be made at all.

    Raises _NoLayoutsHere.
    """
    path = os.path.join(directory, f"{TRIED}{os.getpid()}-{os.urandom(4).hex()}")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return ""
    try:
        try:
            os.setxattr(descriptor, XATTR_FILE_POOL, str(pool).encode())
        except PermissionError as error:
            raise _NoLayoutsHere(f"pool {pool}: {error.strerror}") from None
        os.fsync(descriptor)  # else the MDS keeps it locked until its journal is written, for seconds
        os.write(descriptor, b"\0")
        os.fdatasync(descriptor)
    except OSError as error:
        return f"pool {pool}: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            os.close(descriptor)
    return ""


def _existing(mounts: Sequence[Mount], keys: Sequence[str]) -> Iterator[str]:
    """The directories in which these files are planned, or the deepest above them that is there, each once; only those
    that may be written.
    """
    seen: set[str] = set()
    for parent in dict.fromkeys(PurePosixPath(key).parent for key in keys):
        place = _deepest(mounts, parent)
        if place and place not in seen and os.access(place, os.W_OK | os.X_OK):
            yield place
        seen.add(place)


def _deepest(mounts: Sequence[Mount], directory: PurePosixPath) -> str:
    """The deepest directory at or above this one that is there; empty where it lies on none of the mounts."""
    for above in (directory, *directory.parents):
        for mount in mounts:
            if above.is_relative_to(mount.subdirectory or "/"):
                place = PurePosixPath(mount.path) / above.relative_to(mount.subdirectory or "/")
                if os.path.isdir(place):
                    return str(place)
    return ""
