"""Leaders that wait in clientd for news of the OSTs on which their steps' promises stand.

Nothing is kept for a leader that does not wait: mdsd tells again and again until one has heard it, so that a clientd
that is started anew needs to know nothing. Who waits costs a descriptor, and no thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass

from tarazu.daemons.shares import Share
from tarazu.errors import Busy, TarazuError
from tarazu.wire import local
from tarazu.wire.channel import Channel
from tarazu.wire.messages import TargetsChanged

log = logging.getLogger("tarazu.clientd")

MAX_WAITING = 1000
"""Leaders of all users; one that asks about very many allocations counts for several."""
IDS_A_PLACE = 10
SWEEP_S = 5.0
SEND_S = 0.2


@dataclass(eq=False)
class _WaitingLeader:
    uid: int
    fs_name: str
    ids: frozenset[str]
    channel: Channel

    @property
    def places(self) -> int:
        return places_of(self.ids)


class Leaders:
    """Called from any thread."""

    def __init__(self) -> None:
        self.room = Share(MAX_WAITING)
        self.told = 0
        """News that leaders have acknowledged."""
        self._waiting: set[_WaitingLeader] = set()
        self._lock = threading.Lock()
        self._swept = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, uid: int, message: local.TargetsWait, channel: Channel) -> None:
        """Keep this conversation until there are news, or its leader has hung up. Raises Busy without room."""
        if time.monotonic() - self._swept > SWEEP_S:
            self._sweep()
        ids = frozenset(message.request_ids)
        places = places_of(ids)
        if not self.room.take(uid, places) and not (self._sweep() and self.room.take(uid, places)):
            raise Busy("no room for more leaders that wait for news")
        try:
            waiting = _WaitingLeader(uid, message.fs_name, ids, channel.twin())
        except BaseException:
            self.room.give(uid, places)
            raise
        with self._lock:
            self._waiting.add(waiting)

    def tell(self, news: TargetsChanged) -> tuple[str, ...]:
        """Answer the leaders that it concerns; the allocations whose leaders have received it."""
        ids = frozenset(news.ids)
        with self._lock:
            leaders = [w for w in self._waiting if w.fs_name == news.fs_name and not ids.isdisjoint(w.ids)]
            self._waiting.difference_update(leaders)
        heard: set[str] = set()
        for waiting in leaders:
            waiting.channel.limit(SEND_S)
            try:
                if not waiting.channel.gone():
                    waiting.channel.send(local.TargetsNews(news.osts))
                    heard |= ids & waiting.ids
                    self.told += 1
            except TarazuError as error:
                log.debug("a leader hears nothing: %s", error)
            self._drop(waiting)
        return tuple(heard)

    def close(self) -> None:
        """Hang up on all."""
        with self._lock:
            left, self._waiting = self._waiting, set()
        for waiting in left:
            self._drop(waiting)

    def _sweep(self) -> int:
        """Forget those who have hung up; how many."""
        with self._lock:
            self._swept = time.monotonic()
            gone = [w for w in self._waiting if w.channel.gone()]
            self._waiting.difference_update(gone)
        for waiting in gone:
            self._drop(waiting)
        return len(gone)

    def _drop(self, waiting: _WaitingLeader) -> None:
        waiting.channel.close()
        self.room.give(waiting.uid, waiting.places)


def places_of(ids: Collection[str]) -> int:
    return 1 + len(ids) // IDS_A_PLACE
