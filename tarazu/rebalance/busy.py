"""Whether the servers have better things to do than moving files."""

from __future__ import annotations

import msgspec

from tarazu.wire.overview import Overview

MOVING_SHARE = 0.3
"""Of what all OSTs can move: above, they are busy."""
HOT_LOAD = 0.9
"""CPU or memory of a server, 0-1."""


class Busy(msgspec.Struct, frozen=True):
    busy: bool
    moving_bytes_per_s: float
    can_bytes_per_s: float
    """Of the OSTs whose speed is known; 0: of none."""
    osts: int
    hot: tuple[str, ...]
    """Servers whose CPU or memory is loaded."""


def busy(now: Overview, fs_name: str = "") -> Busy:
    """Of one file system, or of all."""
    osts = [o for o in now.targets if not fs_name or o.fs_name == fs_name]
    known = [o for o in osts if o.speed_bytes_per_s]
    moving = sum((o.writing_bytes_per_s or 0) + (o.reading_bytes_per_s or 0) for o in known)
    can = sum(o.speed_bytes_per_s or 0 for o in known)
    serving = {o.oss for o in osts}
    hot = tuple(
        s.name
        for s in now.servers
        if s.name in serving and not s.stale and max(s.cpu_load, s.memory_load) >= HOT_LOAD
    )
    return Busy(bool(hot) or moving > MOVING_SHARE * can, moving, can, len(osts), hot)
