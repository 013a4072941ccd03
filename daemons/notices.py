"""What clientd tells mdsd while and after steps run: files closed, steps ended, signs of life.

Nobody waits for it: a notice is noted, and sent by one thread until mdsd acknowledges it or `GIVE_UP_S` are
over. Notices of one allocation go out in order, closes of one are merged, signs of life of all steps are one
message. What is given up ends at mdsd by itself, when signs of life stop.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tarazu.daemons.process import Wakeup
from tarazu.daemons.shares import Share
from tarazu.errors import TarazuError
from tarazu.wire.messages import FileClosed, StepAlive, StepEnded
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Requester, request_id

log = logging.getLogger("tarazu.clientd")

GIVE_UP_S = 300.0
MAX_FILES_A_MESSAGE = 10_000
MAX_OPEN = 32
"""Messages without an answer at a time: a mdsd that was away is not drowned when it comes back."""
MAX_PENDING = 1_000_000
"""Closed files and allocations that wait to be told, of all users."""
LONGEST_GATHERING_S = 1.0
"""Signs of life wait for others at most this long, and at most a quarter of their interval."""
MAX_ALIVE = 100_000
LOOK_S = 0.2


@dataclass
class _Pending:
    """What is to be told of one allocation."""

    uid: int
    since: float
    closed: dict[int, int] = field(default_factory=dict)
    """Index in the request → size in bytes."""
    ended: bool = False
    taken: int = 1
    """Of the user's share of what may wait."""
    open: str = ""
    """Id of the message that is on its way."""
    sent: dict[int, int] | None = None
    """The files that it names; None when it says that the step ended."""


class Notices:
    """All notices of one clientd. Its methods are called from any thread and return at once."""

    def __init__(self, connect: Callable[[int], ZmqTransport], address: str) -> None:
        """`connect`: a transport whose waits a descriptor ends; `address`: mdsd's."""
        self.share = Share(MAX_PENDING)
        self.counts = {"told": 0, "given_up": 0, "dropped": 0}
        self._connect = connect
        self._address = address
        self._lock = threading.Lock()
        self._pending: dict[str, _Pending] = {}
        self._messages: dict[str, str] = {}
        """Id of an open message → of the allocation that it is about."""
        self._alive: set[str] = set()
        self._alive_due: float | None = None
        self._alive_open = ""
        self._alive_since = 0.0
        self._wakeup = Wakeup()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tarazu-notices", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wakeup.wake()

    @property
    def waiting(self) -> int:
        return len(self._pending)

    def alive(self, ids: Sequence[str], interval_s: float) -> None:
        """The steps of these allocations run; the next sign is expected within the interval."""
        with self._lock:
            if len(self._alive) + len(ids) > MAX_ALIVE:
                self.counts["dropped"] += 1
                return
            self._alive.update(ids)
            due = time.monotonic() + min(LONGEST_GATHERING_S, interval_s / 4)
            self._alive_due = due if self._alive_due is None else min(due, self._alive_due)
        self._wakeup.wake()

    def closed(self, uid: int, id: str, files: Iterable[tuple[int, int]]) -> None:
        """Files of an allocation, by index in the request, were closed at these sizes."""
        new = dict(files)
        if not new:
            return
        with self._lock:
            if not self.share.take(uid, len(new)):
                self.counts["dropped"] += 1
                return
            pending = self._pending_of(uid, id)
            if pending is None:
                self.share.give(uid, len(new))
                self.counts["dropped"] += 1
                return
            pending.taken += len(new)
            pending.closed |= new
        self._wakeup.wake()

    def ended(self, uid: int, id: str) -> None:
        """The step of an allocation is over."""
        with self._lock:
            pending = self._pending_of(uid, id)
            if pending is None:
                self.counts["dropped"] += 1
                return
            pending.ended = True
            self._alive.discard(id)
        self._wakeup.wake()

    def _pending_of(self, uid: int, id: str) -> _Pending | None:
        if id not in self._pending:
            if not self.share.take(uid):
                return None
            self._pending[id] = _Pending(uid, time.monotonic())
        return self._pending[id]

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._tell()
            except TarazuError as error:
                log.warning("mdsd is told nothing: %s", error)
            except Exception:
                log.exception("telling mdsd failed")
            with self._lock:
                for pending in self._pending.values():
                    pending.open = ""
                self._messages.clear()
                self._alive_open = ""
            time.sleep(1.0)

    def _tell(self) -> None:
        transport = self._connect(self._wakeup.fd)
        try:
            mdsd = transport.requester(self._address)
            while not self._stopping:
                with self._lock:
                    wait_s = self._submit(mdsd, time.monotonic())
                transport.wait(wait_s)
                self._wakeup.drain()
                while reply := mdsd.receive(0):
                    with self._lock:
                        self._acknowledged(request_id(reply))
        finally:
            transport.close()

    def _submit(self, mdsd: Requester, now: float) -> float:
        """Send what is due; seconds until something else may be."""
        self._give_up(mdsd, now)
        for id, pending in self._pending.items():
            if len(self._messages) >= MAX_OPEN:
                break
            if not pending.open:
                pending.open = uuid.uuid4().hex
                self._messages[pending.open] = id
                mdsd.submit(self._message(id, pending))
        if self._alive_due is not None and self._alive_due <= now:
            mdsd.forget(self._alive_open)  # this one says more
            self._alive_open, self._alive_since = uuid.uuid4().hex, now
            mdsd.submit(StepAlive(tuple(sorted(self._alive)), self._alive_open))
            self._alive.clear()
            self._alive_due = None
        # Soon again while something is open: only a look at the socket sends what could not be sent before.
        return min(LOOK_S if self._messages or self._alive_open else 60.0, self._until_alive(now))

    def _until_alive(self, now: float) -> float:
        return 60.0 if self._alive_due is None else max(0.0, self._alive_due - now)

    def _message(self, id: str, pending: _Pending) -> FileClosed | StepEnded:
        if not pending.closed:
            pending.sent = None
            return StepEnded(id, pending.open)
        pending.sent = dict(islice(pending.closed.items(), MAX_FILES_A_MESSAGE))
        return FileClosed(id, pending.open, tuple(pending.sent.items()))

    def _acknowledged(self, message_id: str) -> None:
        self.counts["told"] += 1
        if message_id == self._alive_open:
            self._alive_open = ""
        id = self._messages.pop(message_id, "")
        pending = self._pending.get(id)
        if pending is None or pending.open != message_id:
            return
        pending.open = ""
        for index, size_bytes in (pending.sent or {}).items():
            if pending.closed.get(index) == size_bytes:  # else it was closed again meanwhile
                del pending.closed[index]
        if not pending.closed and (pending.sent is None or not pending.ended):
            self._drop(id)

    def _drop(self, id: str) -> None:
        pending = self._pending.pop(id)
        self._messages.pop(pending.open, None)
        self.share.give(pending.uid, pending.taken)

    def _give_up(self, mdsd: Requester, now: float) -> None:
        late = [id for id, pending in self._pending.items() if now - pending.since > GIVE_UP_S]
        for id in late:
            mdsd.forget(self._pending[id].open)
            self._drop(id)
        if self._alive_open and now - self._alive_since > GIVE_UP_S:
            mdsd.forget(self._alive_open)
            self._alive_open = ""
        if late:
            self.counts["given_up"] += len(late)
            log.warning("mdsd does not answer: the promises of %d allocations end by themselves", len(late))
