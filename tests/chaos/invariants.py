"""What must hold once everything has come to rest, whatever has happened before."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tarazu.allocate.records import BESIDE
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.ledger_clock import LedgerClock
from tarazu.errors import Unavailable
from tarazu.store.journal import Content
from tarazu.wire.messages import StatusReply, StatusRequest, StepEnded, ViewReply, ViewRequest
from tarazu.wire.sockets import ZmqTransport
from tests.chaos.applications import Jobs
from tests.chaos.load import LIVING_S, Client
from tests.chaos.site import FS, OSSS, OST_BYTES, OSTS, Site

REST_S = 60.0
"""For all that is open to be answered and jobs to end."""
SETTLE_S = LIVING_S + 20.0
"""For what is dead or closed to be released, and the standby to follow."""

PARTED_S = 10.0
"""The same after a partition, when more may stay promised than is held."""


class Watch:
    """Looks at the daemons from outside."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._transport: ZmqTransport = site.transport()
        self._asked = [self._transport.requester(address) for address in site.requests]

    def close(self) -> None:
        self._transport.close()

    def status(self, number: int = 0, patience_s: float = 2.0) -> dict[str, Any] | None:
        """Of one mdsd; None when it does not answer."""
        try:
            reply = self._asked[number].request(StatusRequest(uuid.uuid4().hex), patience_s)
        except Unavailable:
            return None
        return reply.status if isinstance(reply, StatusReply) else None

    def view(self, patience_s: float = 2.0) -> ViewReply | None:
        """Of the mdsd that answers."""
        for requester in self._asked:
            try:
                reply = requester.request(ViewRequest(uuid.uuid4().hex, FS), patience_s)
            except Unavailable:
                continue
            if isinstance(reply, ViewReply):
                return reply
        return None

    def promised(self) -> Counter[int] | None:
        """OST → bytes of files that are open; None where no mdsd answers.

        Those of closed files go two intervals later, and it may not know how long one is: just after its start.
        """
        reply = self.view()
        if reply is None or reply.view is None:
            return None
        return +Counter({ost.index: ost.promised_bytes - ost.written_bytes for ost in reply.view.osts})

    def ready(self, patience_s: float) -> bool:
        """Every OST is known again, and usable, and the daemons run."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            reply = self.view(0.5)
            if reply and reply.view and sum(ost.usable for ost in reply.view.osts) == OSSS * OSTS:
                return True
            time.sleep(0.05)
        return False


class Check:
    """Brings everything to rest, compares, and lets it go on."""

    def __init__(self, site: Site, watch: Watch, clients: Sequence[Client], jobs: Sequence[Jobs]) -> None:
        self.site, self.watch, self.clients, self.jobs = site, watch, clients, jobs
        self.counts: Counter[str] = Counter()

    def __call__(self, last: bool = False) -> list[str]:
        """What does not hold."""
        wrong: list[str] = []
        self.site.start()
        if not self.watch.ready(REST_S):
            wrong.append(f"not all OSTs are known and usable {REST_S:g} s after the last fault")
        everybody = [*self.clients, *self.jobs]
        for each in everybody:
            each.rest()
        deadline = time.monotonic() + REST_S
        for each in everybody:
            if not each.resting.wait(max(0.0, deadline - time.monotonic())):
                wrong.append(f"{each.name} is not at rest after {REST_S:g} s")
        if not wrong:
            wrong += self._followed() + self._sums() + self._answers() + self._replayed() + self._followed()
        if last and not wrong:
            wrong += self.all_over()
        for each in everybody:
            wrong += each.wrong
            each.wrong = []
            if not last:
                each.work()
        self.counts["checks"] += 1
        return wrong

    def _sums(self) -> list[str]:
        """Σ of what is promised for open files is Σ of the replies that clients hold."""
        expected: Counter[int] = Counter()
        for client in self.clients:
            for step in client.steps.values():
                expected.update(step.open_bytes())
        expected = +expected
        if too_full := {ost: size for ost, size in expected.items() if size > OST_BYTES}:
            return [f"more is promised than there is, bytes by OST: {too_full}"]
        found: Counter[int] | None = None
        deadline = time.monotonic() + (SETTLE_S if not self.site.parted else PARTED_S)
        while time.monotonic() < deadline:
            found = self.watch.promised()
            if found == expected:
                self.counts["promised bytes compared"] += expected.total()
                return []
            time.sleep(0.2)
        if found is None:
            return [f"no mdsd answers {SETTLE_S:g} s after the last fault"]
        return self._which()

    def _which(self) -> list[str]:
        """What clients hold and the active mdsd has not; without partitions, what it has beyond.

        What was made or told on both sides of a partition stays promised as long as its step lives: more than is held.
        """
        held = {id: step.open_bytes() for client in self.clients for id, step in client.steps.items()}
        kept = open_promises(_book_in(self.site.states[self.site.active]))
        # Answered by both mdsds while they were apart: one of the two counts beside the other.
        both = {id: (kept.get(id, Counter()), kept.get(BESIDE + id, Counter())) for id in held}
        lost = [id for id in held if all(held[id] - one for one in both[id])]
        beyond = [id for id in kept if kept[id] - held.get(id, Counter())]
        if self.site.parted:
            self.counts["promises larger than held, after partitions"] += len(beyond)
        wrong = lost if self.site.parted else [*lost, *beyond]
        return [f"{id}: held {dict(held.get(id, {}))}, promised {dict(kept.get(id, {}))}" for id in wrong]

    def all_over(self) -> list[str]:
        """When every step has ended nothing is promised."""
        transport = self.site.transport()
        try:
            requester = transport.requester(self.site.servers())
            for client in self.clients:
                for id in client.steps:
                    try:
                        requester.request(StepEnded(id, f"over-{id}"), SETTLE_S)
                    except Unavailable as error:
                        return [f"{id}: {error}"]
        finally:
            transport.close()
        found: Counter[int] | None = None
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            if not (found := self.watch.promised()) and found is not None:
                return []
            time.sleep(0.2)
        kept = open_promises(_book_in(self.site.states[self.site.active]))
        return [f"all steps have ended, and promised is {dict(found or {})}: {kept}"]

    def _answers(self) -> list[str]:
        """Who asks for what he was promised gets the same answer (`Client.ask_again`)."""
        transport = self.site.transport()
        try:
            requester = transport.requester(self.site.servers())
            for client in self.clients:
                before = client.counts["asked again"]
                for step in list(client.steps.values()):
                    client.ask_again(requester, step, at_rest=True)
                self.counts["promises asked for again"] += client.counts["asked again"] - before
        finally:
            transport.close()
        return []

    def _replayed(self) -> list[str]:
        """What lies on disk makes the ledger that the active mdsd has in memory."""
        state = self.site.states[self.site.active]
        running = offline = ""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            running = self._digest(self.site.active)
            offline = replayed(state)
            if running and offline == running == self._digest(self.site.active):
                self.counts["ledgers equal to their replay"] += 1
                return []
            time.sleep(0.1)
        return [f"{state}: replayed it is {offline}, in memory {running}"]

    def _followed(self) -> list[str]:
        """The standby's ledger is the active one's."""
        if not self.site.standby:
            return []
        found: list[str] = []
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            found = [self._digest(number) for number in range(len(self.site.mdss))]
            if found[0] and found[0] == found[1] and self._digest(0) == found[0]:
                self.counts["standbys equal to the active one"] += 1
                return []
            time.sleep(0.1)
        return [f"the mdsds' ledgers differ: {found}"]

    def _digest(self, number: int) -> str:
        """Of the ledger in memory; empty where no mdsd answers."""
        status = self.watch.status(number)
        return str(status["ledger"]["digest"]) if status else ""


def _book_in(directory: Path) -> Book:
    """The ledger that lies in a directory, read from a copy: nothing is changed."""
    with tempfile.TemporaryDirectory(prefix="tarazu-replay-") as copy:
        shutil.copytree(directory, copy, dirs_exist_ok=True)
        book = Book(LedgerClock())
        book.replay(Content(Path(copy)))
        return book


def replayed(directory: Path) -> str:
    """Its digest."""
    book = _book_in(directory)
    return book.digest() if not book.damages else f"damaged: {book.damages[0]}"


def open_promises(book: Book) -> dict[str, Counter[int]]:
    """Id → OST → bytes of its open files, of steps that are not dead."""
    found = {}
    for id, promise in book.ledger.promises():
        osts, sizes, starts = promise.stripes
        counted: Counter[int] = Counter()
        for index, release_s in enumerate(promise.release_s):
            if release_s == math.inf and not promise.dead:
                for at in range(starts[index], starts[index + 1]):
                    counted[osts[at]] += sizes[at]
        if counted:
            found[id] = counted
    return found
