"""Setting and taking back the default layout of directories by `lfs setstripe`, as the user who runs it.

Only directories are touched whose default nobody has chosen. Those that the job makes below get a copy of it, as Lustre
does that: they are found by what they have, and lose it too.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from tarazu import native
from tarazu.errors import LayoutError, Unavailable
from tarazu.layout.setstripe import format_layout, parse_layout
from tarazu.lustre import LOV_ALL_STRIPES, directory_default, root_default
from tarazu.model import Layout
from tarazu.prepare.notes import Note, Notes, Set

CALL_S = 30.0
MOST = 100_000
"""Directories that are looked through below one that was set."""

Left = list[tuple[str, str]]
"""(directory, why it was left)."""


def lfs(*words: str) -> None:
    """Raises Unavailable."""
    try:
        done = subprocess.run(
            ["lfs", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CALL_S, check=False
        )  # fmt: skip
    except FileNotFoundError:
        raise Unavailable("lfs: expected it in PATH, found none") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"lfs {shlex.join(words)}: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"status {done.returncode}"]
        raise Unavailable(f"lfs {shlex.join(words)}: {said[0][:200]}")


def own_default(path: str | Path, of_root: bytes | None = None) -> bytes:
    """A directory's own default, as `lustre.lov`; empty where nobody has chosen one. Raises OSError.

    Where a directory has none, Lustre shows the root's: `of_root`, looked for where it is not given.
    """
    shown = directory_default(path)
    return b"" if shown == (root_default(path) if of_root is None else of_root) else shown


def existing(path: Path, mount: Path) -> Path | None:
    """The deepest directory above `path`, or itself, that is there; None where it is not the user's, or the mount."""
    while path not in (mount, path.parent):
        if path.is_dir() and not path.is_symlink():
            status = path.stat()
            return path if status.st_uid == os.geteuid() or os.geteuid() == 0 else None
        path = path.parent
    return None


def set_all(notes: Notes, note: Note, path: Path, wanted: Sequence[tuple[str, str]]) -> tuple[Note, Left]:
    """Set (directory, words) where nobody has chosen a default; `path`: of the note. Each is noted before it is set.

    Raises StoreError: then nothing was set that is not noted.
    """
    left: Left = []
    with notes.locked():
        others = {s.path: s for p, n in notes.all().items() if notes.alive(p, n) for s in n.directories}
        for directory, words in wanted:
            try:
                status = os.stat(directory)
                there = own_default(directory)
            except OSError as error:
                left.append((directory, str(error.strerror)))
                continue
            other = others.get(directory)
            shared = other is not None and _is(there, other.words)
            if there and not shared:
                left.append((directory, "has a default layout of its own"))
                continue
            its = Set(
                directory,
                status.st_dev,
                status.st_ino,
                other.words if shared and other else words,
                time.time(),
            )
            note = msgspec.structs.replace(note, directories=(*note.directories, its))
            notes.write(path, note)
            if shared:
                continue
            try:
                lfs("setstripe", *shlex.split(words), directory)
            except Unavailable as error:
                left.append((directory, str(error)))
                note = msgspec.structs.replace(note, directories=note.directories[:-1])
                notes.write(path, note)
    return note, left


def take_back(
    notes: Notes, chosen: Callable[[Path, Note], bool], progress: Callable[[str], None] = lambda _: None
) -> tuple[list[str], Left]:
    """Of the jobs that are `chosen`: (directories that have no default any more, those that were left). Raises
    StoreError.
    """
    taken: list[str] = []
    left: Left = []
    with notes.locked():
        all_notes = notes.all()
        gone = {path: note for path, note in all_notes.items() if chosen(path, note)}
        used = {s.path for path, note in all_notes.items() if path not in gone for s in note.directories}
        for path, note in gone.items():
            failed = False
            for its in note.directories:
                if its.path in used:
                    continue
                try:
                    taken += _take_one(its, left, progress)
                except (OSError, Unavailable) as error:
                    failed = True
                    left.append((its.path, str(error)))
            if not failed:
                notes.remove(path)
    return taken, left


def _take_one(its: Set, left: Left, progress: Callable[[str], None]) -> Iterator[str]:
    """Raises OSError, Unavailable."""
    try:
        status = os.stat(its.path)
    except FileNotFoundError:
        return
    if (status.st_dev, status.st_ino) != (its.device, its.inode):
        left.append((its.path, "is another directory now"))
        return
    of_root = root_default(its.path)
    for number, directory in enumerate(_below(its)):
        progress(f"{its.path}: {number} directories")
        if number >= MOST:
            left.append((its.path, f"has more than {MOST} directories below: the others keep what they have"))
            return
        there = own_default(directory, of_root)
        if not there:
            continue
        if not _is(there, its.words):
            left.append((directory, "has a default layout that somebody else has set since"))
            continue
        try:
            lfs("setstripe", "-d", directory)
        except Unavailable as error:
            if directory == its.path:
                raise
            left.append((directory, str(error)))  # another user's, say
            continue
        yield directory


def _below(its: Set) -> Iterator[str]:
    """The directory, and those that were made or changed below since; what is older cannot have got a copy."""
    since_s = (
        its.since_s - 1 if its.since_s <= time.time() else 0.0
    )  # it may have been a clock that was ahead
    yield its.path
    todo = [its.path]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                        if entry.stat(follow_symlinks=False).st_ctime >= since_s:
                            yield entry.path
        except OSError:
            continue  # gone meanwhile, or another user's


def words_of(layout: Layout, osts: Sequence[Sequence[int]], *, start: bool = False) -> str:
    """Options of `lfs setstripe`; `start`: `osts` are start indices, of one stripe too."""
    text = format_layout(layout, osts).replace(f"-c {LOV_ALL_STRIPES}", "-c -1")
    return re.sub(r"-o (\d+)\b(?!,)", r"-i \1", text) if start else text


def _is(blob: bytes, words: str) -> bool:
    """Whether a default is what these words of `lfs setstripe` make."""
    try:
        layout, osts = parse_layout(words.replace("-c -1", f"-c {LOV_ALL_STRIPES}"))
        default = native.decode_lov(blob)
    except LayoutError:
        return False
    parts = [component for component in default.components if not component.extension]
    lists = [each for each in osts if len(each) > 1]
    starts = [each[0] if each else None for each in osts]
    return (
        default.layout() == layout
        and [part.osts for part in parts if len(part.osts) > 1] == lists
        and [part.first_ost for part in parts] == starts
    )
