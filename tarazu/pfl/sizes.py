"""How large a site's files are, how many processes write each, and how many are written at one time: classes of files
that differ little, in bounded memory however many there are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

Array = np.ndarray[Any, Any]

PER_OCTAVE = 8
"""Classes of sizes between a power of two, which belongs to those below it, and the next."""
LARGEST_BYTES = 2**63 - 1
LEAST_SHARE = 0.2
"""Of the files, in a half: with less the halves are made by name."""
LARGER_OCTAVES = 6
"""How far sizes are thought to go on beyond the largest one."""


class Classes(NamedTuple):
    """Arrays with an entry for each class, the largest files first."""

    size_bytes: Array
    """Mean of its files."""
    writers: Array
    """Processes that write one file."""
    at_once: Array
    """Files that are written at one time, each by processes of its own."""
    files: Array

    @property
    def total(self) -> float:
        return float(self.files.sum())


class Sizes:
    """Sums of files by class."""

    def __init__(self) -> None:
        self._sums: defaultdict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self.files = 0
        self.bytes = 0

    def add(self, size_bytes: int, writers: int = 1, at_once: int = 1, files: int = 1) -> None:
        key = (size_class(size_bytes), writers.bit_length(), at_once.bit_length())
        of = self._sums[key]
        of[0] += files
        of[1] += files * size_bytes
        of[2] += files * writers
        of[3] += files * at_once
        self.files += files
        self.bytes += files * size_bytes

    def merge(self, others: Iterable[Sizes]) -> Sizes:
        for other in others:
            for key, of in other._sums.items():
                mine = self._sums[key]
                for i, value in enumerate(of):
                    mine[i] += value
            self.files += other.files
            self.bytes += other.bytes
        return self

    def classes(self) -> Classes:
        rows = [(s / n, max(1, round(w / n)), max(1, round(a / n)), n) for n, s, w, a in self._sums.values()]
        table = np.array(sorted(rows, reverse=True), float).reshape(-1, 4)
        return Classes(*table.T)


def size_class(size_bytes: int) -> int:
    """0 for empty files; (2^k, 2^(k+1)] has `PER_OCTAVE` of equal width."""
    if size_bytes <= 1:
        return size_bytes
    octave = (size_bytes - 1).bit_length() - 1
    within = ((size_bytes - 1 - (1 << octave)) * PER_OCTAVE) >> octave
    return 2 + octave * PER_OCTAVE + within


class Halves:
    """Files in two halves: tuned on one, judged on the other.

    What belongs together, a run or the files of a directory, is in one half: files that were made alike tell nothing
    about those that were not. Where one half would have next to nothing, files go by their own names.
    """

    def __init__(self) -> None:
        self._parts = [Sizes() for _ in range(4)]
        """By twice the half of what a file belongs to, and the half of its own name."""
        self.kinds: set[str] = set()
        """What was kept together: `run`, `directory`, `line`."""

    def add(
        self,
        group: bytes,
        name: bytes,
        size_bytes: int,
        writers: int = 1,
        at_once: int = 1,
        kind: str = "run",
    ) -> None:
        """group: what the file belongs to; its hash decides in which half it is."""
        self.kinds.add(kind)
        self._parts[2 * half(group) + half(name)].add(size_bytes, writers, at_once)

    @property
    def all(self) -> Sizes:
        return Sizes().merge(self._parts)

    def split(self) -> tuple[Sizes, Sizes, str]:
        """The half to tune on, the one to judge on, and by what they were made."""
        parts = self._parts
        first, second = Sizes().merge(parts[:2]), Sizes().merge(parts[2:])
        if min(first.files, second.files) >= LEAST_SHARE * (first.files + second.files):
            return first, second, " and ".join(sorted(self.kinds))
        return Sizes().merge(parts[::2]), Sizes().merge(parts[1::2]), "name"


def half(name: bytes) -> int:
    """By a checksum of 32 bits, the same on every machine."""
    # The lowest bit of a CRC is a sum of the name's bits: names with one digit apart would alternate.
    return (crc32(name) * 2654435761 & 0xFFFFFFFF) >> 31


def with_larger(of: Classes) -> Classes:
    """The same and larger files to come: half as many as of the largest class each time the size doubles, the tail of a
    Pareto distribution with exponent 1. A layout for what was seen alone would have one stripe for whatever is larger.
    """
    factor = 2.0 ** np.arange(LARGER_OCTAVES, 0, -1)
    more = (
        of.size_bytes[0] * factor,
        of.writers[0] + 0 * factor,
        of.at_once[0] + 0 * factor,
        of.files[0] / factor,
    )
    return Classes(*(np.r_[new, old] for new, old in zip(more, of, strict=True)))


def rounded_up(size_bytes: float, multiple: int) -> int:
    return math.ceil(size_bytes / multiple) * multiple
