"""What tarazu has set on this server, on disk before it is set, so that it can be taken back after any crash.

rules.json   our rules, as lnetctl shows them; those of an earlier boot are gone with it
daemon       locked by the daemon for as long as it runs: a second one waits
held         written by `tarazu routers --undo`: nothing is set until `tarazu routers --apply` removes it
lock         held by whoever changes rules, the daemon or a command
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tarazu import durable
from tarazu.errors import BadInput, StoreError, Unavailable
from tarazu.forwarding.routers import udsp
from tarazu.forwarding.routers.udsp import Rule

FORMAT = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LOCK_S = 30.0


class _File(msgspec.Struct, frozen=True):
    format: int
    boot: str
    generation: int
    """Of mdsd's answer from which they came."""
    rules: tuple[tuple[str, str], ...]
    """(dst, rte)."""


class Kept:
    """One server's directory, `ossd.state`. Only with the lock is anything read or written that matters."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.rules: tuple[Rule, ...] = ()
        """Ours, as far as known: any of them may be set."""
        self.generation = 0

    @contextlib.contextmanager
    def locked(self, wait_s: float = LOCK_S, *, load: bool = True) -> Iterator[int]:
        """Alone with this directory, whose newest content is read first (`load`); the lock's descriptor.

        Raises StoreError, Unavailable.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None
        try:
            _lock(descriptor, self.directory, wait_s)
            if load:
                self._load()
            yield descriptor
        finally:
            os.close(descriptor)

    def claim(self) -> int:
        """For the one daemon of this server: a descriptor that locks out others until it is closed.

        Raises StoreError; Unavailable while there is another daemon.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.directory / "daemon", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise Unavailable(
                f"{self.directory}: another tarazu-ossd --routers keeps the rules here"
            ) from None
        return descriptor

    @property
    def held(self) -> bool:
        return (self.directory / "held").exists()

    def hold(self, on: bool) -> None:
        """Whether nothing is to be set. Raises StoreError."""
        try:
            if on:
                self._replace("held", b"by tarazu routers --undo\n")
            else:
                (self.directory / "held").unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None

    def note(self, rules: Iterable[Rule], generation: int) -> None:
        """Whatever of these is set from now on is ours; on disk when this returns. Raises StoreError."""
        rules = tuple(rules)
        if (rules, generation) == (self.rules, self.generation):
            return
        file = _File(FORMAT, _boot(), generation, tuple((str(r.dst), str(r.rte)) for r in rules))
        try:
            self._replace("rules.json", msgspec.json.format(msgspec.json.encode(file)) + b"\n")
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None
        self.rules, self.generation = rules, generation

    def _load(self) -> None:
        path = self.directory / "rules.json"
        try:
            file = msgspec.json.decode(path.read_bytes(), type=_File)
            if file.format != FORMAT:
                raise StoreError(str(path), f"format {FORMAT}", file.format)
            rules = tuple(udsp.rule(dst, rte) for dst, rte in file.rules)
        except FileNotFoundError:
            self.rules, self.generation = (), 0
        except OSError as error:
            raise StoreError(str(path), "a readable file", error.strerror) from None
        except StoreError:
            raise
        except (msgspec.MsgspecError, UnicodeDecodeError, BadInput) as error:
            raise StoreError(str(path), "the rules that tarazu has set", str(error)) from None
        else:
            # Rules live in the kernel: after a boot there are none of ours, and what looks like one is a script's.
            same = file.boot == _boot()
            self.rules, self.generation = (rules, file.generation) if same else ((), 0)

    def _replace(self, name: str, data: bytes) -> None:
        durable.replace(self.directory / name, data, mode=0o600, sync_name=True)


def _lock(descriptor: int, directory: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"{directory}/lock: expected it to be free within {wait_s:g} s, found it held"
                ) from None
            time.sleep(0.02)


def _boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
