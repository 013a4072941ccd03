"""What clientd hands on from leaders to parts of mdsd: the newest word of each id, until mdsd has acknowledged it.

Part of `Notices`, under its lock; only its thread talks to mdsd.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import msgspec

from tarazu.daemons.shares import Share
from tarazu.wire.messages import PartRequest
from tarazu.wire.requester import Requester

MAX_WORDS = 10_000
"""That wait or are on their way, of all users."""
MAX_WORDS_BYTES = 256 << 20
MAX_OPEN = 16
"""Words without an answer at a time; an mdsd of another version never answers."""
GIVE_UP_S = 60.0
"""Leaders say it again."""

Key = tuple[str, str]
"""(part, id)."""


@dataclass(eq=False)
class _Word:
    message: PartRequest
    since: float
    open: str = ""
    """Id of the message that is on its way."""
    newer: bool = False
    """It was said anew meanwhile."""


class PartNotices:
    def __init__(self) -> None:
        self.words = Share(MAX_WORDS)
        self.bytes = Share(MAX_WORDS_BYTES)
        self._words: dict[Key, _Word] = {}
        """Those that have waited for longest first."""
        self._open: dict[str, Key] = {}
        """Message → of what it is."""

    def __len__(self) -> int:
        return len(self._words)

    def note(self, part: str, id: str, uid: int, body: bytes, now: float) -> bool:
        """It takes the place of an older word. False where there is no room for its user, or the id is another's."""
        key = part, id
        message = PartRequest("", part, body, uid)
        known = self._words.get(key)
        if known and known.message.uid != uid:
            return False
        if not self.bytes.take(uid, len(body)):
            return False
        if known:
            self.bytes.give(uid, len(known.message.body))
            known.message, known.newer = message, bool(known.open)
        elif self.words.take(uid):
            self._words[key] = _Word(message, now)
        else:
            self.bytes.give(uid, len(body))
            return False
        return True

    def submit(self, mdsd: Requester) -> None:
        """Send what is not on its way."""
        if len(self._open) >= MAX_OPEN:
            return
        waiting = [(key, word) for key, word in self._words.items() if not word.open]
        for key, word in waiting[: MAX_OPEN - len(self._open)]:
            word.open, word.newer = uuid.uuid4().hex, False
            self._open[word.open] = key
            mdsd.submit(msgspec.structs.replace(word.message, message_id=word.open))

    def acknowledged(self, message_id: str, now: float) -> bool:
        """mdsd has acknowledged it; False when this is no message of ours."""
        key = self._open.pop(message_id, None)
        if key is None:
            return False
        word = self._words[key]
        word.open = ""
        if word.newer:
            word.since = now
        else:
            self._drop(key)
        return True

    def anew(self) -> None:
        """Nothing is on its way any more: the connection is gone."""
        for key in self._open.values():
            self._words[key].open = ""
        self._open.clear()

    def give_up(self, mdsd: Requester, now: float) -> None:
        """Forget what mdsd has not acknowledged for too long."""
        for key, word in [(key, word) for key, word in self._words.items() if now - word.since > GIVE_UP_S]:
            if word.open:
                del self._open[word.open]
                mdsd.forget(word.open)
            self._drop(key)

    def _drop(self, key: Key) -> None:
        message = self._words.pop(key).message
        self.words.give(message.uid)
        self.bytes.give(message.uid, len(message.body))
