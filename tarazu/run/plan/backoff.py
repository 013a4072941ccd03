"""How long to wait before clientd is asked again."""

from __future__ import annotations

import random


class Backoff:
    """Twice as long each time, with a jitter, never above the longest."""

    def __init__(self, first_s: float = 0.25, longest_s: float = 60.0) -> None:
        self.first_s = first_s
        self.longest_s = longest_s
        self.attempts = 0

    def failed(self, at_least_s: float = 0.0) -> float:
        """Seconds until the next attempt."""
        wait_s = max(at_least_s, self.first_s * 2.0 ** min(self.attempts, 30))
        self.attempts += 1
        return min(wait_s, self.longest_s) * random.uniform(0.5, 1.0)

    def succeeded(self) -> None:
        self.attempts = 0
