"""What a change gave: the measure that was promised, after it beside the same hours of the days before.

Load has a day: what an hour is compared with is the same hour of earlier days, in the last week before the change. Of
the differences the mean counts, and how sure it is: it made things worse only where both say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import msgspec

HOUR_S = 3600.0
DAY = 24
WINDOW = 24
"""Hours after a change that are looked at."""
DAYS = 7
LEAST = 3
"""Hours with a counterpart before anything is said."""
NOTICED = 0.02
"""Share of what it was by which it has to differ."""
CLEARLY, LEAST_CLEARLY = 0.2, 6
"""The same two of a change that promised nothing: who learns wants it, and has trials of his own."""
SURE = 2.0
"""Standard errors."""

Verdict = Literal["not known yet", "better", "the same", "worse"]


class Gave(msgspec.Struct, frozen=True):
    """Of one change; less is better."""

    measure: str
    promised_before: float | None = None
    promised_after: float | None = None
    """None: nothing was promised."""
    before: float = 0.0
    """Mean of the same hours before it."""
    after: float = 0.0
    hours: int = 0
    """That were compared."""
    verdict: Verdict = "not known yet"


class Hours(msgspec.Struct):
    """Means of one measure by hours, of the last eight days."""

    sums: dict[int, tuple[float, float]] = {}
    """Hour since 1970 → (sum, sum of weights)."""

    def add(self, value: float, now_s: float, weight: float = 1.0) -> None:
        hour = int(now_s // HOUR_S)
        if hour not in self.sums:  # once an hour: it may be told each second
            oldest = hour - DAY * (DAYS + 1)
            # A clock that was ahead leaves hours that are still to come.
            for old in [h for h in self.sums if h < oldest or h > hour]:
                del self.sums[old]
        total, weights = self.sums.get(hour, (0.0, 0.0))
        self.sums[hour] = (total + weight * value, weights + weight)

    def fresh(self, now_s: float) -> bool:
        """Whether it was seen in the last eight days."""
        return max(self.sums, default=0) >= int(now_s // HOUR_S) - DAY * (DAYS + 1)


def over(changed_s: float, now_s: float) -> bool:
    """Whether its window is: what was before it is forgotten then, hour by hour, and its verdict stays."""
    return now_s - changed_s > (WINDOW + 2) * HOUR_S


def compare(hours: Mapping[int, tuple[float, float]], promised: Gave, changed_s: float, now_s: float) -> Gave:
    """`hours`: as `Hours.sums`; `promised`: measure and promise. The hour of the change itself counts nowhere."""
    at, now = int(changed_s // HOUR_S), int(now_s // HOUR_S)
    least, noticed = (LEAST_CLEARLY, CLEARLY) if promised.promised_after is None else (LEAST, NOTICED)
    pairs = []
    for hour in range(at + 1, min(now, at + 1 + WINDOW)):
        earlier = [hours[h] for h in range(hour - DAY, at - DAY * DAYS - 1, -DAY) if h < at and h in hours]
        if hour in hours and earlier:
            pairs.append(
                (sum(total for total, _ in earlier) / sum(n for _, n in earlier), _mean(hours[hour]))
            )
    if len(pairs) < least:
        return msgspec.structs.replace(promised, hours=len(pairs), verdict="not known yet")
    before, after = (sum(each[i] for each in pairs) / len(pairs) for i in (0, 1))
    differences = [b - a for a, b in pairs]
    mean = after - before
    spread = math.sqrt(sum((d - mean) ** 2 for d in differences) / (len(pairs) - 1))
    sure = abs(mean) > max(noticed * abs(before), SURE * spread / math.sqrt(len(pairs)))
    verdict: Verdict = ("worse" if mean > 0 else "better") if sure else "the same"
    return msgspec.structs.replace(promised, before=before, after=after, hours=len(pairs), verdict=verdict)


def _mean(of: tuple[float, float]) -> float:
    return of[0] / of[1]
