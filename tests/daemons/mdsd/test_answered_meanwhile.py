"""A request waits here while the other mdsd, which has answered it, hands its promises over: that answer stays."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from tarazu.allocate.records import Replied
from tarazu.config import Settings
from tarazu.daemons.mdsd.allocating import Allocating
from tarazu.daemons.mdsd.audit import Audit
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.ledger_clock import LedgerClock
from tarazu.daemons.mdsd.outbox import Outbox
from tarazu.stats.gate import Gate
from tarazu.wire import messages
from tarazu.wire.messages import AllocationReply
from tarazu.wire.transport import Peer
from tests.daemons.conftest import allocation

PEER = Peer(b"", "somebody")


class Told:
    def __init__(self) -> None:
        self.answers: list[Any] = []

    def reply(self, _peer: Peer, data: bytes) -> None:
        self.answers.append(messages.decode(data))


def test_an_answer_that_comes_in_while_the_request_waits_is_not_replaced_by_a_refusal() -> None:
    told, book = Told(), Book(LedgerClock())
    settings = Settings()
    system = SimpleNamespace(settling=lambda _name: True)
    allocating = Allocating(
        settings,
        book,
        system,
        Gate("/", 1.0, 1.0),
        Outbox(told),
        Audit(""),
        lambda: None,  # type: ignore[arg-type]
    )
    try:
        now = time.monotonic()
        asked = allocation("r", deadline_s=0.01)
        allocating.ask(PEER, asked, now)
        theirs = messages.encode(AllocationReply("r", "allocated", osts=(((1,),), ((2,),))))
        book.note(Replied("r", asked.uid, theirs, book.clock.now() + 600.0))
        allocating.look(now + 1.0)  # its deadline has passed
        assert [(a.id, a.status) for a in told.answers] == [("r", "allocated")]
        kept = book.answered.get("r")
        assert kept and kept.data == theirs
    finally:
        allocating.close()
