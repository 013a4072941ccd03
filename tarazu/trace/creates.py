"""How much recorded runs create below a directory: in directories that they make there, and elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import msgspec

from tarazu.trace.records import RunRecord

LEAST_S = 1e-3
"""A run lasts so long at least."""


class CreatesBelow(msgspec.Struct):
    """Files made in a second, while the runs ran."""

    moving_per_s: float = 0.0
    """In directories that a run made below, and these themselves: those in which one run alone has created files."""
    staying_per_s: float = 0.0
    """In directories that were there before."""
    seconds: float = 0.0
    """Of the runs that created anything below."""


def creates_below(runs: Iterable[RunRecord], keys: Iterable[str]) -> dict[str, CreatesBelow]:
    """`keys`: of directories, as paths from the file system's root, which itself is empty."""
    sums = {key: CreatesBelow() for key in keys}
    files: Counter[str] = Counter()
    in_runs: Counter[str] = Counter()
    for run in runs:
        of_run = Counter(file.key.rpartition("/")[0] for file in run.files if not file.existed)
        files.update(of_run)
        in_runs.update(of_run.keys())
        for key in {above for parent in of_run for above in _above(parent, sums)}:
            sums[key].seconds += max(run.duration_s, LEAST_S)
    for parent, count in files.items():
        for above in _above(parent, sums):
            below = sums[above]
            if above == parent or in_runs[parent] > 1:
                below.staying_per_s += count / below.seconds
            else:
                below.moving_per_s += (count + 1) / below.seconds
    return sums


def _above(key: str, known: Collection[str]) -> Iterator[str]:
    """Which of these a directory is, or lies below."""
    while True:
        if key in known:
            yield key
        if not key:
            return
        key = key.rpartition("/")[0]
