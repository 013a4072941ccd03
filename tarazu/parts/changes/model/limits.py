"""How much may be changed at once, a minute, an hour; when what failed is tried again. To restore has no limit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tarazu.units import counted

MINUTE_S = 60.0
HOUR_S = 3600.0
FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 600.0


@dataclasses.dataclass(frozen=True)
class Limits:
    """Of one agent."""

    at_once: int = 100
    """Targets that are not as they were."""
    per_minute: int = 60
    """Changes that are made."""
    per_hour: int = 600

    def refusal(self, held: int, made_s: Sequence[float], now_s: float) -> str:
        """Why another one has to wait; empty: it has not. `held`: targets that are not as they were; `made_s`: Unix
        times of the changes made.
        """
        if held >= self.at_once:
            return (
                f"changed already: {counted(held, 'target')}, {self.at_once} may be at once (changes.at_once)"
            )
        for name, most, span_s in (
            ("minute", self.per_minute, MINUTE_S),
            ("hour", self.per_hour, HOUR_S),
        ):
            recent = sorted(at_s for at_s in made_s if at_s > now_s - span_s)
            if len(recent) >= most:
                # The same words in each round: they are written down.
                return f"made already: {counted(most, 'change')} a {name} (changes.per_{name})"
        return ""


@dataclasses.dataclass
class _Failed:
    wish: object
    times: int
    until: float


class Tries:
    """What failed is tried later, and later each time; another wish for the same is tried at once. Times: monotonic."""

    def __init__(self) -> None:
        self._failed: dict[object, _Failed] = {}

    def waits(self, key: object, wish: object, now: float) -> bool:
        failed = self._failed.get(key)
        return failed is not None and failed.wish == wish and now < failed.until

    def failed(self, key: object, wish: object, now: float) -> bool:
        """Whether it is the first time."""
        old = self._failed.get(key)
        times = old.times + 1 if old and old.wish == wish else 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(times - 1, 16))
        self._failed[key] = _Failed(wish, times, now + pause_s)
        return times == 1

    def done(self, key: object) -> None:
        self._failed.pop(key, None)

    def clear(self) -> None:
        self._failed.clear()
