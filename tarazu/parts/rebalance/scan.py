"""Files below directories on Lustre: `lfs find` lists them, attributes and layout of each are read.

Names only: for `-size` it would ask the servers of data, and hang while one of them is down.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from tarazu import native
from tarazu.errors import BadInput, LayoutError
from tarazu.lustre import XATTR_LUSTRE_LOV, directory_default, root_default
from tarazu.native import Decoded
from tarazu.parts.rebalance.files import Files, Stat, Why
from tarazu.statx import look as look_at
from tarazu.units import counted

THREADS = 16
"""Files that are looked at at the same time: each waits for the MDS, then for its OSTs."""
BATCH = 2048
BLOCK_BYTES = 512
"""Of `st_blocks`."""
READ_BYTES = 1 << 20

Found = tuple[str, Stat, Decoded] | tuple[str, Stat | None, Why]


def scan(
    directories: Sequence[str],
    *,
    least_bytes: int,
    idle_s: float,
    now_s: float,
    osts: Collection[int] | None = None,
    excluded: Callable[[str], bool] = lambda path: False,
    lfs: str = "lfs",
    progress: Callable[[str], None] = lambda text: None,
) -> Files:
    """Every regular file of `least_bytes` or more, hard links once.

    A file that was written within `idle_s` is taken for one of a running job and left. Who reads it goes on while it is
    moved. One in a directory whose own default names OSTs is where somebody wants it. Raises BadInput.
    """
    files = Files(osts)
    linked: set[tuple[int, int]] = set()
    wished: dict[str, bool] = {}

    def look(path: str) -> Found | None:
        try:
            of = look_at(path, follow=False)
        except TimeoutError:
            return path, None, "servers that do not answer"
        except OSError:
            return path, None, "gone"
        if not stat.S_ISREG(of.st_mode):
            return None
        attributes = Stat(
            of.st_size, of.st_blocks * BLOCK_BYTES, of.st_uid, int(of.st_atime), int(of.st_mtime)
        )
        if of.st_size < least_bytes:
            return path, attributes, "small"
        if of.st_nlink > 1:
            if (of.st_dev, of.st_ino) in linked:
                return None
            linked.add((of.st_dev, of.st_ino))
        if excluded(path):
            return path, attributes, "excluded"
        if attributes.modified_s > now_s - idle_s:
            return path, attributes, "being written"
        parent = os.path.dirname(path)
        if parent not in wished:
            wished[parent] = _names_osts(parent)
        if wished[parent]:
            return path, attributes, "where a directory's default names OSTs"
        try:
            blob = os.getxattr(path, XATTR_LUSTRE_LOV, follow_symlinks=False)
            return path, attributes, native.decode_lov(blob)
        except (OSError, LayoutError):
            return path, attributes, "layout unreadable"

    with ThreadPoolExecutor(THREADS) as threads:
        for directory in directories:
            paths = _listed(os.path.abspath(directory), lfs)
            while batch := list(islice(paths, BATCH)):
                for entry in threads.map(look, batch):
                    if entry is None:
                        continue
                    path, of, what = entry
                    if of is None or isinstance(what, str):
                        files.leave(what, of.size_bytes if of else 0)  # type: ignore[arg-type]
                    else:
                        files.add(path, of, what)
                progress(
                    f"{counted(len(files), 'file')} that could be moved, {sum(files.left.values())} others"
                )
    return files


def _names_osts(directory: str) -> bool:
    try:
        shown = directory_default(directory)
        return shown not in (b"", root_default(directory)) and native.decode_lov(shown).names_osts
    except (OSError, LayoutError):
        return False


def _listed(directory: str, lfs: str) -> Iterator[str]:
    if not os.path.isdir(directory):
        raise BadInput(directory, "a directory")
    listed = False
    try:
        process = subprocess.Popen(
            [lfs, "find", directory, "-type", "f", "--print0"],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        yield from _walked(directory)
        return
    with process:
        assert process.stdout
        rest = b""
        while part := process.stdout.read(READ_BYTES):
            *whole, rest = (rest + part).split(b"\0")
            listed = listed or bool(whole)
            yield from map(os.fsdecode, whole)
    # What it says of single directories below is on standard error already.
    if process.returncode and not (listed and os.access(directory, os.R_OK | os.X_OK)):
        raise BadInput(directory, "a directory that `lfs find` can list", f"status {process.returncode}")


def _walked(directory: str) -> Iterator[str]:
    for where, _, names in os.walk(directory):
        for name in names:
            yield os.path.join(where, name)
