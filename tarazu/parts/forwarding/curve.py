"""The bandwidth curve b(n) of an application: what it reads or writes a second with n I/O resources (paper A, 3.2)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from statistics import median

import msgspec


class Point(msgspec.Struct, frozen=True, array_like=True):
    """What was seen with so many resources, once for each repetition."""

    resources: int
    bytes_per_s: tuple[float, ...]
    """Positive, ascending."""

    @property
    def median(self) -> float:
        return median(self.bytes_per_s)


class Curve(msgspec.Struct, frozen=True):
    """b(n) by its points, ascending by number of resources, at least one."""

    points: tuple[Point, ...]

    def bandwidth(self, resources: int) -> float:
        """Bytes a second with so many resources: the median; between two points a straight line, beyond them level."""
        at = bisect_left(self.points, resources, key=lambda p: p.resources)
        if at == len(self.points):
            return self.points[-1].median
        right = self.points[at]
        if at == 0 or right.resources == resources:
            return right.median
        left = self.points[at - 1]
        share = (resources - left.resources) / (right.resources - left.resources)
        return left.median + share * (right.median - left.median)


def curve(bandwidths: Iterable[tuple[int, float]]) -> Curve:
    """From (resources, bytes a second), in any order; a number that comes several times was repeated.

    Raises ValueError where there is none, or where one is not positive.
    """
    seen: dict[int, list[float]] = {}
    for resources, value in bandwidths:
        if resources < 1 or not 0 < value < float("inf"):
            raise ValueError(
                f"expected resources >= 1 and a positive bandwidth, found {resources} and {value}"
            )
        seen.setdefault(resources, []).append(value)
    if not seen:
        raise ValueError("expected at least one point of a bandwidth curve, found none")
    return Curve(tuple(Point(n, tuple(sorted(seen[n]))) for n in sorted(seen)))
