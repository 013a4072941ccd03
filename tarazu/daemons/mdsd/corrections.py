"""What corrects the estimate of a file system: those who ask bring what their own runs taught (`tarazu.evidence`).

Who has too few runs of his own gets the median of what other users brought last: an application that the estimate alone
would always leave to Lustre has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from tarazu.evidence.model_error import AS_ESTIMATED, RECENT_S
from tarazu.model import Correction
from tarazu.wire.messages import AllocationRequest

MOST_USERS = 1_000
"""Of a file system; who brought one last stays."""


class Corrections:
    """By file system and user."""

    def __init__(self) -> None:
        self._known: defaultdict[str, dict[int, tuple[float, Correction]]] = defaultdict(dict)
        """uid → (when, what), the newest last."""

    def of(self, fs_name: str, requests: Sequence[AllocationRequest], now: float) -> Correction:
        """For these requests, which are placed together; now: on the monotonic clock."""
        users = self._known[fs_name]
        for request in requests:
            if request.correction != AS_ESTIMATED:
                users.pop(request.uid, None)
                users[request.uid] = now, request.correction
                if len(users) > MOST_USERS:
                    del users[next(iter(users))]
        own = [request.correction for request in requests]
        all_users = [known for at, known in users.values() if at >= now - RECENT_S]
        return Correction(
            _middle((c.streams for c in own), (c.streams for c in all_users)),
            _middle((c.requests for c in own), (c.requests for c in all_users)),
        )


def _middle(own: Iterable[float], others: Iterable[float]) -> float:
    """Factors of 1 say nothing."""
    known = [factor for factor in own if factor != 1] or [factor for factor in others if factor != 1]
    return median(known) if known else 1.0
