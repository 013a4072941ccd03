"""clientd's side of forecasts: each plan gets a process of its own, and only so much time and memory.

A process that takes too long, or more memory than it may have, or falls over, ends alone; its plan says so. The next
plan gets a new one. The server that forks them is started again when it is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from tarazu.daemons.clientd.forecasts.frames import (
    BEGIN,
    END,
    MAX_FRAME_BYTES,
    READY,
    Begin,
    Choose,
    ChosenLayouts,
    ForecastRefused,
    ForecastSummary,
    ForecastTask,
    Frame,
    Pipe,
    PreparedForecast,
)
from tarazu.daemons.service import ISOLATED
from tarazu.errors import TarazuError, Unavailable, WireError
from tarazu.plan.configure import Configured
from tarazu.store.rows import NewFile
from tarazu.units import MIB

Answer = TypeVar("Answer", ForecastSummary, ChosenLayouts, PreparedForecast)

log = logging.getLogger("tarazu.clientd")

START_S = 300.0
"""For the server to load what it needs on a busy node."""
LONGEST_S = 60.0
"""For a forecast, and for its layouts: a job with a longer one runs unplaced."""
MOST_BYTES = 1024 * MIB
"""Memory that one forecast may take."""
ENDING_S = 5.0
BEGIN_AGAIN_S = 1.0
"""Between the end of a server and the next."""
NICE = 10
"""Of processes with large histories: a small one of somebody else comes first."""


class ForecastFailed(TarazuError):
    """There is no forecast: not now, and not if it were asked for again."""


class Forecasts:
    """The forecast server and its processes; used by any thread."""

    def __init__(self) -> None:
        self.seconds, self.memory_bytes = LONGEST_S, MOST_BYTES
        self.ready = threading.Event()
        self.failed = 0
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def start(self) -> None:
        """Start the server and wait until it is ready. Raises ForecastFailed."""
        with self._lock:
            self._running()

    def keep(self, look: Callable[[], None]) -> None:
        """The body of a thread: the server is there, and is begun again when it has ended, until `close`; `look` is
        called when it has become ready, and when it has ended.
        """
        while not self._closing.is_set():
            try:
                self.start()
            except ForecastFailed as error:
                if not self._closing.is_set():
                    log.error("%s", error)
            look()
            if (server := self._server) is not None:
                server.wait()
                with self._lock:
                    if self._server is server and not self._closing.is_set():
                        log.warning(
                            "the forecast server ended with %s; starting a new one", server.returncode
                        )
                        self._stop()
                look()
            self._closing.wait(BEGIN_AGAIN_S)

    def close(self) -> None:
        """End the server and all that it forked."""
        self._closing.set()
        if (control := self._control) is not None:
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)  # wakes who waits for it to be ready
        with self._lock:
            self._stop()

    @contextlib.contextmanager
    def process(self, uid: int, large: bool = False) -> Iterator[ForecastConversation]:
        """A process for one plan; it ends with the block. Raises ForecastFailed, also from within."""
        number = next(self._numbers)
        ours, theirs = socket.socketpair()
        with contextlib.closing(Pipe(ours, max_bytes=MAX_FRAME_BYTES)) as pipe:
            cpu_s = max(1, int(2 * self.seconds) + 1)
            begin = Begin(number, uid, NICE if large else 0, cpu_s, self.memory_bytes)
            try:
                self._tell(BEGIN.pack(*begin), theirs)
            finally:
                theirs.close()
            try:
                yield ForecastConversation(pipe, self.seconds)
            except ForecastFailed:
                self.failed += 1
                raise
            finally:
                with contextlib.suppress(OSError, ForecastFailed):
                    self._tell(END.pack(number), None)

    def _tell(self, word: bytes, descriptor: socket.socket | None) -> None:
        with self._lock:
            for attempt in (1, 2):
                try:
                    control = self._running()
                    if descriptor is None:
                        control.send(word)
                    else:
                        socket.send_fds(control, [word], [descriptor.fileno()])
                    return
                except OSError as error:
                    self._stop()
                    if attempt == 2 or descriptor is None:
                        raise ForecastFailed(f"forecasts: cannot start a process: {error}") from None

    def _running(self) -> socket.socket:
        """The socket to the server, which is started if it is not there."""
        if self._control is not None and self._server is not None and self._server.poll() is None:
            return self._control
        if self._closing.is_set():
            raise ForecastFailed("forecasts: clientd is stopping")
        if self._server is not None:
            log.warning("the forecast server ended with %s; starting a new one", self._server.poll())
        self._stop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [
                    sys.executable,
                    *ISOLATED,
                    "-m",
                    "tarazu.daemons.clientd.forecasts.server",
                    str(theirs.fileno()),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # One thread: it forks. And a BLAS of many threads makes no small forecast faster.
                # And nothing of clientd's settings, of which the database's location may hold a password.
                env={
                    **{name: value for name, value in os.environ.items() if not name.startswith("TARAZU_")},
                    "OPENBLAS_NUM_THREADS": "1",
                    "OMP_NUM_THREADS": "1",
                    "MKL_NUM_THREADS": "1",
                },
            )
        self._control = ours
        ours.settimeout(START_S)
        try:
            word = ours.recv(len(READY))
        except OSError as error:
            word = str(error).encode()
        if word != READY:
            self._stop()
            raise ForecastFailed(
                f"forecasts: expected the forecast server to be ready, found {word.decode() or 'its end'}"
            )
        self.ready.set()
        return ours

    def _stop(self) -> None:
        self.ready.clear()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            try:
                self._server.wait(ENDING_S)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None


class ForecastConversation:
    """The conversation with one process. Whatever fails in it is a ForecastFailed."""

    def __init__(self, pipe: Pipe, seconds: float) -> None:
        self._pipe = pipe
        self._seconds = seconds

    def find(self, job: ForecastTask, descriptors: Sequence[int]) -> ForecastSummary:
        """What is expected."""
        with self._limited():
            self._pipe.put(job, list(descriptors))
            return self._next(ForecastSummary)

    def prepare(self, task: ForecastTask, descriptors: Sequence[int]) -> PreparedForecast:
        """What the next run begins with."""
        with self._limited():
            self._pipe.put(task, list(descriptors))
            return self._next(PreparedForecast)

    def choose(self, choose: Choose, files: int) -> Configured:
        """The files that were found, with layouts. They come in small parts, so that other threads are not held up."""
        chosen: list[NewFile] = []
        stripes = ""
        with self._limited():
            self._pipe.put(choose)
            while len(chosen) < files:
                part, stripes = msgspec.structs.astuple(self._next(ChosenLayouts))
                if not part or len(chosen) + len(part) > files:
                    raise WireError("forecast", f"{files} files", len(chosen) + len(part))
                chosen += part
        return Configured(chosen, stripes)

    def _next(self, kind: type[Answer]) -> Answer:
        answer: Frame = self._pipe.take()
        if isinstance(answer, ForecastRefused):
            raise ForecastFailed(answer.reason)
        if not isinstance(answer, kind):
            raise WireError("forecast", f"its {kind.__name__}", type(answer).__name__)
        return answer

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        begin = time.monotonic()
        self._pipe.limit(self._seconds)
        try:
            yield
        except (Unavailable, WireError) as error:
            if time.monotonic() - begin >= self._seconds:
                why = f"the forecast took longer than {self._seconds:g} s"
            elif isinstance(error, WireError):
                why = f"the forecast process gave an invalid answer: {error}"
            else:
                why = "the forecast process ended: out of memory, or a fault"
            raise ForecastFailed(why) from None
