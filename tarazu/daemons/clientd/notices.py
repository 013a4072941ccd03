"""What clientd tells mdsd while and after steps run: files closed, steps ended, signs of life, words for parts; and
what is promised to them, where mdsd says that it does not know.

Nobody waits for it: a notice is noted, and sent by one thread until mdsd acknowledges it or has said nothing
about its allocation for `GIVE_UP_S`. Notices of one allocation go out in order, closes of one are merged, signs
of life of all steps go together. Users take turns, each with a share of what may wait and of what is on its
way. What is given up ends at mdsd by itself, when signs of life stop.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from tarazu.daemons.clientd.part_notices import PartNotices
from tarazu.daemons.service import Wakeup
from tarazu.daemons.shares import Share
from tarazu.errors import TarazuError
from tarazu.wire.bounds import MAX_ALIVE_IDS
from tarazu.wire.messages import (
    Acknowledged,
    FileClosed,
    PromiseTold,
    StepAlive,
    StepEnded,
    TargetsChanged,
    TargetsTold,
)
from tarazu.wire.requester import Requester
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Servers, request_id

log = logging.getLogger("tarazu.clientd")

GIVE_UP_S = 300.0
MAX_FILES_A_MESSAGE = 10_000
MAX_OPEN = 32
"""Messages without an answer at a time: a mdsd that was away is not drowned when it comes back."""
MAX_FILES = 1_000_000
"""Closed files still to be reported, of all users."""
MAX_ALLOCATIONS = 20_000
"""Allocations with something still to be reported, of all users."""
LONGEST_GATHERING_S = 1.0
"""Signs of life wait for others at most this long, and at most a quarter of their interval."""
MAX_ALIVE = 100_000
"""Signs of life that wait or are on their way, of all users."""
MAX_PROMISES_BYTES = 64 << 20
"""Of promises still to be told, of all users."""
MAX_OPEN_ALIVE = 4
"""Messages with signs of life that have no answer yet; what comes meanwhile is gathered for the next."""
LOOK_S = 0.2


@dataclass(eq=False)
class _Pending:
    """What is to be reported of one allocation: on its way, or in its user's queue."""

    uid: int
    id: str
    since: float
    """When mdsd last acknowledged something about it, or the first of this was noted."""
    closed: dict[int, int] = field(default_factory=dict)
    """Index in the request → size in bytes."""
    ended: bool = False
    promise: PromiseTold | None = None
    """What mdsd does not know of it; goes out before all else."""
    open: str = ""
    """Id of the message that is on its way."""
    sent: dict[int, int] | None = None
    """The files that it names, none when it tells of the promise; None when it says that the step ended."""


@dataclass(frozen=True)
class _Sign:
    """A sign of life."""

    uid: int
    since: float


@dataclass
class _Signs:
    """Those of one message that is on its way."""

    since: float
    signs: dict[str, _Sign]


class Notices:
    """All notices of one clientd. Its methods are called from any thread and return at once."""

    def __init__(
        self,
        connect: Callable[[int], ZmqTransport],
        servers: str | Servers,
        pass_news: Callable[[TargetsChanged], tuple[str, ...]] = lambda _news: (),
    ) -> None:
        """`connect`: a transport whose waits a descriptor ends; `servers`: mdsd's address, or both mdsds'; `pass_news`
        hands on what mdsd says by itself, and says which allocations' leaders have heard it.
        """
        self.files = Share(MAX_FILES)
        self.allocations = Share(MAX_ALLOCATIONS)
        self.signs = Share(MAX_ALIVE)
        self.promises = Share(MAX_PROMISES_BYTES)
        self.open = Share(MAX_OPEN)
        self.parts = PartNotices()
        self.counts = {"told": 0, "given_up": 0, "dropped": 0}
        self._connect = connect
        self._pass_news = pass_news
        self._servers = servers
        self._lock = threading.Lock()
        self._pending: dict[str, _Pending] = {}
        self._ready: dict[int, deque[_Pending]] = {}
        """Of each user what is not on its way; users in the order of their turns."""
        self._messages: dict[str, _Pending] = {}
        """Id of an open message → what it is about."""
        self._alive: dict[str, _Sign] = {}
        """Allocation → its sign of life that is not on its way."""
        self._alive_due: float | None = None
        self._wanted: dict[str, int] = {}
        """Allocations of which mdsd knows nothing → the user who gave a sign of life."""
        self._alive_open: dict[str, _Signs] = {}
        self._swept = 0.0
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

    def alive(self, uid: int, ids: Sequence[str], interval_s: float) -> None:
        """The steps of these allocations run; the next sign is expected within the interval."""
        with self._lock:
            now = time.monotonic()
            for id in ids:
                if id in self._alive or self.signs.take(uid):
                    self._alive[id] = _Sign(self._alive[id].uid if id in self._alive else uid, now)
                else:
                    self.counts["dropped"] += 1
            due = now + min(LONGEST_GATHERING_S, interval_s / 4)
            self._alive_due = due if self._alive_due is None else min(due, self._alive_due)
        self._wakeup.wake()

    def wanted(self, uid: int, ids: Sequence[str]) -> list[str]:
        """Of these allocations of a user those of which mdsd does not know what it promised: say it (`promised`)."""
        with self._lock:
            return [id for id in ids if self._wanted.get(id) == uid]

    def promised(self, promise: PromiseTold) -> None:
        """What is promised still with an allocation of `promise.uid`, as its leader knows it."""
        size_bytes = _size_bytes(promise)
        with self._lock:
            self._wanted.pop(promise.id, None)
            known = self._pending.get(promise.id)
            if known and (known.promise or known.ended):
                return
            if not self.promises.take(promise.uid, size_bytes):
                self.counts["dropped"] += 1
                return
            pending = self._pending_of(promise.uid, promise.id)
            if pending is None or pending.uid != promise.uid:
                self.promises.give(promise.uid, size_bytes)
                self.counts["dropped"] += 1
                return
            pending.promise = promise
        self._wakeup.wake()

    def part_told(self, part: str, id: str, uid: int, body: bytes) -> None:
        """A leader's word for a part of mdsd; it goes before older ones of this id."""
        with self._lock:
            if not self.parts.note(part, id, uid, body, time.monotonic()):
                self.counts["dropped"] += 1
        self._wakeup.wake()

    def closed(self, uid: int, id: str, files: Iterable[tuple[int, int]]) -> None:
        """Files of an allocation, by index in the request, were closed at these sizes."""
        new = dict(files)
        if not new:
            return
        with self._lock:
            known = self._pending.get(id)
            more = sum(index not in known.closed for index in new) if known else len(new)
            owner = known.uid if known else uid
            if more and not self.files.take(owner, more):
                self.counts["dropped"] += 1
                return
            pending = self._pending_of(uid, id)
            if pending is None:
                self.files.give(owner, more)
                self.counts["dropped"] += 1
                return
            pending.closed |= new
        self._wakeup.wake()

    def ended(self, uid: int, id: str) -> None:
        """The step of an allocation is over."""
        with self._lock:
            self._wanted.pop(id, None)
            if sign := self._alive.pop(id, None):
                self.signs.give(sign.uid)
            pending = self._pending_of(uid, id)
            if pending is None:
                self.counts["dropped"] += 1
                return
            pending.ended = True
        self._wakeup.wake()

    def _pending_of(self, uid: int, id: str) -> _Pending | None:
        if id not in self._pending:
            if not self.allocations.take(uid):
                return None
            self._pending[id] = _Pending(uid, id, time.monotonic())
            self._queue(self._pending[id])
        return self._pending[id]

    def _queue(self, pending: _Pending) -> None:
        self._ready.setdefault(pending.uid, deque()).append(pending)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._tell()
            except TarazuError as error:
                log.warning("cannot report to mdsd: %s", error)
            except Exception:
                log.exception("telling mdsd failed")
            with self._lock:
                self._all_anew()
            time.sleep(1.0)

    def _tell(self) -> None:
        transport = self._connect(self._wakeup.fd)
        try:
            mdsd = transport.requester(self._servers)
            while not self._stopping:
                with self._lock:
                    wait_s = self._submit(mdsd, time.monotonic())
                transport.wait(wait_s)
                self._wakeup.drain()
                while reply := mdsd.receive(0):
                    if isinstance(reply, TargetsChanged):
                        self._pass_on(mdsd, reply)
                        continue
                    unknown = reply.unknown if isinstance(reply, Acknowledged) else ()
                    with self._lock:
                        self._acknowledged(request_id(reply), unknown)
        finally:
            transport.close()

    def _pass_on(self, mdsd: Requester, news: TargetsChanged) -> None:
        """mdsd repeats it until a leader has acknowledged it."""
        if heard := self._pass_news(news):
            mdsd.submit(TargetsTold(heard, uuid.uuid4().hex, news.generation))

    def _all_anew(self) -> None:
        """Nothing is on its way any more: the connection is gone."""
        self.parts.anew()
        for pending in self._messages.values():
            self._returned(pending)
            self._queue(pending)
        self._messages.clear()
        for signs in self._alive_open.values():
            for id, sign in signs.signs.items():
                if id in self._alive:
                    self.signs.give(sign.uid)
                else:
                    self._alive[id] = sign
        self._alive_open.clear()
        if self._alive:
            self._alive_due = time.monotonic()

    def _submit(self, mdsd: Requester, now: float) -> float:
        """Send what is due; seconds until something else may be."""
        self._give_up(mdsd, now)
        self.parts.submit(mdsd)
        while pending := self._next():
            pending.open = uuid.uuid4().hex
            self._messages[pending.open] = pending
            mdsd.submit(self._message(pending))
        if self._alive_due is not None and self._alive_due <= now:
            while self._alive and len(self._alive_open) < MAX_OPEN_ALIVE:
                self._submit_alive(mdsd, now)
            if not self._alive:
                self._alive_due = None
        # Soon again while something is open: only a look at the socket sends what could not be sent before.
        open = self._messages or self._alive_open or len(self.parts)
        return min(LOOK_S if open else 60.0, self._until_alive(now))

    def _next(self) -> _Pending | None:
        """What the next user whose share of open messages is not used up has had in his queue for longest."""
        for uid in list(self._ready):
            if not self.open.take(uid):
                continue
            queue = self._ready.pop(uid)
            pending = queue.popleft()
            if queue:
                self._ready[uid] = queue  # behind all others
            return pending
        return None

    def _submit_alive(self, mdsd: Requester, now: float) -> None:
        """Each sign that goes out stays in its message until that is acknowledged."""
        message_id = uuid.uuid4().hex
        ids = list(islice(self._alive, MAX_ALIVE_IDS))
        self._alive_open[message_id] = _Signs(now, {id: self._alive.pop(id) for id in ids})
        mdsd.submit(StepAlive(tuple(ids), message_id))

    def _until_alive(self, now: float) -> float:
        if self._alive_due is None or len(self._alive_open) >= MAX_OPEN_ALIVE:
            return 60.0
        return max(0.0, self._alive_due - now)

    def _message(self, pending: _Pending) -> PromiseTold | FileClosed | StepEnded:
        if pending.promise:
            pending.sent = {}
            return msgspec.structs.replace(pending.promise, message_id=pending.open)
        if not pending.closed:
            pending.sent = None
            return StepEnded(pending.id, pending.open)
        pending.sent = dict(islice(pending.closed.items(), MAX_FILES_A_MESSAGE))
        return FileClosed(pending.id, pending.open, tuple(pending.sent.items()))

    def _acknowledged(self, message_id: str, unknown: Sequence[str] = ()) -> None:
        self.counts["told"] += 1
        if self.parts.acknowledged(message_id, time.monotonic()):
            return
        if signs := self._alive_open.pop(message_id, None):
            self._wanted |= {id: signs.signs[id].uid for id in unknown if id in signs.signs}
            while len(self._wanted) > MAX_ALLOCATIONS:
                del self._wanted[next(iter(self._wanted))]
            self._give_signs(signs)
        pending = self._messages.pop(message_id, None)
        if pending is None:
            return
        sent = pending.sent
        self._returned(pending)
        if sent == {}:
            self._forget_promise(pending)
        pending.since = time.monotonic()
        told = [index for index, size_bytes in (sent or {}).items() if pending.closed[index] == size_bytes]
        for index in told:  # the others were closed again meanwhile
            del pending.closed[index]
        self.files.give(pending.uid, len(told))
        if pending.promise or pending.closed or (sent is not None and pending.ended):
            self._queue(pending)
        else:
            self._drop(pending)

    def _returned(self, pending: _Pending) -> None:
        """Its message is not on its way any more."""
        pending.open, pending.sent = "", None
        self.open.give(pending.uid)

    def _forget_promise(self, pending: _Pending) -> None:
        if pending.promise:
            self.promises.give(pending.uid, _size_bytes(pending.promise))
            pending.promise = None

    def _drop(self, pending: _Pending) -> None:
        self._forget_promise(pending)
        del self._pending[pending.id]
        self.allocations.give(pending.uid)
        self.files.give(pending.uid, len(pending.closed))

    def _give_signs(self, signs: _Signs) -> None:
        for sign in signs.signs.values():
            self.signs.give(sign.uid)

    def _give_up(self, mdsd: Requester, now: float) -> None:
        """Now and then: whatever mdsd has said nothing about for too long."""
        if now - self._swept < GIVE_UP_S / 30:
            return
        self._swept = now
        self.parts.give_up(mdsd, now)
        late = [pending for pending in self._pending.values() if now - pending.since > GIVE_UP_S]
        for pending in late:
            if pending.open:
                mdsd.forget(pending.open)
                del self._messages[pending.open]
                self._returned(pending)
            self._drop(pending)
        if late:
            self.counts["given_up"] += len(late)
            log.warning(
                "mdsd does not answer: the promises of %d allocations end when they expire", len(late)
            )
            gone = set(map(id, late))
            kept = {uid: deque(p for p in queue if id(p) not in gone) for uid, queue in self._ready.items()}
            self._ready = {uid: queue for uid, queue in kept.items() if queue}
        for message_id, signs in list(self._alive_open.items()):
            if now - signs.since > GIVE_UP_S:
                mdsd.forget(message_id)
                self._give_signs(self._alive_open.pop(message_id))
        for allocation, sign in list(self._alive.items()):
            if now - sign.since > GIVE_UP_S:
                self.signs.give(self._alive.pop(allocation).uid)


def _size_bytes(promise: PromiseTold) -> int:
    return len(promise.osts) + len(promise.sizes) + len(promise.starts)
