"""Creates that job steps are expected to make on MDTs: promised in memory only, so that two jobs do not choose the same
idle MDT. Unlike space, nothing is given away twice when they are forgotten, as when mdsd starts again, or the other of
two answers: MDTs are then a little less even. They end with the step, with its silence, and with the plan's time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from tarazu.model import SystemView

MOST = 20_000
MOST_OF_USER = 4_000
"""Allocations whose creates are kept; of more the oldest go."""


@dataclass
class _Promise:
    fs_name: str
    uid: int
    creates: Mapping[int, int]
    """MDT → creates."""
    expires_at: float
    alive_s: float
    heard: float


class PromisedCreates:
    """By allocation id. Times are monotonic."""

    def __init__(self) -> None:
        self._promises: dict[str, _Promise] = {}
        self._of_user: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._promises)

    def promise(
        self,
        id: str,
        fs_name: str,
        uid: int,
        creates: Mapping[int, int],
        *,
        now: float,
        expires_s: float,
        alive_s: float,
    ) -> None:
        """These creates are to come; `alive_s` as in the request, 0: silence means nothing."""
        if not creates:
            return
        self.ended(id)
        self._promises[id] = _Promise(fs_name, uid, dict(creates), now + expires_s, alive_s, now)
        self._of_user[uid] += 1
        if self._of_user[uid] > MOST_OF_USER:
            self.ended(next(each for each, of in self._promises.items() if of.uid == uid))
        if len(self._promises) > MOST:
            self.ended(next(iter(self._promises)))

    def ended(self, id: str) -> None:
        """Its step is over. Unknown ids are ignored."""
        if promise := self._promises.pop(id, None):
            self._of_user[promise.uid] -= 1
            if not self._of_user[promise.uid]:
                del self._of_user[promise.uid]

    def hear(self, id: str, now: float) -> None:
        """Its step lives."""
        if promise := self._promises.get(id):
            promise.heard = now

    def pass_time(self, now: float) -> None:
        """Drop what is over, and what belongs to steps that are silent for too long."""
        for id in [
            id
            for id, of in self._promises.items()
            if of.expires_at <= now or (of.alive_s > 0 and of.heard + of.alive_s <= now)
        ]:
            self.ended(id)

    def apply(self, view: SystemView) -> SystemView:
        """The view with what is promised on each of its MDTs."""
        if not view.mdts:
            return view
        creates: Counter[int] = Counter()
        for promise in self._promises.values():
            if promise.fs_name == view.fs_name:
                creates.update(promise.creates)
        mdts = tuple(msgspec.structs.replace(m, promised_creates=creates[m.index]) for m in view.mdts)
        return msgspec.structs.replace(view, mdts=mdts)
