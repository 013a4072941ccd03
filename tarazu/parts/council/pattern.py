"""Access patterns: what values are learned for (Bez et al., Adaptive Request Scheduling, section IV-B)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Operation = Literal["read", "write", "both"]
Spatiality = Literal["contiguous", "strided", "unknown"]
PHASE = 3
"""Intervals of one pattern after each other, from which a client is in it, and does not do several things by turns."""


class Pattern(NamedTuple):
    """One context: intervals of one pattern are taken to be alike, and share what is learned."""

    operation: Operation
    spatiality: Spatiality
    files: int
    """Files that were accessed in the interval, as the power of four at or below it (1, 4, 16 …); 0: not known."""
    request_bytes: int
    """Mean size of a request, as the nearest power of two; 0: not known."""

    def __str__(self) -> str:
        files = "files unknown" if not self.files else "1 file" if self.files == 1 else f"{self.files}+ files"
        size = f"{self.request_bytes} B" if self.request_bytes else "size unknown"
        return f"{self.operation} {self.spatiality}, {files}, {size}"


def files_class(files: int) -> int:
    """The power of four at or below a number of files; 0 for 0 (not known)."""
    return 4 ** ((files.bit_length() - 1) // 2) if files > 0 else 0


def request_class(mean_bytes: float) -> int:
    """The power of two nearest to a mean request size (by ratio); 0 for nothing."""
    return 1 << max(0, round(math.log2(mean_bytes))) if mean_bytes > 0 else 0


def distance(one: Pattern, other: Pattern) -> float:
    """How unlike two patterns are: 0 for the same; math.inf where nothing that is known of one says anything of the
    other (another operation). A step of a class of size or files is 1, another or an unknown spatiality 2 or 1.
    """
    if one.operation != other.operation:
        return math.inf
    far = 0.0
    if one.spatiality != other.spatiality:
        far += 1.0 if "unknown" in (one.spatiality, other.spatiality) else 2.0
    for a, b, base in ((one.files, other.files, 4), (one.request_bytes, other.request_bytes, 2)):
        if a != b:
            far += 1.0 if not a or not b else abs(math.log(a / b, base))
    return far
