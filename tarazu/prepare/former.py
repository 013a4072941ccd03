"""Notes of `tarazu change prepare` of versions before: one JSON file a job. They are taken over."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import msgspec

from tarazu.errors import StoreError
from tarazu.malformed import MALFORMED, described
from tarazu.prepare.askers import is_old, started

FORMAT = 1
_NAME = re.compile(r".+-\d+-[0-9a-f]{6}\.json")


class Set(msgspec.Struct, frozen=True):
    """One directory."""

    path: str
    device: int
    inode: int
    words: str
    """Options of `lfs setstripe`."""
    since_s: float


class Note(msgspec.Struct, frozen=True):
    """Of one job."""

    format: int
    host: str
    pid: int
    started: str
    application: str
    directories: tuple[Set, ...] = ()


def notes(directory: Path) -> dict[Path, Note]:
    """Raises StoreError for one that is not ours: it is looked at by a person, and never removed."""
    found: dict[Path, Note] = {}
    for path in sorted(directory.glob("*.json")):
        if not _NAME.fullmatch(path.name):
            continue
        try:
            found[path] = msgspec.json.decode(path.read_bytes(), type=Note)
        except FileNotFoundError:
            continue
        except (OSError, *MALFORMED) as error:
            raise StoreError(str(path), "a note of tarazu change prepare", str(error)) from None
        if found[path].format != FORMAT:
            raise StoreError(str(path), f"format {FORMAT}", found[path].format)
    return found


def alive(path: Path, note: Note) -> bool:
    """Whether its leader, of that version, may still be there: it takes back its own."""
    if note.host == socket.gethostname():
        return started(note.pid) == note.started != ""
    return not is_old(path)


described(Note)
