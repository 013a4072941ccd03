"""What no moving of these files can beat."""

from __future__ import annotations

import msgspec
import numpy as np

from tarazu.allocate import bounds
from tarazu.allocate.problem import Array, build
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import CreateRequest, Layout
from tarazu.rebalance.datasets import Dataset
from tarazu.rebalance.files import Files
from tarazu.rebalance.targets import Targets

MOST_FILES = 5000
"""Of more files the bound is what their bytes, and the largest object, ask for."""


def lowest_s(
    files: Files, sizes: Array, targets: Targets, dataset: Dataset, moved: Array, exact: bool
) -> float:
    """Seconds below which no placement moves the dataset, its layouts unchanged; sizes: of all files; moved: bytes of
    each of its objects; exact: also by the layouts of the files, where they are not too many.

    Space, pools and the state of OSTs are left out: each could only make it more.
    """
    rate = targets.speed
    least = max(float(moved.sum() / rate.sum()), float(moved.max(initial=0.0) / rate.max()))
    if not exact or not 0 < len(dataset.files) <= MOST_FILES:
        return least
    view = msgspec.structs.replace(
        targets.view,
        osts=tuple(
            msgspec.structs.replace(
                o, active=True, no_create=False, readonly=False, stale=False, health="", files_free=2**32
            )
            for o in targets.view.osts
        ),
    )
    requests = []
    for file, times in zip(dataset.files.tolist(), dataset.times.tolist(), strict=True):
        shape = files.shape(file)
        anywhere = tuple(msgspec.structs.replace(c, pool="") for c in shape.layout)
        size = int(sizes[file] * times)
        if size:
            requests.append(CreateRequest(size, Layout(anywhere, shape.layout.composite)))
    try:
        return (
            max(least, bounds.lowest_level(build(view, requests), rate, np.zeros(len(rate))))
            if requests
            else least
        )
    except (InfeasibleRequest, InsufficientResources):
        return least
