"""Nothing of a test session runs or lies about after it, not even after a killed one: what still runs is ended and
makes the session fail.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from tarazu import statx
from tarazu.guard import Guard

MARK = "TARAZU_TEST_SESSION"
"""In the environment of all that a session starts."""
PATIENCE_S = 60.0
"""That what was told to end, or waits for nobody, has after the last test."""
PYTHONS_OWN = "multiprocessing.resource_tracker"
"""It ends with the process whose it is, which is ours."""
SHARED_MEMORY = Path("/dev/shm")


class Session:
    """Of the process that pytest was started as, whatever its workers are."""

    def __init__(self) -> None:
        self.started_s = time.time()
        self._before = os.environ.get("TMPDIR")
        os.environ.setdefault(
            "PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir()
        )  # pytest keeps its last three there
        self.directory = Path(tempfile.mkdtemp(prefix="tt-"))
        self.directory.chmod(0o755)
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.directory)
        self._guard = Guard(MARK, str(self.directory), self.directory)
        os.environ[MARK] = str(self.directory)

    def end(self) -> list[str]:
        """Command lines of what ran on; nothing of it does after this, and no file of it is left."""
        del os.environ[MARK]
        statx.end()
        tempfile.tempdir = None
        os.environ.pop("TMPDIR") if self._before is None else os.environ.update(TMPDIR=self._before)
        ends_at = time.monotonic() + PATIENCE_S
        while (left := self._running()) and time.monotonic() < ends_at:
            time.sleep(0.1)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)
        self._guard.leave()
        self._faked_time()
        return list(left.values())

    def _running(self) -> dict[int, str]:
        """Process → command line."""
        mark = f"{MARK}={self.directory}".encode()
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(process.name) != os.getpid() and mark in process.joinpath(
                    "environ"
                ).read_bytes().split(b"\0"):
                    words = process.joinpath("cmdline").read_bytes().split(b"\0")
                    line = b" ".join(words).decode("utf-8", "replace").strip()
                    if PYTHONS_OWN not in line:
                        found[int(process.name)] = line
        return found

    def _faked_time(self) -> None:
        """libfaketime removes its memory at the end of a program, unless that is killed."""
        for path in (*SHARED_MEMORY.glob("faketime_shm_*"), *SHARED_MEMORY.glob("sem.faketime_sem_*")):
            with contextlib.suppress(OSError):
                if (
                    path.stat().st_mtime >= self.started_s
                    and not Path("/proc", path.name.rpartition("_")[2]).exists()
                ):
                    path.unlink()
