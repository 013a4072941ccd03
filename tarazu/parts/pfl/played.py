"""Layouts under Lustre's own allocator, as a model of it places them, beside the allocator's bound: how long files that
are written at one time take on OSTs that are alike. What a cost by components leaves out is in it: files of several
sizes side by side, objects of several sizes on one OST, and shared files whose parts are written all at once.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from tarazu.allocate import lustres_own, timing
from tarazu.config import Weights
from tarazu.model import CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.parts.pfl.cost import Target
from tarazu.parts.pfl.sizes import Classes

WAVES, FILES = 4, 24
"""Drawn, and files in each: by their bytes, as a look at a file system in use finds them being written."""
MOST_WRITERS = 16
"""Of a file: what an OST loses by hundreds of streams was never measured."""
MOST_CELLS = 200_000
"""Objects of a wave times OSTs: more takes too long."""
SEED = 86


class Played(msgspec.Struct, frozen=True):
    """Sums over the waves."""

    lustre_s: float
    """Until the last byte is written where Lustre's own allocator places the files."""
    bound_s: float
    """What no placement beats."""


def played(of: Classes, target: Target, layouts: Mapping[str, Layout]) -> dict[str, Played]:
    """Of each layout; those with too many objects are left out."""
    weights, view = Weights(), _alike(target)
    share = of.files * of.size_bytes
    if not share.sum():
        return {}
    random = np.random.default_rng(SEED)
    drawn = [random.choice(len(share), FILES, p=share / share.sum()) for _ in range(WAVES)]
    found: dict[str, Played] = {}
    for name, layout in layouts.items():
        objects = FILES * sum(min(c.stripe_count, target.osts) for c in layout.components)
        if objects * target.osts > MOST_CELLS or any(c.pattern == "mdt" for c in layout.components):
            continue
        fits = _fitted(layout, target)
        lustre = bound = 0.0
        for wave in drawn:
            requests = [
                CreateRequest(
                    max(1, int(of.size_bytes[i])), fits, writers=int(min(of.writers[i], MOST_WRITERS))
                )
                for i in wave.tolist()
            ]
            lustre += lustres_own.time_s(view, requests, [0] * len(requests), weights)
            bound += timing.bound_s(view, requests, weights)
        found[name] = Played(lustre, bound)
    return found


def _alike(target: Target) -> SystemView:
    room = max(target.room_bytes, 1 << 50)
    osts = tuple(
        Ost(i, "oss", room, room, room, peak_bytes_per_s=target.ost_bytes_per_s) for i in range(target.osts)
    )
    return SystemView("", 0.0, osts, (Oss("oss"),))


def _fitted(layout: Layout, target: Target) -> Layout:
    """No more stripes than OSTs, and no pools; a component that extends itself as one that does not."""
    return msgspec.structs.replace(
        layout,
        components=tuple(
            msgspec.structs.replace(
                c, stripe_count=min(c.stripe_count, target.osts), pattern="raid0", pool="", extension_bytes=0
            )
            for c in layout.components
        ),
    )
