"""Are the directories of maps and spools as `tarazu run` needs them, and is anything left in them?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tarazu import trusted
from tarazu.config import own_path
from tarazu.doctor.node import Finding, Node, fail, ok, skip, warn
from tarazu.errors import TarazuError
from tarazu.run import directories, leftovers
from tarazu.units import human_bytes

SPOOL_BYTES = 256 << 20
"""What a step's spools may take at most by default."""
MEMORY = ("tmpfs", "ramfs")


def look(node: Node) -> Iterator[Finding]:
    run = node.settings.run
    maps = own_path(run.map_dir)
    spools = Path(directories.here(directories.place(run)))
    for name, path, set_to in (
        ("run.state_dir", own_path(run.state_dir), run.state_dir),
        ("run.map_dir", maps, run.map_dir),
        ("run.spool_dir", spools, run.spool_dir),
    ):
        if trouble := _trouble(name, path, in_home=set_to.startswith("~")):
            yield trouble
        elif path == maps:
            yield _shared(node, maps)
        elif path == spools:
            yield from _spools(spools)
    yield from _left("run.map_dir", maps)
    yield from _left("run.spool_dir", spools)


def _existing(path: Path) -> Path:
    """The directory, or the nearest one above it that is there."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _trouble(name: str, path: Path, *, in_home: bool) -> Finding | None:
    there = _existing(path)
    if not there.is_dir():
        return fail(name, f"{there} is not a directory", f"remove it, or set {name}")
    if not os.access(there, os.W_OK | os.X_OK, effective_ids=True):
        return fail(name, f"this user cannot write {path}", f"change the rights of {there}, or set {name}")
    if not in_home and trusted.is_changeable(path):
        text = f"{path}: other users can change its files, so nothing is recorded there"
        return fail(
            name, text, f"check it and the directories above with `ls -ld`, or set {name} to one of your own"
        )
    return None


def _shared(node: Node, maps: Path) -> Finding:
    """Jobs of several nodes need their map on all of them."""
    kind = directories.file_system_type(_existing(maps))
    if not kind:
        return skip("run.map_dir", f"{maps}: the type of its file system is unknown")
    if kind not in directories.LOCAL_FILE_SYSTEMS:
        return ok("run.map_dir", f"{maps} on {kind}, which other nodes share")
    if node.settings.run.gather != "auto":
        mend = "set run.map_dir to a shared file system, or run.gather = 'auto'"
        return fail(
            "run.map_dir",
            f"{maps} on {kind}, which other nodes do not share: the files of jobs on several nodes are not placed",
            mend,
        )
    return ok("run.map_dir", f"{maps} on {kind}: maps are sent to a job's other nodes (run.gather)")


def _spools(spools: Path) -> Iterator[Finding]:
    there = _existing(spools)
    kind = directories.file_system_type(there)
    if kind and kind not in directories.LOCAL_FILE_SYSTEMS:
        mend = "set run.spool_dir to the node's memory, such as /dev/shm/tarazu-{uid}"
        yield fail("run.spool_dir", f"{spools} on {kind}: each process would write over the network", mend)
    elif kind not in MEMORY:
        mend = "set run.spool_dir to /dev/shm/tarazu-{uid}, which is in memory"
        yield warn("run.spool_dir", f"{spools} on {kind or 'unknown'}: slower than memory", mend)
    space = os.statvfs(there)
    free = space.f_bavail * space.f_frsize
    if free < SPOOL_BYTES:
        yield warn(
            "run.spool_dir",
            f"{human_bytes(free)} free on {there}",
            "free some space: files that do not fit are not recorded",
        )
    else:
        yield ok("run.spool_dir", f"{spools} on {kind or 'unknown'}, {human_bytes(free)} free")


def _left(name: str, directory: Path) -> Iterator[Finding]:
    """Of steps whose leader was killed."""
    left = []
    for step, path in leftovers.steps(directory).items():
        with contextlib.suppress(OSError, TarazuError), trusted.opened(path, in_home=True) as opened:
            if leftovers.is_left(opened):
                left.append(step)
    if left:
        text = f"files of {len(left)} killed steps, such as {left[0]}"
        yield warn(f"{name}: left", text, "the next `tarazu run` on this node removes them")
