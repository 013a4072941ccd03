"""How often one user may ask mdsd for something: a bucket of tokens each, which fills by a steady rate."""

from __future__ import annotations

from dataclasses import dataclass

PER_S = 100.0
"""Requests a second of one user; beyond, they are declined."""
BURST = 2_000
"""So many at once: a crowd of steps that start together."""
MOST_USERS = 65_536
"""Whose buckets are kept; a full one is not."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float
    told: float = float("-inf")
    """When a refusal was last logged."""


class Rate:
    """Times are on the monotonic clock."""

    def __init__(self, per_s: float, burst: float) -> None:
        """What one user may have in a second, and at once."""
        self.per_s, self.burst = per_s, burst
        self._buckets: dict[int, _Bucket] = {}

    def take(self, uid: int, now: float, amount: float = 1.0) -> bool:
        """False when this user may not have it now; then it is not counted."""
        bucket = self._buckets.get(uid)
        if bucket is None:
            if len(self._buckets) >= MOST_USERS:
                self._forget(now)
            bucket = self._buckets[uid] = _Bucket(self.burst, now)
        bucket.tokens = min(self.burst, bucket.tokens + (now - bucket.at) * self.per_s)
        bucket.at = now
        if bucket.tokens < amount:
            return False
        bucket.tokens -= amount
        return True

    def _forget(self, now: float) -> None:
        full = [u for u, b in self._buckets.items() if b.tokens + (now - b.at) * self.per_s >= self.burst]
        for uid in full or [next(iter(self._buckets))]:
            del self._buckets[uid]


class RequestRate(Rate):
    """Of allocations."""

    def __init__(self, per_s: float = PER_S) -> None:
        super().__init__(per_s, BURST)

    def refusal(self, uid: int, now: float) -> str:
        """Why this user may not ask now, in words; empty when he may, and it counts as one request."""
        if self.take(uid, now):
            return ""
        return f"uid {uid} asks too often: expected at most {self.per_s:g} requests a second beyond {BURST} at once"

    def to_be_logged(self, uid: int, now: float) -> bool:
        """Of many refusals of one user one a second."""
        bucket = self._buckets[uid]
        if now - bucket.told < 1.0:
            return False
        bucket.told = now
        return True
