"""Answers that wait: in order, once an id, and not without bound."""

from __future__ import annotations

from typing import Any

from tarazu.daemons.mdsd.outbox import MOST_NOTICES, Outbox


class Sent:
    def __init__(self) -> None:
        self.sent: list[tuple[Any, bytes]] = []

    def reply(self, peer: Any, data: bytes) -> None:
        self.sent.append((peer, data))


def test_notices_without_end_wait_in_bounded_memory_while_nothing_can_be_written() -> None:
    end = Sent()
    outbox = Outbox(end)  # type: ignore[arg-type]
    for number in range(MOST_NOTICES + 10):
        outbox.add("peer", f"m{number}", b"noted", 1)  # type: ignore[arg-type]
    outbox.add("peer", "a1", b"placed", 2, b"declined")  # type: ignore[arg-type]
    assert len(outbox) == MOST_NOTICES + 1
    assert not outbox.again("peer", f"m{MOST_NOTICES}")  # type: ignore[arg-type]
    assert outbox.withdraw() == ["a1"] and end.sent == [("peer", b"declined")]
    outbox.send(1)
    assert len(end.sent) == 1 + MOST_NOTICES and not len(outbox)
