"""Files of which one object alone is too large: no other OST helps, more stripes would. Their owner decides."""

from __future__ import annotations

from math import ceil

import msgspec
import numpy as np

from tarazu.allocate.problem import Array
from tarazu.lustre import LOV_MAX_STRIPE_COUNT
from tarazu.rebalance.datasets import Dataset
from tarazu.rebalance.files import Files, Objects
from tarazu.rebalance.targets import Targets

TOO_LARGE = 2.0
"""Times what all OSTs would need together for the data set."""
MOST = 10
"""Files that are named, of each data set."""
MOST_STRIPES = 160
"""As Lustre gives without large attributes."""


class Wider(msgspec.Struct, frozen=True):
    """One file, and what more stripes would make of its largest object, on OSTs of the middle speed."""

    file: int
    stripe_count: int
    before_s: float
    after_s: float


def wider(files: Files, targets: Targets, dataset: Dataset, part: Objects, moved: Array) -> list[Wider]:
    """Plain files of a data set, those that take longest first. part, moved: as in `moves.Load`."""
    if not dataset.per_day or not len(moved):
        return []
    speed = float(np.median(targets.speed))
    even_s = float(moved.sum() / targets.speed.sum())
    found: dict[int, Wider] = {}
    usable = targets.room > 0
    for at in np.argsort(-moved, kind="stable").tolist():
        file, before_s = int(part.file[at]), float(moved[at] / speed)
        if before_s <= TOO_LARGE * even_s or len(found) >= MOST:
            break
        layout = files.shape(file).layout
        if file in found or len(layout.components) > 1:
            continue
        osts = int((usable & (targets.kind == targets.kind[part.ost[at]])).sum())
        count = layout.components[0].stripe_count
        wanted = ceil(count * before_s / even_s)
        most = min(osts, MOST_STRIPES, LOV_MAX_STRIPE_COUNT)
        chosen = min(most, 1 << max(0, wanted - 1).bit_length())
        if chosen > count:
            found[file] = Wider(file, chosen, before_s, before_s * count / chosen)
    return list(found.values())
