"""Who gets the news that the health of a target has changed: clientds of the running steps that have promises there.

A step's clientd is the one whose connection last reported on it. It gets the news until it says that the step's leader
has got it (`TargetsTold`), more and more rarely; a step without a report yet (mdsd or clientd has been restarted) gets
it with its next sign of life. The news is the present state: two changes before an answer are one.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tarazu.wire.bounds import MAX_TOLD_IDS
from tarazu.wire.messages import TargetsChanged
from tarazu.wire.transport import Peer

REPEAT_S = (1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.0)
LONGEST_REPEAT_S = 30.0


class Promises(Protocol):
    """What is asked of the ledger."""

    def __len__(self) -> int: ...
    def stands(self, id: str) -> bool: ...
    def standing_on(self, fs_name: str, osts: Iterable[int], id: str = "") -> list[str]: ...


@dataclass
class _Untold:
    fs_name: str
    osts: dict[int, str]
    """OST → its health now; empty: well."""
    generation: int
    due: float = 0.0
    times: int = 0


class TargetNews:
    """All state of it; nothing of it needs to survive mdsd. Times are on the monotonic clock."""

    def __init__(self, promises: Promises, send: Callable[[Peer, TargetsChanged], None]) -> None:
        self._promises = promises
        self._send = send
        self._peers: dict[str, Peer] = {}
        self._untold: dict[str, _Untold] = {}
        self._generation = secrets.randbits(30) << 32
        """What an earlier mdsd said has others: an answer to that is none to ours."""

    def __len__(self) -> int:
        """Allocations whose leader has not got the news."""
        return len(self._untold)

    def heard(self, ids: Iterable[str], peer: Peer, now: float) -> None:
        """This connection reports on these allocations."""
        for id in ids:
            if self._promises.stands(id):
                anew = self._peers.get(id) != peer
                self._peers[id] = peer
                if (untold := self._untold.get(id)) and (anew or untold.times > len(REPEAT_S)):
                    untold.due = now
        if len(self._peers) > 1024 + 2 * len(self._promises):
            self._peers = {id: peer for id, peer in self._peers.items() if self._promises.stands(id)}

    def changed(self, fs_name: str, osts: Mapping[int, str]) -> int:
        """The health of these OSTs has changed; how many allocations stand on them."""
        self._generation += 1
        allocations = self._promises.standing_on(fs_name, osts)
        for id in allocations:
            self._note(id, fs_name, osts)
        return len(allocations)

    def promised(self, id: str, fs_name: str, amiss: Mapping[int, str]) -> None:
        """An allocation was made from a view that may be older than the problems of now."""
        if amiss and self._promises.standing_on(fs_name, amiss, id):
            self._generation += 1
            self._note(id, fs_name, amiss)

    def _note(self, id: str, fs_name: str, osts: Mapping[int, str]) -> None:
        known = self._untold.get(id)
        self._untold[id] = _Untold(fs_name, {**(known.osts if known else {}), **osts}, self._generation)

    def told(self, ids: Iterable[str], generation: int) -> None:
        """Their leaders have got all news up to this generation."""
        if generation >> 32 != self._generation >> 32:
            return
        for id in ids:
            if (untold := self._untold.get(id)) and untold.generation <= generation:
                del self._untold[id]

    def tell(self, now: float) -> float:
        """Send what is due; seconds until something else is."""
        if not self._untold:
            return LONGEST_REPEAT_S
        messages: dict[tuple[Peer, str, tuple[tuple[int, str], ...]], list[str]] = {}
        for id, untold in list(self._untold.items()):
            if not self._promises.stands(id):
                del self._untold[id]
            elif untold.due <= now and id in self._peers:
                osts = tuple(sorted(untold.osts.items()))
                messages.setdefault((self._peers[id], untold.fs_name, osts), []).append(id)
                untold.due = now + (
                    REPEAT_S[untold.times] if untold.times < len(REPEAT_S) else LONGEST_REPEAT_S
                )
                untold.times += 1
        for (peer, fs_name, osts), ids in messages.items():
            for first in range(0, len(ids), MAX_TOLD_IDS):
                part = tuple(ids[first : first + MAX_TOLD_IDS])
                self._send(peer, TargetsChanged(uuid.uuid4().hex, fs_name, part, osts, self._generation))
        return max(0.0, min((u.due for u in self._untold.values() if u.due > now), default=now + 1.0) - now)
