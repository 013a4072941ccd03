"""What must hold once everything has come to rest, whatever has happened before."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Sequence

from tarazu.errors import Unavailable
from tarazu.wire.bounds import MAX_TOLD_IDS
from tarazu.wire.messages import StatusReply, StatusRequest, StepEnded, ViewReply, ViewRequest
from tarazu.wire.sockets import ZmqTransport
from tests.chaos.applications import Jobs
from tests.chaos.load import LIVING_S, Client
from tests.chaos.site import FS, OSSS, OSTS, Site

REST_S = 60.0
"""For all that is open to be answered and jobs to end."""
SETTLE_S = LIVING_S + 20.0
"""For what is dead or closed to be released, and for clients to tell the first mdsd."""


class Watch:
    """Looks at the daemons from outside."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._transport: ZmqTransport = site.transport()
        self._asked = [self._transport.requester(address) for address in site.requests]

    def close(self) -> None:
        self._transport.close()

    def promises_of(self, ids: tuple[str, ...]) -> dict[str, Counter[int]] | None:
        """Id → OST → bytes that the first mdsd has in its book; None when it does not answer."""
        kept: dict[str, Counter[int]] = {}
        for first in range(0, max(len(ids), 1), MAX_TOLD_IDS):
            question = StatusRequest(uuid.uuid4().hex, promises=ids[first : first + MAX_TOLD_IDS])
            try:
                reply = self._asked[0].request(question, 2.0)
            except Unavailable:
                return None
            assert isinstance(reply, StatusReply)
            for id, of in reply.status.get("promises_of", {}).items():
                kept[id] = Counter({int(ost): size for ost, size in of["osts"].items()})
        return kept

    def view(self, patience_s: float = 2.0) -> ViewReply | None:
        """Of the first mdsd that answers."""
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
            wrong += self._first_is_asked() + self._known() + self._answers()
        if last and not wrong:
            wrong += self.all_over()
        for each in everybody:
            wrong += each.wrong
            each.wrong = []
            if not last:
                each.work()
        self.counts["checks"] += 1
        return wrong

    def _known(self) -> list[str]:
        """What clients hold is promised in the book of the mdsd that they ask, and that is the first."""
        held = {id: step.open_bytes() for client in self.clients for id, step in client.steps.items()}
        wrong: dict[str, str] = {}
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            kept = self.watch.promises_of(tuple(held))
            wrong = {} if kept is not None else {"all": "no mdsd answers"}
            twice = 0
            allocated = self.site.allocated()
            for id, of in held.items():
                there = (kept or {}).get(id, Counter())
                if there and allocated[id] > 1:
                    twice += 1  # two mdsds had answered: each has its own answer in its book
                elif of - there:
                    wrong[id] = f"held {dict(of)}, promised {dict(there)}"
            if not wrong:
                self.counts["promises found in the book"] += len(held)
                self.counts["promises that two mdsds had made"] += twice
                return []
            time.sleep(0.2)
        return [f"{id}: {why}" for id, why in wrong.items()]

    def _first_is_asked(self) -> list[str]:
        """With all well, everybody is back at the first mdsd of the list."""
        deadline = time.monotonic() + SETTLE_S
        away = list(self.clients)
        while away and time.monotonic() < deadline:
            away = [client for client in self.clients if client.servers.first]
            time.sleep(0.1)
        return [f"{client.name} asks the second mdsd, {SETTLE_S:g} s after the last fault" for client in away]

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
        return [f"all steps have ended, and promised is {dict(found or {})}"]

    def _answers(self) -> list[str]:
        """Who asks for what he was promised gets the same answer (`Client.ask_again`)."""
        transport = self.site.transport()
        try:
            requester = transport.requester(self.site.servers())
            for client in self.clients:
                before = client.counts["asked again"]
                for step in list(client.steps.values()):
                    client.ask_again(requester, step)
                self.counts["promises asked for again"] += client.counts["asked again"] - before
        finally:
            transport.close()
        return []
