"""What clientd reports to mdsd of where steps run: the newest report of each step, until mdsd has acknowledged it.

Part of `Notices`, under its lock; only its thread talks to mdsd.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import msgspec

from tarazu.daemons.shares import Share
from tarazu.wire.messages import StepNodes
from tarazu.wire.requester import Requester

MAX_STEPS = 10_000
"""Whose words wait or are on their way, of all users."""
MAX_OPEN = 16
"""Words without an answer at a time."""
GIVE_UP_S = 60.0
"""Leaders say it again."""


@dataclass(eq=False)
class _Word:
    uid: int
    message: StepNodes
    since: float
    open: str = ""
    """Id of the message that is on its way."""
    newer: bool = False
    """It was said anew meanwhile."""


class NodeNotices:
    def __init__(self) -> None:
        self.steps = Share(MAX_STEPS)
        self._words: dict[str, _Word] = {}
        """Step → its word, those that have waited for longest first."""
        self._open: dict[str, _Word] = {}
        self._gone: list[str] = []
        """Messages whose step has ended."""

    def __len__(self) -> int:
        return len(self._words)

    def note(self, message: StepNodes, now: float) -> bool:
        """`message` takes the place of an older one of its step. False where there is no room for its user."""
        known = self._words.get(message.id)
        if known is None:
            if not self.steps.take(message.uid):
                return False
            self._words[message.id] = _Word(message.uid, message, now)
        elif known.uid == message.uid:
            known.message, known.newer = message, bool(known.open)
        return True

    def ended(self, uid: int, id: str) -> None:
        """Nobody need hear of this step's nodes any more."""
        word = self._words.get(id)
        if word and word.uid == uid:
            self._drop(word)

    def submit(self, mdsd: Requester) -> None:
        """Send what is not on its way."""
        for message_id in self._gone:
            mdsd.forget(message_id)
        self._gone.clear()
        if len(self._open) >= MAX_OPEN:
            return
        for word in [word for word in self._words.values() if not word.open][: MAX_OPEN - len(self._open)]:
            word.open, word.newer = uuid.uuid4().hex, False
            self._open[word.open] = word
            mdsd.submit(msgspec.structs.replace(word.message, message_id=word.open))

    def acknowledged(self, message_id: str, now: float) -> bool:
        """mdsd has acknowledged it; False when this is no message of ours."""
        word = self._open.pop(message_id, None)
        if word is None:
            return False
        word.open = ""
        if word.newer:
            word.since = now
        else:
            self._drop(word)
        return True

    def anew(self) -> None:
        """Nothing is on its way any more: the connection is gone."""
        for word in self._open.values():
            word.open = ""
        self._open.clear()
        self._gone.clear()

    def give_up(self, now: float) -> None:
        """Forget what mdsd has not acknowledged for too long."""
        for word in [word for word in self._words.values() if now - word.since > GIVE_UP_S]:
            self._drop(word)

    def _drop(self, word: _Word) -> None:
        del self._words[word.message.id]
        self.steps.give(word.uid)
        if word.open:
            self._open.pop(word.open, None)
            self._gone.append(word.open)
            word.open = ""
