"""Default layouts of directories: whether one has its own, what it is in words, which below it got a copy.

Lustre copies a directory's default to those that are made below it from then on.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu import native
from tarazu.errors import LayoutError, Unavailable
from tarazu.layout.setstripe import format_layout, parse_layout
from tarazu.lustre import LOV_ALL_STRIPES, directory_default, root_default
from tarazu.model import Layout

UNKNOWN = "a default layout of another form"
OTHERS = "another user's"
"""Instead of words: nothing that could be taken back."""


def own_default(
    path: str | Path,
    of_root: bytes | None = None,
    shown_of: Callable[[str | Path], bytes] = directory_default,
) -> bytes:
    """A directory's own default, as `lustre.lov`; empty where nobody has chosen one. Raises OSError.

    Where a directory has none, Lustre shows the root's: `of_root`, looked for where it is not given.
    """
    shown = shown_of(path)
    return b"" if shown == (root_default(path) if of_root is None else of_root) else shown


def existing(path: Path, mount: Path) -> Path | None:
    """The deepest directory above `path`, or itself, that is there; None where it is not the user's, or the mount."""
    while path not in (mount, path.parent):
        if path.is_dir() and not path.is_symlink():
            status = path.stat()
            return path if status.st_uid == os.geteuid() or os.geteuid() == 0 else None
        path = path.parent
    return None


class Default(NamedTuple):
    """What a directory has of its own."""

    words: str
    """Options of `lfs setstripe`; empty: none."""
    of: str
    """Which directory it is: another one of the same path has another text here."""


def default_of(path: str, of_root: bytes, shown_of: Callable[[str | Path], bytes]) -> Default | None:
    """None: there is no such directory. Raises Unavailable."""
    try:
        status = os.lstat(path)
        words = words_of_default(own_default(path, of_root, shown_of))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from None
    if words and os.geteuid() not in (0, status.st_uid):
        words = OTHERS
    return Default(words, f"{status.st_dev}:{status.st_ino}")


def below(path: str, since_s: float) -> Iterator[str]:
    """Directories that were made or changed below since (Unix time); what is older cannot have got a copy."""
    # It may have been a clock that was ahead.
    oldest_s = since_s - 1 if since_s <= time.time() else 0.0
    todo = [path]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                        if entry.stat(follow_symlinks=False).st_ctime >= oldest_s:
                            yield entry.path
        except OSError:
            continue  # gone meanwhile, or another user's


def words_of(layout: Layout, osts: Sequence[Sequence[int]], *, start: bool = False) -> str:
    """Options of `lfs setstripe`; `start`: `osts` are start indices, of one stripe too."""
    text = format_layout(layout, osts).replace(f"-c {LOV_ALL_STRIPES}", "-c -1")
    return re.sub(r"-o (\d+)\b(?!,)", r"-i \1", text) if start else text


def template(blob: bytes) -> Layout | None:
    """The layout in a `lustre.lov`; None where options of `lfs setstripe` would not tell all of it."""
    try:
        default = native.decode_lov(blob)
    except LayoutError:
        return None
    return None if default.odd else default.layout()


def words_of_default(blob: bytes) -> str:
    """The same of a directory's `lustre.lov`; empty for none."""
    if not blob:
        return ""
    try:
        default = native.decode_lov(blob)
        if default.odd:
            return UNKNOWN
        parts = [component for component in default.components if not component.extension]
        first = [() if part.first_ost is None else (part.first_ost,) for part in parts]
        osts = [part.osts if len(part.osts) > 1 else start for part, start in zip(parts, first, strict=True)]
        return words_of(default.layout(), osts, start=True)
    except LayoutError:
        return UNKNOWN


def is_same(words: str, other: str) -> bool:
    """Whether they make the same default; of one OST nobody can tell whether it is a list or a start."""
    if not words or not other:
        return words == other
    try:
        return parsed(words) == parsed(other)
    except LayoutError:
        return False


def parsed(words: str) -> tuple[Layout, tuple[tuple[int, ...], ...]]:
    """Raises LayoutError."""
    return parse_layout(words.replace("-c -1", f"-c {LOV_ALL_STRIPES}"))
