"""How fast each OST writes, as far as that is known: in bytes per second, and beside its peers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tarazu.model import Ost, SystemView


def speeds(osts: Sequence[Ost]) -> list[float]:
    """Write throughput of each OST in bytes/s; where unknown, the median of the known ones, or 1."""
    known = [o.write_bytes_per_s for o in osts if o.write_bytes_per_s]
    middle = median(known) if known else 1.0
    return [o.write_bytes_per_s or middle for o in osts]


def relative_speeds(osts: Sequence[Ost]) -> list[float]:
    """Speed of each OST over that of its peers, 1 where nothing was seen: flash is no reason to leave disks out.

    Where no OST was compared with peers, throughputs over their median.
    """
    if any(o.relative_speed is not None for o in osts):
        return [o.relative_speed or 1.0 for o in osts]
    found = speeds(osts)
    middle = median(found) if found else 1.0
    return [speed / middle for speed in found]


def speed_of(view: SystemView) -> dict[int, float]:
    """`speeds` of all OSTs of a view by index, also of those that may not be used now."""
    return dict(zip((o.index for o in view.osts), speeds(view.osts)))
