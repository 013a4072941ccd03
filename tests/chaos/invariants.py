"""What must hold once everything has come to rest, whatever has happened before."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tarazu.errors import Unavailable
from tarazu.wire.messages import StatusReply, StatusRequest, ViewReply, ViewRequest
from tarazu.wire.sockets import ZmqTransport
from tests.chaos.applications import Jobs
from tests.chaos.load import Client
from tests.chaos.site import FS, OSSS, OSTS, Site

REST_S = 60.0
"""For all that is open to be answered and jobs to end."""
SETTLE_S = 30.0
"""For what is dead or closed to be released, and the standby to follow."""


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
        """OST → bytes; None where no mdsd answers."""
        reply = self.view()
        if reply is None or reply.view is None:
            return None
        return Counter({ost.index: ost.promised_bytes for ost in reply.view.osts if ost.promised_bytes})

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

    def __call__(self) -> list[str]:
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
            wrong += self._sums() + self._answers()
        for each in everybody:
            wrong += each.wrong
            each.wrong = []
            each.work()
        self.counts["checks"] += 1
        return wrong

    def _sums(self) -> list[str]:
        """Σ of what is promised is Σ of the replies that clients hold."""
        expected: Counter[int] = Counter()
        for client in self.clients:
            for step in client.steps.values():
                expected.update(step.open_bytes())
        expected = +expected
        found: Counter[int] | None = None
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            found = self.watch.promised()
            if found == expected:
                self.counts["promised bytes compared"] += expected.total()
                return []
            time.sleep(0.2)
        if found is None:
            return [f"no mdsd answers {SETTLE_S:g} s after the last fault"]
        differences = {
            ost: found[ost] - expected[ost] for ost in expected | found if found[ost] != expected[ost]
        }
        return [f"promised beyond what clients hold, bytes by OST: {differences}"]

    def _answers(self) -> list[str]:
        """Who asks for what he was promised gets the same answer."""
        transport = self.site.transport()
        try:
            requester = self.site.requester(transport)
            for client in self.clients:
                before = client.counts["asked again"]
                for step in list(client.steps.values()):
                    client.ask_again(requester, step)
                self.counts["promises asked for again"] += client.counts["asked again"] - before
        finally:
            transport.close()
        return []
