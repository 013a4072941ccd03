"""Run history: one immutable file per run, so any node can lead and isolation is Unix's.

`<directory>/<file system>/<application>/<start>-<id>.run`, mode 0600 in directories of mode 0700. The content is
that of `tarazu.trace.runfile`.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tarazu.errors import TraceError
from tarazu.past import changed_s

if TYPE_CHECKING:
    from tarazu.trace.recorded import Recorded
    from tarazu.trace.records import RunRecord

SUFFIX = ".run"
PART = ".part"
"""Of a file that is being written."""

_TRIES = 5
_DEAD_S = 3600.0
"""Who began to write so long ago does not write any more."""

_LONGEST_NAME = 120
_NAME = r"(?s)\d{8}T\d{6}-(\d+-[0-9a-f]{6})-.*"


def file_name(name: str) -> str:
    """A name that is safe as one path component: letters, digits, `_+-.` stay, the rest is `%XX`.

    Long names keep their beginning and end in `~` and a digest.
    """
    raw = name.encode("utf-8", "surrogateescape")
    safe = re.sub(rb"[^A-Za-z0-9_+.-]", lambda m: b"%%%02X" % m.group()[0], raw).decode()
    if safe.startswith("."):
        safe = "%2E" + safe[1:]
    if len(safe) > _LONGEST_NAME:
        import hashlib

        safe = f"{safe[:80]}~{hashlib.sha256(raw).hexdigest()[:24]}"
    return safe or "%"


def new_name() -> str:
    """A run's name while it runs."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    return f"{stamp}-{os.getpid()}-{os.urandom(3).hex()}-{os.uname().nodename}"


def id_of(name: str) -> str:
    """What a run's id has in its history of the name that it had while it ran (`20261122T183000-17-abcdef-login1`): its
    process and a random number. Empty for what is no such name.
    """
    match = re.fullmatch(_NAME, name)
    return match[1] if match else ""


KEEP_RUNS = 100
"""So many of an application are remembered."""


class History:
    """The runs under one directory (`run.state_dir`/history)."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    def path_of(self, run: RunRecord, id: str) -> Path:
        """Where a run of that id is kept: by start, so that runs sort by it in whatever order they come."""
        started = datetime.fromtimestamp(max(run.start_s, 0.0), UTC)
        stamp = started.strftime("%Y%m%dT%H%M%S.%f")
        return self.folder(run.step.fs_name, run.step.application) / f"{stamp}-{id}{SUFFIX}"

    def append(self, run: RunRecord, id: str = "") -> Path:
        """Write the run to a file of its own. Raises TraceError when that is not possible."""
        from tarazu.trace.runfile import encode_run

        path = self.path_of(run, id or os.urandom(4).hex())
        self.write(path, encode_run(run))
        return path

    def write(self, path: Path, content: bytes) -> None:
        """Write a run's file, instead of one of that name, whole or not at all. Raises TraceError."""
        folder = path.parent
        part = path.with_name(f"{path.stem}.{os.urandom(4).hex()}{PART}")
        try:
            try:
                descriptor = _create(part, self.directory)
            except (
                FileNotFoundError
            ):  # somebody has just forgotten the last run there, and the directory with it
                descriptor = _create(part, self.directory)
            try:
                with open(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                part.rename(path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise TraceError(str(folder), "a directory that a run can be written to", str(error)) from None

    def runs(
        self,
        fs_name: str,
        application: str,
        last: int | None = None,
        *,
        problem: Callable[[TraceError], None] | None = None,
        strict: bool = False,
    ) -> list[RunRecord]:
        """The newest `last` runs, oldest first; all of them when `last` is None.

        A file that cannot be used is reported to `problem` and replaced by the next older one; with
        `strict` it raises.
        """
        from tarazu.trace.runfile import read_run

        records: list[RunRecord] = []
        for path in reversed(self.paths(fs_name, application)):
            if last is not None and len(records) >= last:
                break
            try:
                records.append(read_run(path))
            except TraceError as error:
                if strict:
                    raise
                if problem is not None:
                    problem(error)
        return records[::-1]

    def recorded(self, fs_name: str, application: str, last: int) -> tuple[list[Recorded], list[str]]:
        """What the next run's recording follows from, of the newest `last` runs, oldest first; what is wrong with
        others.
        """
        from tarazu.trace.recorded import read_recorded

        runs, problems = [], []
        for path in self.paths(fs_name, application)[-last:]:
            try:
                runs.append(read_recorded(path))
            except TraceError as error:
                problems.append(f"history left out: {error}")
        return runs, problems

    def paths(self, fs_name: str, application: str) -> list[Path]:
        """Files of the runs, oldest first."""
        folder = self.folder(fs_name, application)
        try:
            return sorted(
                p for p in folder.iterdir() if p.name.endswith(SUFFIX) and not p.name.startswith(".")
            )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TraceError(str(folder), "a readable directory of runs", str(error)) from None

    def each(
        self, fs_name: str, application: str, problem: Callable[[TraceError], None]
    ) -> Iterator[tuple[Path, RunRecord]]:
        """Runs one after another, oldest first, each with its file; what cannot be used is passed to `problem`."""
        from tarazu.trace.runfile import read_run

        for path in self.paths(fs_name, application):
            try:
                yield path, read_run(path)
            except TraceError as error:
                problem(error)

    def forget(self, paths: Iterable[Path]) -> list[Path]:
        """Remove these runs, one by one and the oldest first, then directories that are empty; what was removed.

        A step that ends at the same moment keeps its run: only these files go. Raises TraceError.
        """
        removed: list[Path] = []
        try:
            for path in sorted(paths):
                if path.exists():
                    path.unlink()
                    removed.append(path)
        except OSError as error:
            raise TraceError(
                str(path), f"a run that can be removed ({len(removed)} were)", str(error)
            ) from None
        for folder in sorted({path.parent for path in removed}):
            with contextlib.suppress(OSError):
                for part in folder.glob(f"*{PART}"):
                    if (now_s := time.time()) - changed_s(part, now_s) > _DEAD_S:
                        part.unlink()
            with contextlib.suppress(OSError):
                folder.rmdir()
                folder.parent.rmdir()
        return removed

    def prune(self, fs_name: str, application: str, keep: int) -> int:
        """Delete all but the newest `keep` runs; how many went."""
        old = self.paths(fs_name, application)[:-keep]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def applications(self) -> list[tuple[str, str]]:
        """(file system, application) of everything that has a run, sorted."""
        names = set()
        for folder in self.directory.glob("*/*"):
            newest = max(folder.glob(f"*{SUFFIX}"), default=None)
            if newest is not None:
                names.add(_names(newest) or (_plain(folder.parent.name), _plain(folder.name)))
        return sorted(names)

    def folder(self, fs_name: str, application: str) -> Path:
        """Where the runs of an application are."""
        return self.directory / file_name(fs_name) / file_name(application)


def opened(path: Path) -> BinaryIO | None:
    """A run's file for `read_past`; None when it is gone by now or may not be read. Never waits, as for a FIFO."""
    with contextlib.suppress(OSError):
        return open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb", 0)
    return None


def _create(path: Path, root: Path) -> int:
    """A new file in a private directory, open for writing."""
    for left in reversed(range(_TRIES)):
        try:
            _make_private(path.parent, root)
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except (FileNotFoundError, FileExistsError):
            # The last run there was forgotten at this moment, and the empty directory with it: `mkdir` may find it
            # there, and nothing a moment later.
            if not left or path.exists():
                raise
    raise AssertionError("unreachable")


def _make_private(folder: Path, root: Path) -> None:
    """Create `folder` and what is missing above it; everything from `root` on with mode 0700."""
    root.parent.mkdir(parents=True, exist_ok=True)
    for part in (root, folder.parent, folder):
        part.mkdir(mode=0o700, exist_ok=True)


def _names(path: Path) -> tuple[str, str] | None:
    """File system and application as the run itself names them; None when it cannot be read."""
    from tarazu.trace.runfile import MAX_RUN_BYTES, read_header, reader

    try:
        with reader(path, MAX_RUN_BYTES) as file:
            step = read_header(file, str(path)).fields.get("step")
    except (OSError, TraceError):
        return None
    if not isinstance(step, dict):
        return None
    fs_name, application = step.get("fs_name"), step.get("application")
    return (fs_name, application) if isinstance(fs_name, str) and isinstance(application, str) else None


def _plain(name: str) -> str:
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(name).decode("utf-8", "surrogateescape")
