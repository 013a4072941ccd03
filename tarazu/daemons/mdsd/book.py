"""What mdsd remembers: promises, and replies for requests that are sent again. In memory: one that starts with nothing
is told what is promised by the leaders of living steps.
"""

from __future__ import annotations

from typing import NamedTuple

from tarazu.allocate.ledger import Dead, Ledger
from tarazu.daemons.mdsd.per_user import REPLY_LIMITS, PerUser

REMEMBER_S = 600.0
"""How long the end of a step that has no promise is remembered: its request may still be on the way."""


class KeptReply(NamedTuple):
    """A reply for a request that is sent again."""

    data: bytes
    """Encoded: a twentieth of its structs' memory."""
    until: float


class Book:
    """Times are on the monotonic clock."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.answered: PerUser[KeptReply] = PerUser(REPLY_LIMITS)

    def keep(self, id: str, uid: int, reply: bytes, until: float) -> None:
        """This is the answer to a request, whenever it is asked again."""
        self.answered.add(id, uid, KeptReply(reply, until), len(reply))
        while excess := self.answered.excess(uid):
            self.answered.pop(self.answered.oldest(excess.uid))

    def ended(self, id: str, now: float) -> None:
        """The job step is over."""
        self.ledger.ended(id)
        self.ledger.remember(id, now + REMEMBER_S)

    def hear(self, id: str, now: float) -> bool:
        """A sign of life of this job step; True for one that had died."""
        if not self.ledger.heard(id, now):
            return False
        self.ledger.revive(id, now)
        return True

    def pass_time(self, now: float, listening: bool) -> list[Dead]:
        """What expired by now goes, and the steps that died, which it says; nobody dies while we are not listening."""
        self.ledger.expire(now)
        for id in [id for id, kept in self.answered if kept.until <= now]:
            self.answered.pop(id)
        return self.ledger.die(self.ledger.silent(now), now) if listening else []
