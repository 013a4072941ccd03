"""How much recorded runs create below a directory: in directories that they make there, and elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

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
        for key, below in sums.items():
            made = [each for each in run.directories if not each.existed and each.key.startswith(f"{key}/")]
            new = {each.key for each in made}
            moving: dict[int, int] = {}
            for each in made:
                # Itself, where it is not among the creates of one of the others.
                count = each.creates + (each.key.rpartition("/")[0] not in new)
                moving[each.mdt] = moving.get(each.mdt, 0) + count
            stay = sum(
                not file.existed and file.key.startswith(f"{key}/") and file.key.rpartition("/")[0] not in new
                for file in run.files
            )
            if moving or stay:
                below.seconds += max(run.duration_s, LEAST_S)
                below.staying_per_s += stay
                for mdt, count in moving.items():
                    below.moving[mdt] = below.moving.get(mdt, 0.0) + count
    for below in sums.values():
        if below.seconds:
            below.staying_per_s /= below.seconds
            below.moving = {mdt: count / below.seconds for mdt, count in below.moving.items()}
    return sums
