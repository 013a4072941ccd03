"""A few small objects that are let through to a sick OST on purpose: only I/Os there can say that it is well again.

Each allocation may have some while nothing else is promised on that OST: small files, or first components, which a
disk as slow as it was seen would have written after `MOST_S` all together.
"""

from __future__ import annotations

import numpy as np

from tarazu.allocate.draft import Draft
from tarazu.allocate.eligible import room_bytes
from tarazu.config import Weights
from tarazu.units import KIB, MIB

OBJECTS = 4
LEAST_BYTES, MOST_BYTES = 256 * KIB, 4 * MIB
"""Of an object: less says nothing of a disk that is held by bytes per second."""
MOST_S = 10.0


def let_through(draft: Draft, weights: Weights) -> None:
    """Move some objects of `draft` to the sick OSTs that have none."""
    wanted = draft.problem
    for position, ost in enumerate(wanted.osts):
        if not ost.sick or ost.degraded or ost.promised_bytes or draft.placed[position]:
            continue
        left_bytes = min((ost.write_bytes_per_s or 0.0) * MOST_S, room_bytes(ost, weights))
        objects = OBJECTS
        for group in wanted.groups:
            if group.weights.shape[1] != 1 or not wanted.eligible[group.eligible][position]:
                continue
            sizes = group.weights[:, 0]
            fit = (sizes >= LEAST_BYTES) & (sizes <= MOST_BYTES)
            # Not those that another trial has.
            fit &= np.array([not wanted.osts[p].sick for p in group.osts[:, 0].tolist()])
            for member in np.flatnonzero(fit)[np.argsort(-sizes[fit], kind="stable")].tolist():
                size = int(sizes[member])
                if objects and size <= left_bytes:
                    draft.placed[group.osts[member, 0]] -= size
                    draft.placed[position] += size
                    group.osts[member, 0] = position
                    left_bytes, objects = left_bytes - size, objects - 1
