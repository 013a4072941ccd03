"""Answers that wait until what they say is safe on disk, and with a standby."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tarazu.wire.sockets import Replier
from tarazu.wire.transport import Peer

MOST_NOTICES = 50_000
"""While so many answers wait, notices get none: who gave them gives them again."""


class _Answer(NamedTuple):
    sequence: int
    """Of the last record before it."""
    id: str
    data: bytes
    otherwise: bytes | None
    """What is sent when the records cannot be written; None: it waits until they are."""


class Outbox:
    """In the order in which they were given. An id waits once: who asks again meanwhile gets the answer."""

    def __init__(self, replier: Replier) -> None:
        self._replier = replier
        self._waiting: deque[_Answer] = deque()
        self._peers: dict[str, Peer] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, peer: Peer, id: str, data: bytes, sequence: int, otherwise: bytes | None = None) -> None:
        """`sequence`: of the last record that it waits for; 0: it leaves at once."""
        if sequence and otherwise is None and len(self._waiting) >= MOST_NOTICES:
            return
        self._peers[id] = peer
        if sequence:
            self._waiting.append(_Answer(sequence, id, data, otherwise))
        else:
            self._reply(id, data)

    def again(self, peer: Peer, id: str) -> bool:
        """True when the answer to this id waits already: it goes to `peer`."""
        if id not in self._peers:
            return False
        self._peers[id] = peer
        return True

    def send(self, durable: int) -> None:
        """All answers whose records are safe: those up to `durable`."""
        while self._waiting and self._waiting[0].sequence <= durable:
            answer = self._waiting.popleft()
            self._reply(answer.id, answer.data)

    def clear(self) -> None:
        """Waiting answers are not sent: whoever asked asks again."""
        self._waiting.clear()
        self._peers.clear()

    def withdraw(self) -> list[str]:
        """Send what has another answer with that one; whose these are. The rest waits on."""
        withdrawn = [answer for answer in self._waiting if answer.otherwise is not None]
        self._waiting = deque(answer for answer in self._waiting if answer.otherwise is None)
        for answer in withdrawn:
            assert answer.otherwise is not None
            self._reply(answer.id, answer.otherwise)
        return [answer.id for answer in withdrawn]

    def _reply(self, id: str, data: bytes) -> None:
        if peer := self._peers.pop(id, None):
            self._replier.reply(peer, data)
