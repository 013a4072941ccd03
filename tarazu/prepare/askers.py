"""Which jobs want a directory's default still: a process each, on this node or on another one.

`asks.BOOT.NAMESPACE.PID.START`, empty, lies beside the notes, in a home directory that nodes may share. On its own node
the process tells whether it is there; on others the time of the file, which it renews.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tarazu.changes.held import Held
from tarazu.durable import boot_id
from tarazu.errors import StoreError
from tarazu.malformed import MALFORMED, described
from tarazu.past import changed_s

RENEWED_S = 120.0
GONE_S = 900.0
"""One on another node that has not renewed its file for so long is taken for gone. One that was only stopped (its job
suspended) finds nothing left to take back.
"""
_PREFIX = "asks."


def mine() -> str:
    """This process, by what no other one has: a process id counts in one boot and one namespace, and is used again."""
    return f"{_here()}.{os.getpid()}.{started(os.getpid())}"


def started(pid: int) -> str:
    """When a process of this node began, as /proc has it; empty: there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


class Askers:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def come(self, asker: str) -> None:
        """Raises StoreError."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            touch(self.directory / f"{_PREFIX}{asker}")
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None

    def go(self, asker: str) -> None:
        with contextlib.suppress(OSError):
            (self.directory / f"{_PREFIX}{asker}").unlink()

    def gone(self, asker: str) -> bool:
        where, _, process = asker.partition(".")
        namespace, _, process = process.partition(".")
        if where and f"{where}.{namespace}" == _here():
            pid, _, since = process.partition(".")
            return not pid.isdecimal() or started(int(pid)) != since
        return is_old(self.directory / f"{_PREFIX}{asker}")

    @property
    def nobody(self) -> bool:
        return not any(self.directory.glob(f"{_PREFIX}*"))

    def forget_gone(self) -> None:
        """Remove the files of those that nobody asks about any more."""
        for path in self.directory.glob(f"{_PREFIX}*"):
            if self.gone(asker := path.name.removeprefix(_PREFIX)):
                self.go(asker)

    @contextlib.contextmanager
    def renewed(self, asker: str) -> Iterator[None]:
        """While this lasts other nodes see that it is there."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(RENEWED_S):
                with contextlib.suppress(OSError):
                    os.utime(self.directory / f"{_PREFIX}{asker}")

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class _Changes(msgspec.Struct):
    held: tuple[Held, ...]


def unwanted(directory: Path) -> list[str]:
    """Directories whose default is noted (`tarazu.daemons.changes.store`) though nobody wants it. Raises StoreError."""
    path, askers = directory / "changes.json", Askers(directory)
    try:
        held = msgspec.json.decode(path.read_bytes(), type=_Changes).held
    except FileNotFoundError:
        return []
    except (OSError, *MALFORMED) as error:
        raise StoreError(str(path), "what tarazu change prepare has set", str(error)) from None
    return [each.change.target for each in held if all(map(askers.gone, each.askers))]


def is_old(path: Path) -> bool:
    """Whether nobody has renewed a file for `GONE_S`, or there is none."""
    try:
        # By the clock that its time is of: the file server's.
        now_s = touch(path.parent / "clock")
        return now_s - changed_s(path, now_s) >= GONE_S
    except FileNotFoundError:
        return True
    except OSError:
        return False


def touch(path: Path) -> float:
    """Its time then. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.utime(descriptor)
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)


def _here() -> str:
    """Containers of one boot may each count processes by themselves."""
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        namespace = 0
    return f"{boot_id()}.{namespace}"


described(_Changes)
