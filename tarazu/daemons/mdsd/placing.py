"""The process in which mdsd's allocations are computed: mdsd's loop answers meanwhile, whatever they take.

mdsd ──Task──► process ──tuple[RequestOutcome, ...]──► mdsd        over a socket pair, one after the other

A thread computes at the expense of all others in its process, and longest where the node has no processor free. This
process takes the best placement so far after `BETTER_S`, and is ended after `LONGEST_S`; when it is gone, those
requests are declined, and the next ones get a new process. A job waits for it: it is as high in priority as mdsd (5
lower, a plan took two to three times as long beside busy processes). Its first tasks are made up: what a job's
placement needs is loaded by then. It ends when mdsd does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence

import msgspec

from tarazu.config.sections import Allocate
from tarazu.daemons.mdsd.batch import BatchPart, Outcome, Placed, Refused, place
from tarazu.daemons.service import ISOLATED
from tarazu.errors import Unavailable, WireError
from tarazu.lustre import EOF
from tarazu.model import Component, Layout, Left, Ost, SystemView
from tarazu.units import GIB, MIB
from tarazu.wire import messages
from tarazu.wire.channel import Channel
from tarazu.wire.messages import AllocationReply, AllocationRequest, FileSpec

log = logging.getLogger("tarazu.mdsd")

BETTER_S = 3.0
"""So long a placement is made better; on a free processor hardly any needs it."""
LONGEST_S = 60.0
"""Twice as long as a client waits for its answer."""
START_S = 300.0
"""A process that has not placed what is made up by then is given up: on a busy node it loads for many seconds."""


class Task(msgspec.Struct, frozen=True, array_like=True):
    settings: Allocate
    view: SystemView
    requests: tuple[AllocationRequest, ...]
    left: tuple[dict[int, Left], ...]
    """For each request the files that are not to be placed."""
    view_age_s: float


FAULTS = (OSError, Unavailable, WireError, msgspec.DecodeError)
"""Of a process that does not do what it should, or is not there."""


class RequestOutcome(msgspec.Struct, frozen=True, array_like=True):
    """What became of one request: `Placed` where there is a reply, else `Refused`."""

    status: messages.Status
    reason: str = ""
    reply: bytes = b""
    stripes: tuple[bytes, bytes, bytes] = (b"", b"", b"")


_encoder = msgspec.msgpack.Encoder()
_task = msgspec.msgpack.Decoder(Task)
_done = msgspec.msgpack.Decoder(tuple[RequestOutcome, ...])


MADE_UP_VIEW = SystemView(
    "made up",
    0.0,
    osts=tuple(Ost(n, f"oss{n // 4}", 1024 * GIB, 900 * GIB, (900 - 40 * (n % 3)) * GIB) for n in range(16)),
    request_s=1e-3,
)


class Placing:
    """mdsd's end. `place` belongs to one thread; `close` may be called from another."""

    def __init__(self) -> None:
        self._ready = False
        """The process has loaded all that a task with these settings needs."""
        self._settings: Allocate | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._closed = False

    def start(self, settings: Allocate) -> None:
        """Have a process that has loaded all that a task with these settings needs. Raises FAULTS."""
        if self.runs():
            if settings == self._settings:
                return
        else:
            self._begin()
        for parts in _made_up():
            self._ask(_task_of(settings, MADE_UP_VIEW, parts, 0.0), START_S)
        self._settings, self._ready = settings, True

    def keep(self, settings: Allocate) -> None:
        """As `start`; what is wrong is a line in the log."""
        try:
            self.start(settings)
        except FAULTS as error:
            self._end(error)

    def runs(self) -> bool:
        """There is a process that has loaded all that a task needs; from any thread."""
        process = self._process
        return self._ready and process is not None and process.poll() is None

    def _begin(self) -> None:
        with self._lock:
            if self._closed:
                raise OSError("mdsd ends")
            self._stop()
            ours, theirs = socket.socketpair()
            # `systemctl kill --signal=HUP`, as logrotate does, sends it to all processes of the unit: also to one that
            # has only just begun.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
            with theirs, contextlib.ExitStack() as afterwards:
                afterwards.callback(signal.pthread_sigmask, signal.SIG_SETMASK, before)
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        *ISOLATED,
                        "-m",
                        "tarazu.daemons.mdsd.placing",
                        str(theirs.fileno()),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                )
            self._socket = ours

    def _ask(self, task: Task, seconds: float) -> tuple[RequestOutcome, ...]:
        if self._socket is None:
            raise OSError("mdsd ends")
        channel = Channel(self._socket, deadline_s=seconds, name="socket")
        channel.send_body(_encoder.encode(task))
        return _done.decode(channel.receive_body())

    def _end(self, error: Exception) -> None:
        if not self._closed:
            log.error("the process that computes allocations is ended: %s", error)
        with self._lock:
            self._stop()

    def place(
        self, settings: Allocate, view: SystemView, parts: Sequence[BatchPart], view_age_s: float
    ) -> list[Outcome]:
        """As `batch.place`; never raises."""
        begin = time.monotonic()
        try:
            self.start(settings)
            begin = time.monotonic()
            return [
                _outcome(done) for done in self._ask(_task_of(settings, view, parts, view_age_s), LONGEST_S)
            ]
        except FAULTS as error:
            self._end(error)
            slow = isinstance(error, Unavailable) and time.monotonic() - begin >= LONGEST_S
            why = f"mdsd could not compute it within {LONGEST_S:g} s" if slow else "the allocator failed"
            return [Refused("declined", why) for _ in parts]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._stop()

    def _stop(self) -> None:
        if self._socket is not None:
            # Wakes whoever waits there.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None
        self._ready = False


def _task_of(settings: Allocate, view: SystemView, parts: Sequence[BatchPart], view_age_s: float) -> Task:
    requests, left = tuple(part.request for part in parts), tuple(dict(part.left) for part in parts)
    return Task(settings, view, requests, left, view_age_s)


def _outcome(done: RequestOutcome) -> Outcome:
    if not done.reply:
        return Refused(done.status, done.reason)
    reply = messages.decode(done.reply)
    assert isinstance(reply, AllocationReply)
    return Placed(reply, done.reply, done.stripes)


def _told(outcome: Outcome) -> RequestOutcome:
    if isinstance(outcome, Refused):
        return RequestOutcome(outcome.status, outcome.reason)
    return RequestOutcome(outcome.reply.status, "", outcome.data, outcome.stripes)


def _made_up() -> Iterator[list[BatchPart]]:
    """What jobs may ask for, in small: files alike, files of a few sizes, progressive ones of several writers, and what
    cannot be placed.
    """
    plain = Layout((Component(0, EOF, MIB, 1),))
    progressive = Layout((Component(0, 64 * MIB, MIB, 1), Component(64 * MIB, EOF, MIB, 4)))
    wide = Layout((Component(0, EOF, MIB, 99),))
    alike = _asked("alike", (plain,), [FileSpec(GIB, 0)] * 16)
    # Of these numbers and sizes exchanges leave something for the exact search.
    sizes = _asked("sizes", (plain,), [FileSpec((3 + n % 3) * GIB, 0) for n in range(23)])
    shared = _asked("shared", (progressive,), [FileSpec((1 + n) * GIB, 0, 0, 1 + n % 2) for n in range(8)])
    yield [alike]
    yield [sizes]
    yield [shared]
    yield [alike, sizes, _asked("wide", (wide,), [FileSpec(GIB, 0)])]


def _asked(id: str, layouts: tuple[Layout, ...], files: Sequence[FileSpec]) -> BatchPart:
    request = AllocationRequest(id, MADE_UP_VIEW.fs_name, 0, "", layouts, tuple(files), 1.0, 1.0)
    return BatchPart(request, {})


def serve(end: socket.socket) -> None:
    """The process: one task after the other, until mdsd hangs up."""
    from tarazu.allocate.pipeline import Tarazu  # with numpy: for the process that computes

    settings, policy = None, None
    channel = Channel(end)
    while True:
        try:
            task = _task.decode(channel.receive_body())
        except Unavailable:
            return
        if policy is None or task.settings != settings:
            settings, policy = task.settings, Tarazu.of_site(task.settings)
            policy.limit_s = BETTER_S
        parts = [BatchPart(request, left) for request, left in zip(task.requests, task.left, strict=True)]
        outcomes = place(policy, task.view, parts, task.settings.weights, task.view_age_s)
        try:
            channel.send_body(_encoder.encode([_told(outcome) for outcome in outcomes]))
        except Unavailable:
            return


def _end_with_mdsd(descriptor: int) -> None:
    """Also in the middle of a task: nobody is there to end one that takes too long."""
    poll = select.poll()
    poll.register(descriptor, 0)  # its hanging up is told in any case
    poll.poll()
    os._exit(1)


def main() -> int:
    # mdsd ends it: an interrupt at the terminal reaches both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from tarazu.daemons.service_manager import log_to_stderr

    log_to_stderr("tarazu-mdsd", verbose=False)
    with socket.socket(fileno=int(sys.argv[1])) as end:
        threading.Thread(target=_end_with_mdsd, args=(end.fileno(),), daemon=True).start()
        serve(end)
    return 0


if __name__ == "__main__":
    sys.exit(main())
