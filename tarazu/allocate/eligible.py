"""Which OSTs may serve a component: pools, state, reserve. Says "never" or "later" when too few can."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tarazu import ranges
from tarazu.config import Weights
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import Component, Ost, SystemView
from tarazu.ost_state import SICK
from tarazu.units import human_bytes

MOST_NAMED = 200
"""Characters of a list of OSTs in a message."""
ROOM = 2.0
"""Shares that must fit: the forecast may be wrong."""


def why_not(ost: Ost) -> str:
    """mdsd's verdict on an OST that cannot be used; empty for one that can."""
    return "" if ost.usable and ost.files_free > 0 else str(ost.judged)


def usable_osts(view: SystemView) -> tuple[Ost, ...]:
    """OSTs on which an object may be created now; degraded ones are among them (policies take them last)."""
    return tuple(o for o in view.osts if o.usable and o.files_free > 0)


def in_pool(osts: Sequence[Ost], pool: str) -> tuple[Ost, ...]:
    """Those of `osts` that are in `pool`; all when it is empty."""
    return tuple(o for o in osts if not pool or pool in o.pools)


def room_bytes(ost: Ost, weights: Weights) -> int:
    """Bytes that may still be placed on an OST: available, less promises, less the reserve; at least 0."""
    return max(0, ost.avail_bytes - ost.promised_bytes - int(ost.total_bytes * weights.reserve_share))


def unfit(osts: Sequence[Ost], weights: Weights, share_bytes: float) -> dict[str, int]:
    """How many of `osts` ("") and of each pool had better not take an even share of `share_bytes`: degraded, without
    room for it, or at less than half of its peers' speed (of the middle one's, where none was compared with peers).
    """
    pools = {"", *(pool for ost in osts for pool in ost.pools)}
    counts: dict[str, int] = {}
    for pool in sorted(pools):
        inside = in_pool(osts, pool)
        counts[pool] = sum(
            o.degraded or room_bytes(o, weights) < ROOM * share_bytes or speed < SICK
            for o, speed in zip(inside, relative_speeds(inside))
        )
    return counts


def distinct_needed(component: Component, osts: int) -> int:
    """Distinct OSTs that a component needs where there are `osts`; overstriping does with fewer than stripes."""
    if component.pattern == "overstriped":
        return min(component.stripe_count, max(1, osts))
    return component.stripe_count


def candidates(view: SystemView, component: Component, largest_bytes: int = 0) -> tuple[Ost, ...]:
    """OSTs that may serve `component`, whose largest object has `largest_bytes`.

    Raises InfeasibleRequest when file system or pool can never serve it, InsufficientResources when they
    could if the OSTs named in the message were usable.
    """
    where = f"pool {component.pool!r} of {view.fs_name}" if component.pool else f"file system {view.fs_name}"
    existing = in_pool(view.osts, component.pool)
    large_enough = [o for o in existing if o.total_bytes >= largest_bytes]
    needed = distinct_needed(component, len(large_enough))
    if len(existing) < needed:
        raise InfeasibleRequest(
            f"{where}: expected {needed} OSTs or more for one component, found {len(existing)}"
        )
    if len(large_enough) < needed:
        raise InfeasibleRequest(
            f"{where}: expected {needed} OSTs of {human_bytes(largest_bytes)} or more, found {len(large_enough)}"
        )
    usable = in_pool(usable_osts(view), component.pool)
    needed = distinct_needed(component, len(usable))
    if len(usable) < needed:
        out = ", ".join(f"{o.index} ({why_not(o)})" for o in existing if why_not(o))
        raise InsufficientResources(
            f"{where}: expected {needed} usable OSTs for one component, found {len(usable)}; "
            f"not usable: {out[:MOST_NAMED]}"
        )
    return usable


def too_little_space(
    where: str, stripes: int, weight_bytes: int, fitting: int, short: Sequence[int] = ()
) -> InsufficientResources:
    """The error for objects that no longer fit into what is available and not promised.

    short: OSTs without room for even one of them.
    """
    return InsufficientResources(
        f"{where}: expected room for {stripes} objects of {human_bytes(weight_bytes)} on distinct OSTs, "
        f"found room for {fitting} after reserve and promises"
        + (f"; no room at all on OST {ranges.fold(sorted(short))[:MOST_NAMED]}" if short else "")
    )


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
    throughputs = speeds(osts)
    middle = median(throughputs) if throughputs else 1.0
    return [speed / middle for speed in throughputs]


def speed_of(view: SystemView) -> dict[int, float]:
    """`speeds` of all OSTs of a view by index, also of those that may not be used now."""
    return dict(zip((o.index for o in view.osts), speeds(view.osts)))
