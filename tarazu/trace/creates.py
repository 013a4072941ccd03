"""How much recorded runs create below a directory: in directories that they make there, and elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from tarazu.trace.records import RunRecord

LEAST_S = 1e-3
"""A run lasts so long at least."""


class CreatesBelow(msgspec.Struct):
    """Files and directories made in a second, while the runs ran."""

    moving: dict[int, float] = {}
    """MDT, -1 where it is not known → in directories that were made below, and of these themselves."""
    staying_per_s: float = 0.0
    """In directories that were there before."""
    seconds: float = 0.0
    """Of the runs that created anything below."""


def creates_below(runs: Iterable[RunRecord], keys: Iterable[str]) -> dict[str, CreatesBelow]:
    """`keys`: of directories, as paths from the file system's root, which itself is empty."""
    sums = {key: CreatesBelow({}) for key in keys}
    for run in runs:
        made = {each.key: each for each in run.directories if not each.existed}
        moving: dict[str, dict[int, int]] = {}
        staying: dict[str, int] = {}
        for key, each in made.items():
            parent = key.rpartition("/")[0]
            for above in _above(parent, sums):
                # Itself, where it is not among the creates of another one.
                count = each.creates + (above == parent or parent not in made)
                counts = moving.setdefault(above, {})
                counts[each.mdt] = counts.get(each.mdt, 0) + count
        for file in run.files:
            parent = file.key.rpartition("/")[0]
            for above in () if file.existed else _above(parent, sums):
                if above == parent or parent not in made:
                    staying[above] = staying.get(above, 0) + 1
        for key in {*moving, *staying}:
            below = sums[key]
            below.seconds += max(run.duration_s, LEAST_S)
            below.staying_per_s += staying.get(key, 0)
            for mdt, count in moving.get(key, {}).items():
                below.moving[mdt] = below.moving.get(mdt, 0.0) + count
    for below in sums.values():
        if below.seconds:
            below.staying_per_s /= below.seconds
            below.moving = {mdt: count / below.seconds for mdt, count in below.moving.items()}
    return sums


def _above(key: str, known: Collection[str]) -> Iterator[str]:
    """Which of these a directory is, or lies below."""
    while True:
        if key in known:
            yield key
        if not key:
            return
        key = key.rpartition("/")[0]
