"""Which names of a Darshan log lie on which file system, and what their keys there are.

A log's table of mounts has paths and types, not the names of file systems: these come from the mounts of this node, or
from the user.
"""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from tarazu.errors import TraceError
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.trace.darshan.log import DarshanLog, DarshanMount


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

    def __init__(self, log: DarshanLog, places: Sequence[Place], here: Sequence[Place] = ()) -> None:
        """here: the mounts of this node, on which a link may lead to Lustre as it did for the job."""
        self._log = log
        self._places = sorted(places, key=lambda p: -len(p.directory))
        self._here = sorted(here, key=lambda p: -len(p.directory))
        self._linked = linked_names(log)
        self._known: dict[tuple[str, str | None], str | None] = {}

    def __call__(self, name: str) -> str | None:
        """None for a name in no place, and where another mount of the log lies between."""
        directory, _, last = name.rpartition("/")
        believed = self._linked.get(name)
        of = (directory, believed and posixpath.dirname(believed))
        if of not in self._known:
            key = self._key(directory + "/")
            self._known[of] = key if key or believed is None else self._key_of_linked(directory, of[1])
        below = self._known[of]
        return None if below is None else below + last

    def _key(self, directory: str) -> str | None:
        mount = self._log.mount_of(directory)
        for place in self._places:
            key = place.key(directory)
            if key is not None:
                return None if mount and _holds(place.directory, mount.path, strictly=True) else key
        return None

    def _key_of_linked(self, directory: str, believed: str | None) -> str | None:
        """Where the link leads on this node; else below the only Lustre that the log has."""
        real = os.path.realpath(directory) + "/"
        there = next((place for place in self._here if real != f"{directory}/" and place.key(real)), None)
        if there and any(place.fs_name == there.fs_name for place in self._places):
            return there.key(real)
        return self._key(believed + "/") if believed else None


def lustre_mounts(log: DarshanLog) -> list[str]:
    """Where the log has Lustre mounted; where its table has none, mounts all of whose files have a Lustre layout."""
    mounted = dict.fromkeys(mount.path for mount in log.mounts if mount.kind == "lustre")
    if mounted:
        return list(mounted)
    laid = set(_laid_out(log))
    others = {m.path for n in log.names.values() if n not in laid and (m := log.mount_of(n))}
    return sorted({m.path for n in laid if (m := log.mount_of(n)) and m.path != "/"} - others)


def linked_names(log: DarshanLog) -> dict[str, str]:
    """Paths of files that have a Lustre layout but are below no Lustre mount, so that a link led there → the path that
    each is believed to have on the only Lustre of the log. Empty where there are several.
    """
    mounted = lustre_mounts(log)
    linked: defaultdict[str, list[str]] = defaultdict(list)
    for name in _laid_out(log):
        mount = log.mount_of(name)
        if mount is None or mount.path not in mounted:
            linked[posixpath.dirname(name)].append(name)
    if not linked or len(mounted) != 1:
        return {name: "" for names in linked.values() for name in names}
    lustre = mounted[0].rstrip("/")
    names = set(log.names.values())
    there = {posixpath.dirname(n) for n in names if (m := log.mount_of(n)) and m.path == mounted[0]}
    above = {a for directory in there for a in _up_to(directory, lustre)}
    found: dict[str, str] = {}
    for directory, inside in linked.items():
        for target in (targets := _targets(directory, log.mount_of(inside[0]), lustre, above)):
            if target in there or names.isdisjoint(_moved(inside, target)):
                break
        else:
            target = targets[-1]
        found |= zip(inside, _moved(inside, target), strict=True)
    return found


def _targets(directory: str, mount: DarshanMount | None, lustre: str, above: set[str]) -> list[str]:
    """Where a linked directory may lie on Lustre, the likeliest first: as below its own mount, if that is there; behind
    the Lustre's path, as automounters have it (`/net/scratch`); in the only directory there that has the name of this
    one, or of one above it; as below its own mount.
    """
    own = mount.path.rstrip("/") if mount else ""
    direct = lustre + directory[len(own) :]
    targets = [direct] if direct in above else []
    if lustre and (not own or (mount and mount.kind == "autofs")):
        _, mounted, rest = f"{directory}/".partition(f"{lustre}/")
        targets += [f"{lustre}/{rest}".rstrip("/")] if mounted else []
    for ancestor in _up_to(directory, own):
        alike = [a for a in above if posixpath.basename(a) == posixpath.basename(ancestor)]
        targets += [alike[0] + directory[len(ancestor) :]] if len(alike) == 1 else []
    return [*targets, direct]


def _up_to(directory: str, root: str) -> Iterator[str]:
    """A directory and those above it, below `root`."""
    while len(directory) > max(len(root), 1):
        yield directory
        directory = posixpath.dirname(directory)


def _moved(names: Sequence[str], directory: str) -> list[str]:
    return [posixpath.join(directory, posixpath.basename(name)) for name in names]


def _laid_out(log: DarshanLog, relative: str = "") -> list[str]:
    """Paths of the files with a record of Lustre's; `relative`: put before the names of those without a directory."""
    records = log.layouts.keys() | log.affected(("odd-layout",))
    return _paths((log.names.get(r, "") for r in sorted(records)), relative)


def left_out(log: DarshanLog, places: Sequence[Place], here: Sequence[Place]) -> str:
    """Files that the job wrote on Lustre, by their layouts, but in none of these places, in words; empty: none."""
    keys = PlaceKeys(log, places, here)
    written = set(_written(log, "./"))
    names = [n for n in _laid_out(log, "./") if n in written and keys(n) is None]
    if not names:
        return ""
    mounted = ", ".join(lustre_mounts(log))
    text = (
        f"{counted(len(names), 'file')} with a Lustre layout ({names[0]}{', ...' if len(names) > 1 else ''})"
    )
    return f"{text} below no directory that was taken (the log has Lustre on {mounted}): add --mount DIR --fs NAME"


def find_places(log: DarshanLog, here: Sequence[Place], named: Sequence[tuple[str, str]]) -> list[Place]:
    """Where the log's files are on Lustre; empty where the job wrote none there.

    `here`: the mounts of this node. `named`: what the user says, (directory or "", file system or "").
    Raises TraceError saying what was found and what to add.
    """
    if any(directory for directory, _ in named):
        return [_named(log, here, directory, fs_name) for directory, fs_name in named]
    fs_name = next((name for _, name in named), "")
    written = _written(log)
    by_path = {place.directory: place for place in here}
    mounted = lustre_mounts(log)
    if not any(mount.kind == "lustre" for mount in log.mounts) and _holding(log, here, written, here):
        mounted = []
    places = [by_path.get(path, Place(path, "")) for path in mounted] if mounted else list(here)
    places = _holding(log, places, written, here)
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


def _holding(
    log: DarshanLog, places: Sequence[Place], written: Sequence[str], here: Sequence[Place]
) -> list[Place]:
    """Those in which any of these files is."""
    return [p for p in places if any(map(PlaceKeys(log, [p], here), written))]


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


def _written(log: DarshanLog, relative: str = "") -> list[str]:
    records = set(log.accesses["record"][log.accesses["written_bytes"] > 0].tolist())
    return sorted(_paths((n for r, n in log.names.items() if r in records), relative))


def _paths(names: Iterable[str], relative: str) -> list[str]:
    return [n if n.startswith("/") else relative + n for n in names if n and (relative or n.startswith("/"))]


def _holds(directory: str, path: str, *, strictly: bool = False) -> bool:
    root = directory.rstrip("/")
    return (path.startswith(f"{root}/") and path != f"{root}/") or (path.rstrip("/") == root and not strictly)


def _shown(places: Iterable[Place]) -> str:
    return ", ".join(f"{p.directory} ({p.fs_name or 'not mounted here'})" for p in places)
