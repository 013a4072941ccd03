"""Which names of a Darshan log lie on which file system, and what their keys there are.

A log's table of mounts has paths and types, not the names of file systems: these come from the mounts of this node, or
from the user.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from tarazu.errors import TraceError
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.trace.darshan.log import DarshanLog


class Place(msgspec.Struct, frozen=True):
    """What a log calls `directory` is `below` of a file system (empty: its root)."""

    directory: str
    fs_name: str
    below: str = ""

    def key(self, name: str) -> str | None:
        """The key of a path without `.` and `..`; None for one that is not below `directory`."""
        root = self.directory.rstrip("/")
        return self.below + name[len(root) :] if name.startswith(f"{root}/") else None


class PlaceKeys:
    """The keys of a log's names in some of these places; each directory is looked at once."""

    def __init__(self, log: DarshanLog, places: Sequence[Place]) -> None:
        self._log = log
        self._places = sorted(places, key=lambda p: -len(p.directory))
        self._known: dict[str, str | None] = {}

    def __call__(self, name: str) -> str | None:
        """None for a name in no place, and where another mount of the log lies between."""
        directory, _, last = posixpath.normpath(name).rpartition("/")
        if directory not in self._known:
            self._known[directory] = self._key(directory + "/")
        below = self._known[directory]
        return None if below is None else below + last

    def _key(self, directory: str) -> str | None:
        mount = self._log.mount_of(directory)
        for place in self._places:
            key = place.key(directory)
            if key is not None:
                return None if mount and _holds(place.directory, mount.path, strictly=True) else key
        return None


def find_places(log: DarshanLog, here: Sequence[Place], named: Sequence[tuple[str, str]]) -> list[Place]:
    """Where the log's files are on Lustre; empty where the job wrote none there.

    `here`: the mounts of this node. `named`: what the user says, (directory or "", file system or "").
    Raises TraceError saying what was found and what to add.
    """
    if any(directory for directory, _ in named):
        return [_named(log, here, directory, fs_name) for directory, fs_name in named]
    fs_name = next((name for _, name in named), "")
    written = _written(log)
    mounted = [mount.path for mount in log.mounts if mount.kind == "lustre"]
    by_path = {place.directory: place for place in here}
    places = [by_path.get(path, Place(path, "")) for path in mounted]
    if not mounted:
        places = list(here)
    places = [p for p in places if any(map(PlaceKeys(log, [p]), written))]
    if not places and not mounted and written:
        raise TraceError(log.path, "files on a Lustre mount, or --mount DIR --fs NAME", whereabouts(log))
    if fs_name and places:
        chosen = [p for p in places if p.fs_name == fs_name]
        if not chosen and len(places) > 1:
            raise TraceError(log.path, f"one Lustre mount to be {fs_name}: add --mount DIR", _shown(places))
        places = chosen or [msgspec.structs.replace(places[0], fs_name=fs_name)]
    nameless = [p.directory for p in places if not p.fs_name]
    if nameless:
        raise TraceError(
            log.path,
            "a Lustre mount of this node, whose file system's name is known: add --mount DIR --fs NAME",
            ", ".join(nameless),
        )
    return places


def _named(log: DarshanLog, here: Sequence[Place], directory: str, fs_name: str) -> Place:
    """What the user calls a mount: one of this node, a directory in one (also by links), or whatever he says."""
    if not directory.startswith("/"):
        raise TraceError("--mount", "a path from /", directory)
    directory = posixpath.normpath(directory)
    real = os.path.realpath(directory)
    for path in (directory, real):
        for place in sorted(here, key=lambda p: -len(p.directory)):
            if _holds(place.directory, path) and fs_name in ("", place.fs_name):
                return Place(directory, place.fs_name, place.below + path[len(place.directory.rstrip("/")) :])
    if not fs_name:
        raise TraceError(
            f"--mount {directory}", "--fs NAME beside it: no Lustre of this node is mounted there"
        )
    for mount in log.mounts:
        if mount.kind == "lustre" and _holds(mount.path, directory):
            return Place(directory, fs_name, directory[len(mount.path.rstrip("/")) :])
    return Place(directory, fs_name)


def whereabouts(log: DarshanLog) -> str:
    """Where the job wrote, in words: `32 files below /scratch/run on / (ext4)`; empty: nowhere."""
    of: dict[tuple[str, str], list[str]] = {}
    for name in _written(log):
        mount = log.mount_of(name)
        of.setdefault((mount.path, mount.kind) if mount else ("/", "unknown"), []).append(name)
    parts = []
    for (path, kind), names in sorted(of.items(), key=lambda item: -len(item[1])):
        common = posixpath.commonpath([posixpath.dirname(name) for name in names])
        parts.append(f"{counted(len(names), 'file')} below {common} on {path} ({kind})")
    return ", ".join(parts[:3])


def _written(log: DarshanLog) -> list[str]:
    records = set(log.accesses["record"][log.accesses["written_bytes"] > 0].tolist())
    return sorted(posixpath.normpath(n) for r, n in log.names.items() if r in records and n.startswith("/"))


def _holds(directory: str, path: str, *, strictly: bool = False) -> bool:
    root = directory.rstrip("/")
    return (path.startswith(f"{root}/") and path != f"{root}/") or (path.rstrip("/") == root and not strictly)


def _shown(places: Iterable[Place]) -> str:
    return ", ".join(f"{p.directory} ({p.fs_name or 'not mounted here'})" for p in places)
