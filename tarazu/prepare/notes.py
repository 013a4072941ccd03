"""What `tarazu change prepare` has set, noted on disk before it is set: one file a job, in `run.state_dir`/prepared.

Whoever comes next takes back what is left of a job whose leader is gone (killed, or its node was): on its node the
process tells, on others the time of the note, which its leader renews while it runs. A directory that two jobs use at
once is taken back by the last one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tarazu import durable
from tarazu.errors import StoreError
from tarazu.malformed import MALFORMED
from tarazu.past import changed_s

FORMAT = 1
LOCK_S = 10.0
RENEWED_S = 120.0
GONE_S = 900.0
"""A leader on another node that has not renewed its note for so long is taken for gone. One that was only stopped (its
job suspended) finds nothing left to take back.
"""


class Set(msgspec.Struct, frozen=True):
    """One directory."""

    path: str
    device: int
    inode: int
    words: str
    """Options of `lfs setstripe`."""
    since_s: float
    """Unix time before it was set: directories made below since then have copies of it."""


class Note(msgspec.Struct, frozen=True):
    """Of one job."""

    format: int
    host: str
    pid: int
    started: str
    """The process's start, as /proc has it: a pid is used again."""
    application: str
    directories: tuple[Set, ...] = ()


class Notes:
    def __init__(self, state_dir: Path) -> None:
        self.directory = state_dir / "prepared"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the notes. Raises StoreError."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None
        try:
            deadline = time.monotonic() + LOCK_S
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        held = f"{self.directory}/lock"
                        raise StoreError(held, f"it free within {LOCK_S:g} s", "it held") from None
                    time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)

    def new(self) -> Path:
        return self.directory / f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}.json"

    def write(self, path: Path, note: Note) -> None:
        """On disk when this returns. Raises StoreError."""
        try:
            durable.replace(
                path, msgspec.json.format(msgspec.json.encode(note)) + b"\n", mode=0o600, sync_name=True
            )
        except OSError as error:
            raise StoreError(str(path), "a file that can be written", error.strerror) from None

    def remove(self, path: Path) -> None:
        """Raises StoreError."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(str(path), "a file that can be removed", error.strerror) from None

    @contextlib.contextmanager
    def renewed(self, path: Path) -> Iterator[None]:
        """While this lasts other nodes see that the note's leader is there."""
        over = threading.Event()

        def renew() -> None:
            with contextlib.suppress(OSError):  # there is none, or it was taken back
                while not over.wait(RENEWED_S):
                    os.utime(path)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def all(self) -> dict[Path, Note]:
        """Raises StoreError for one that is not ours: it is looked at by a person, and never removed."""
        notes: dict[Path, Note] = {}
        for path in sorted(self.directory.glob("*.json")):
            try:
                notes[path] = msgspec.json.decode(path.read_bytes(), type=Note)
            except FileNotFoundError:
                continue
            except (OSError, *MALFORMED) as error:
                raise StoreError(str(path), "a note of tarazu change prepare", str(error)) from None
            if notes[path].format != FORMAT:
                raise StoreError(str(path), f"format {FORMAT}", notes[path].format)
        return notes

    def alive(self, path: Path, note: Note) -> bool:
        """Whether its leader may still be there."""
        if note.host == socket.gethostname():
            return _started(note.pid) == note.started != ""
        try:
            now_s = self._now_s()
            return now_s - changed_s(path, now_s) < GONE_S
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def _now_s(self) -> float:
        """By the clock that notes' times are of: the file server's."""
        descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.utime(descriptor)
            return os.fstat(descriptor).st_mtime
        finally:
            os.close(descriptor)


def mine(application: str) -> Note:
    """Of this process, with nothing in it."""
    return Note(FORMAT, socket.gethostname(), os.getpid(), _started(os.getpid()), application)


def _started(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
