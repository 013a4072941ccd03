"""mdsd's end of what clientd tells it."""

from __future__ import annotations

import time
from collections.abc import Callable

from tarazu.wire.messages import Acknowledged, Request, StepAlive
from tarazu.wire.sockets import ZmqTransport

PATIENCE_S = 300.0


class Mdsd:
    """The other end: acknowledges what it is asked to, and remembers all of it."""

    def __init__(self) -> None:
        self.transport = ZmqTransport(None)
        self.replier = self.transport.replier("tcp://127.0.0.1:*")
        self.seen: list[Request] = []
        self.unknown: tuple[str, ...] = ()
        """What it says of allocations whose steps live."""

    def take(self, holds: Callable[[list[Request]], object], answer: bool = True) -> list[Request]:
        """Receive until it holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds(self.seen):
            assert time.monotonic() < deadline, self.seen
            asked = self.replier.receive(0.05)
            if asked:
                self.seen.append(asked[1])
                if answer:
                    unknown = self.unknown if isinstance(asked[1], StepAlive) else ()
                    self.replier.reply(asked[0], Acknowledged(asked[1].message_id, unknown))  # type: ignore[union-attr]
        return self.seen


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
