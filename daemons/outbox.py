"""Answers that wait until what they say is safe on disk, and with a standby."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tarazu.wire.transport import Peer, Replier


class _Answer(NamedTuple):
    sequence: int
    """Of the last record before it."""
    id: str
    data: bytes


class Outbox:
    """In the order in which they were given. An id waits once: who asks again meanwhile gets the answer."""

    def __init__(self, replier: Replier) -> None:
        self._replier = replier
        self._waiting: deque[_Answer] = deque()
        self._peers: dict[str, Peer] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, peer: Peer, id: str, data: bytes, sequence: int) -> None:
        self._waiting.append(_Answer(sequence, id, data))
        self._peers[id] = peer

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
            if peer := self._peers.pop(answer.id, None):
                self._replier.reply(peer, answer.data)
