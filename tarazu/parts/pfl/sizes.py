"""How large a site's files are, how many processes write each, and how many are written at one time: classes of files
that differ little, in bounded memory however many there are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

Array = np.ndarray[Any, Any]

PER_OCTAVE = 8
"""Classes of sizes between a power of two, which belongs to those below it, and the next."""
LARGEST_BYTES = 2**63 - 1
FOLDS = 8
"""Of each half, by what its files belong to: how far its cost rests on one run or directory."""
LEAST_SHARE = 0.2
"""Of the files, in a half: with less the halves are made by name."""
LARGER_OCTAVES, LARGER_WEIGHT = 6, 0.05
"""How far sizes are thought to go on beyond the largest one, and what that weighs: our choice."""
ALIKE_WEIGHT = 0.4
"""Of files like those that were seen: our choice."""
BY_BYTES = 0.5
"""Half of the cost is about files, half about bytes: our choice. By files alone large ones, by bytes (or seconds) alone
small ones hardly count."""


class Classes(NamedTuple):
    """Arrays with an entry for each class, the largest files first."""

    size_bytes: Array
    """Mean of its files."""
    writers: Array
    """Processes that write one file."""
    at_once: Array
    """Files that are written at one time, each by processes of its own."""
    files: Array
    weight: Array
    """Share of each in the cost of all; together 1."""


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

    def classes(self, by_bytes: float = BY_BYTES) -> Classes:
        """by_bytes: how much of a class's weight is its share of the bytes; the rest is its share of the files."""
        rows = [(s / n, max(1, round(w / n)), max(1, round(a / n)), n) for n, s, w, a in self._sums.values()]
        size, writers, at_once, files = np.array(sorted(rows, reverse=True), float).reshape(-1, 4).T
        held = files * size
        share = by_bytes if held.sum() else 0.0
        weight = (1 - share) * files / max(1.0, files.sum()) + share * held / max(1.0, held.sum())
        return Classes(size, writers, at_once, files, weight)


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
        self._parts = [[Sizes() for _ in range(FOLDS)] for _ in range(4)]
        """By twice the half of what a file belongs to, and the half of its own name; of each the folds."""
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
        of_group = hashed(group)
        part = self._parts[2 * (of_group >> 31) + half(name)]
        part[(of_group >> 16) % FOLDS].add(size_bytes, writers, at_once)

    @property
    def all(self) -> Sizes:
        return Sizes().merge(fold for part in self._parts for fold in part)

    def split(self, by_name: bool = False, least_share: float = LEAST_SHARE) -> tuple[Half, Half, str]:
        """The half to tune on, the one to judge on, and by what they were made.

        least_share: of all files, in a half that is not made by name.
        """
        parts = self._parts
        first, second = Half(parts[:2]), Half(parts[2:])
        if not by_name and min(first.files, second.files) >= least_share * (first.files + second.files):
            return first, second, " and ".join(sorted(self.kinds))
        return Half(parts[::2]), Half(parts[1::2]), "name"


class Half(Sizes):
    """One of two halves."""

    def __init__(self, parts: Sequence[Sequence[Sizes]]) -> None:
        super().__init__()
        self.folds = tuple(Sizes().merge(of) for of in zip(*parts, strict=True))
        """Its files in parts; what belongs together is in one."""
        self.merge(self.folds)


def hashed(name: bytes) -> int:
    """A checksum of 32 bits, the same on every machine."""
    # The lowest bit of a CRC is a sum of the name's bits: names with one digit apart would alternate.
    return crc32(name) * 2654435761 & 0xFFFFFFFF


def half(name: bytes) -> int:
    return hashed(name) >> 31


def expected(of: Classes) -> Classes:
    """What files to come may be like, to be tuned on: those that were seen; the same twice and half as large, and four
    times and a quarter as many at one time; and larger ones, twice, four times as large as the largest and so on.

    Without the first a layout fits accidents (48 files on 35 OSTs), without the second it has any stripe count beyond
    the largest file. Larger ones are taken for files that lie alone, written by as many processes as any that was seen.
    """
    return _merged(_joined([alike(of), larger(of)]))


def alike(of: Classes) -> Classes:
    """Those that were seen, and others like them."""
    columns = [of._replace(weight=of.weight * (1 - LARGER_WEIGHT - ALIKE_WEIGHT))]
    part, none = of.weight * ALIKE_WEIGHT / 4, 0 * of.files
    for factor in (0.5, 2.0):
        columns.append(of._replace(size_bytes=of.size_bytes * factor, files=none, weight=part))
    for factor in (0.25, 4.0):
        many = np.where(of.at_once > 1, np.maximum(1, np.round(of.at_once * factor)), 1)
        columns.append(of._replace(at_once=many, files=none, weight=part))
    return _joined(columns)


def larger(of: Classes) -> Classes:
    """Those larger than any that was seen, the largest first."""
    one = np.ones(LARGER_OCTAVES)
    sizes = of.size_bytes[0] * 2.0 ** np.arange(LARGER_OCTAVES, 0, -1)
    weight = one * LARGER_WEIGHT / LARGER_OCTAVES
    return Classes(sizes, of.writers.max() * one, one, 0 * one, weight)


def _joined(several: Sequence[Classes]) -> Classes:
    return Classes(*(np.concatenate(c) for c in zip(*several, strict=True)))


def _merged(of: Classes) -> Classes:
    """Classes that differ little as one."""
    size = np.array([size_class(round(s)) for s in of.size_bytes.tolist()])
    keys = np.vstack([size, np.round(2 * np.log2(of.writers)), np.round(2 * np.log2(of.at_once))])
    _, first, at = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    at = at.reshape(-1)
    weight = np.bincount(at, of.weight)

    def mean(values: Array) -> Array:
        return np.where(
            weight > 0, np.bincount(at, values * of.weight) / np.maximum(weight, 1e-300), values[first]
        )

    found = Classes(
        mean(of.size_bytes), mean(of.writers), np.round(mean(of.at_once)), np.bincount(at, of.files), weight
    )
    order = np.argsort(-found.size_bytes, kind="stable")
    return Classes(*(column[order] for column in found))


def rounded_up(size_bytes: float, multiple: int) -> int:
    return math.ceil(size_bytes / multiple) * multiple
