"""Lists of OSTs, and of ranks, as text: `0-3,7`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

MOST = 1 << 24
"""No number in a list is larger: nobody has more ranks, what says so is damaged or made up."""


def fold(numbers: Sequence[int]) -> str:
    """`(0, 1, 2, 3, 7)` → `"0-3,7"`, in as many steps as there are ranges. They are sorted and all different."""
    parts = []
    at = 0
    while at < len(numbers):
        first = numbers[at]
        end = bisect_left(range(at, len(numbers)), 1, key=lambda i: numbers[i] - first - i + at) + at
        parts.append(str(first) if end - at == 1 else f"{first}-{numbers[end - 1]}")
        at = end
    return ",".join(parts)


def spans(text: str) -> list[tuple[int, int]]:
    """First and last of each range. Raises ValueError."""
    ranges = []
    for part in text.split(",") if text else ():
        low, dash, high = part.partition("-")
        first, last = int(low), int(high) if dash else int(low)
        if not 0 <= first <= last < MOST:
            raise ValueError(f"expected numbers such as 0-3,7, found {text[:40]!r}")
        ranges.append((first, last))
    return ranges


def unfold(text: str, most: int = MOST) -> tuple[int, ...]:
    """The inverse of `fold`; in the order written. Raises ValueError, also for more than `most` numbers."""
    ranges = spans(text)
    if sum(last - first + 1 for first, last in ranges) > most:
        raise ValueError(f"expected at most {most} numbers, found {text[:40]!r}")
    return tuple(number for first, last in ranges for number in range(first, last + 1))
