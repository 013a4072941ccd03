"""Directories of job steps that killed leaders left behind, apart from those in use.

A step's directory holds a lease: a file on which its leader keeps a lock (flock) as long as it lives, and whose time it
renews. A lock says for certain who lives in this kernel, whatever container or PID namespace he is in; a lease of
another kernel is believed by its age. Spools that a process has open for writing are in use, whoever their leader was.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from pathlib import Path

from tarazu import locks, trusted
from tarazu.durable import boot_id
from tarazu.errors import TarazuError
from tarazu.past import changed_s

LEASE = "lease"
DASHES = 3
"""At least, in the name of a step: `20261122T183000-17-abcdef-login1`."""
RENEW_S = 600.0
LEFT_S = 7 * 86400.0
"""What is of another node goes when nothing in it has changed for so long."""


class Lease:
    """The leader's own lease on directories of its step, until the end of the process or `release`."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._over = threading.Event()

    def take(self, directory: Path) -> None:
        """Raises OSError. Where the file system has no locks, the age of the lease says that it is alive."""
        descriptor = trusted.open_file(directory / LEASE, os.O_RDWR | os.O_CREAT)
        if _lock(descriptor):
            os.write(descriptor, _boot_id())
        self._held.append(descriptor)

    def release(self) -> None:
        self._over.set()
        for descriptor in self._held:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def keep(self) -> None:
        """The body of a thread, beside a program that runs on: renews it until `release`."""
        while not self._over.wait(RENEW_S):
            for descriptor in self._held:
                with contextlib.suppress(OSError):
                    os.utime(descriptor)


def _lock(descriptor: int) -> bool:
    """Somebody who sweeps may have the lock for a moment."""
    for _ in range(20):
        try:
            return locks.take(descriptor)
        except BlockingIOError:
            time.sleep(0.01)
    return False


def beside(step: str) -> str:
    """Where the spools of a step lie when the place for them is somebody else's: `<place>.<step>`."""
    place, _, name = step.rpartition("/")
    return f"{place}.{name}"


def steps(place: Path) -> dict[str, Path]:
    """Name of a step → what could be its directory, in the place or beside it."""
    return _found(place, "") | _found(place.parent, f"{place.name}.")


def _found(directory: Path, begin: str) -> dict[str, Path]:
    """What has names that begin so, and go on as steps' do. None where somebody else puts something else in the
    directory's place meanwhile.
    """
    try:
        names = [name for name in os.listdir(directory) if name.startswith(begin)]
    except OSError:
        return {}
    steps = {name.removeprefix(begin): directory / name for name in names}
    return {step: path for step, path in steps.items() if step.count("-") >= DASHES and step[0] != "."}


def sweep(*places: Path, in_home: bool = False) -> list[Path]:
    """Remove what was left behind in these, and beside them; what was removed."""
    removed = []
    for left in (step for place in places for step in steps(place).values()):
        with contextlib.suppress(OSError, TarazuError):
            directory = trusted.open_directory(left, in_home=in_home)
            try:
                if is_left(trusted.by_descriptor(directory)):
                    trusted.remove(left, directory)
                    removed.append(left)
            finally:
                os.close(directory)
    return removed


def is_left(directory: Path) -> bool:
    """False also where that is unknown. Raises OSError when the directory is gone."""
    lease = _lease(directory)
    if lease == "held" or any(_is_open(path) for path in directory.glob("*.tzs")):
        return False
    return lease == "free" or _age_s(directory) > LEFT_S


def _lease(directory: Path) -> str:
    """`held`; `free`: its leader ran in this kernel and died; `unknown`: there is none, or it is another kernel's."""
    try:
        descriptor = os.open(directory / LEASE, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return "unknown"
    try:
        here = _boot_id() if locks.take(descriptor) else b""
        return "free" if here and os.pread(descriptor, len(here) + 1, 0) == here else "unknown"
    except BlockingIOError:
        return "held"
    except OSError:
        return "unknown"
    finally:
        os.close(descriptor)


def _is_open(spool: Path) -> bool:
    """True when a process of this node has the file open for writing: then the kernel grants no read lease on it."""
    try:
        descriptor = os.open(spool, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return False
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)


def _age_s(directory: Path) -> float:
    """Since the last change of the directory or of anything in it."""
    now_s = time.time()
    looks = [changed_s(f"{directory}/.", now_s, inode=True)]  # it may be a link, to one that is open
    for path in directory.iterdir():
        with contextlib.suppress(FileNotFoundError):
            looks.append(changed_s(path, now_s, inode=True))
    return now_s - max(looks)


def _boot_id() -> bytes:
    """Empty where the kernel does not say."""
    boot = boot_id()
    return f"{boot}\n".encode() if boot else b""
