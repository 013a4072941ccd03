"""The process in which mdsd's allocations are computed: mdsd's loop answers meanwhile, whatever they take.

mdsd ──Task──► process ──tuple[RequestOutcome, ...]──► mdsd        over a socket pair, one after the other

A thread computes at the expense of all others in its process, and longest where the node has no processor free. So
this one is lower in priority, takes the best placement so far after `BETTER_S`, and is ended after `LONGEST_S`; when it
is gone, those requests are declined, and the next ones get a new process. It ends when mdsd does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import msgspec

from tarazu.config.sections import Allocate
from tarazu.daemons.mdsd.batch import BatchPart, Outcome, Placed, Refused, place
from tarazu.daemons.service import ISOLATED
from tarazu.errors import Unavailable, WireError
from tarazu.model import Left, SystemView
from tarazu.wire import messages
from tarazu.wire.channel import Channel
from tarazu.wire.messages import AllocationReply, AllocationRequest

log = logging.getLogger("tarazu.mdsd")

BETTER_S = 3.0
"""So long a placement is made better; on a free processor hardly any needs it."""
LONGEST_S = 60.0
"""Twice as long as a client waits for its answer; on a busy node the process takes seconds to start, too."""
NICE = 5


class Task(msgspec.Struct, frozen=True, array_like=True):
    settings: Allocate
    view: SystemView
    requests: tuple[AllocationRequest, ...]
    left: tuple[dict[int, Left], ...]
    """For each request the files that are not to be placed."""
    view_age_s: float


class RequestOutcome(msgspec.Struct, frozen=True, array_like=True):
    """What became of one request: `Placed` where there is a reply, else `Refused`."""

    status: messages.Status
    reason: str = ""
    reply: bytes = b""
    stripes: tuple[bytes, bytes, bytes] = (b"", b"", b"")


_encoder = msgspec.msgpack.Encoder()
_task = msgspec.msgpack.Decoder(Task)
_done = msgspec.msgpack.Decoder(tuple[RequestOutcome, ...])


class Placing:
    """mdsd's end. `place` belongs to one thread; `close` may be called from another."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Have a process ready. Raises OSError."""
        with self._lock:
            if self._closed:
                raise OSError("mdsd ends")
            if self._process is not None and self._process.poll() is None:
                return
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

    def place(
        self, settings: Allocate, view: SystemView, parts: Sequence[BatchPart], view_age_s: float
    ) -> list[Outcome]:
        """As `batch.place`; never raises."""
        task = Task(
            settings,
            view,
            tuple(part.request for part in parts),
            tuple(dict(part.left) for part in parts),
            view_age_s,
        )
        begin = time.monotonic()
        try:
            self.start()
            assert self._socket is not None
            channel = Channel(self._socket, deadline_s=LONGEST_S, name="socket")
            channel.send_body(_encoder.encode(task))
            return [_outcome(done) for done in _done.decode(channel.receive_body())]
        except (OSError, Unavailable, WireError, msgspec.DecodeError) as error:
            if not self._closed:
                log.error("the process that computes allocations is ended: %s", error)
            with self._lock:
                self._stop()
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
        outcomes = place(
            policy, task.view, parts, task.settings.weights, task.view_age_s, task.settings.least_gain
        )
        try:
            channel.send_body(_encoder.encode([_told(outcome) for outcome in outcomes]))
        except Unavailable:
            return


def main() -> int:
    # mdsd ends it: an interrupt at the terminal reaches both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    from tarazu.daemons.service_manager import log_to_stderr

    log_to_stderr("tarazu-mdsd", verbose=False)
    with socket.socket(fileno=int(sys.argv[1])) as end:
        from tarazu.flows import warm

        warm()
        serve(end)
    return 0


if __name__ == "__main__":
    sys.exit(main())
