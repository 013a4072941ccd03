"""OSTs as arrays: how fast, how full, which may take objects of which others; and whether their servers are busy."""

from __future__ import annotations

import msgspec
import numpy as np

from tarazu.allocate.eligible import room_bytes, speeds
from tarazu.allocate.problem import Array
from tarazu.config import Weights
from tarazu.errors import BadInput
from tarazu.model import SystemView
from tarazu.ost_state import ROOMY
from tarazu.wire.overview import Overview


class Targets(msgspec.Struct, frozen=True):
    """Arrays of one length, a place for each OST, by index."""

    view: SystemView
    index: Array
    """OST indices, sorted."""
    speed: Array
    """Bytes/s under load; the middle one's where an OST's is not known, what the caller says where none is."""
    known_speed: Array
    """True where it was measured."""
    total: Array
    """Bytes; so are the next two."""
    used: Array
    avail: Array
    """What may be written to it now, its promises left out."""
    room: Array
    """What moving may bring there at most; 0 where nothing may be made."""
    oss: Array
    """Number of its server."""
    kind: Array
    """OSTs of one number take one another's objects: those that are in the same pools."""

    def places(self, osts: Array) -> Array:
        """OST indices → places. Raises BadInput for an OST that is not known."""
        positions = np.searchsorted(self.index, osts).clip(0, len(self.index) - 1)
        if len(osts) and not np.array_equal(self.index[positions], osts):
            unknown = sorted(set(np.asarray(osts)[self.index[positions] != osts].tolist()))
            raise BadInput(
                f"file system {self.view.fs_name}", "OSTs that mdsd knows", f"layouts with OST {unknown[:8]}"
            )
        return positions


def targets(
    view: SystemView,
    *,
    most_full: float = ROOMY,
    own_pools: frozenset[str] = frozenset(),
    pool: str = "",
    usual_bytes_per_s: float = 500e6,
) -> Targets:
    """own_pools: pools that say nothing of an OST's kind, such as the one of good OSTs that tarazu keeps. Where an OST
    of a kind is in one, those outside take nothing: they have a problem, and Lustre refuses them to files of that pool.
    pool: objects are moved to its OSTs only; BadInput where it has none. usual_bytes_per_s: where no speed is known.
    """
    osts = view.osts
    if not osts:
        raise BadInput("mdsd", "OSTs in its view", "none")
    if pool and not any(pool in o.pools for o in osts):
        raise BadInput(f"pool {pool!r}", f"a pool of {view.fs_name} with OSTs in it", "none")
    total = np.array([o.total_bytes for o in osts], np.int64)
    used = np.array([o.used_bytes for o in osts], np.int64)
    avail = np.array([max(0, o.avail_bytes - o.promised_bytes) for o in osts], np.int64)
    fair = np.array([room_bytes(o, Weights()) for o in osts], np.int64)
    below = (total * most_full).astype(np.int64) - used - np.array([o.promised_bytes for o in osts], np.int64)
    takes = np.array(
        [o.usable and not (o.degraded or o.sick) and (not pool or pool in o.pools) for o in osts]
    )
    kept = {frozenset(o.pools) - own_pools for o in osts if own_pools.intersection(o.pools)}
    takes &= [
        bool(own_pools.intersection(o.pools)) or frozenset(o.pools) - own_pools not in kept for o in osts
    ]
    servers: dict[str, int] = {}
    kinds: dict[frozenset[str], int] = {}
    known = np.array([bool(o.write_bytes_per_s) for o in osts])
    return Targets(
        view,
        np.array([o.index for o in osts], np.int64),
        np.array(speeds(osts), float) if known.any() else np.full(len(osts), usual_bytes_per_s),
        known,
        total,
        used,
        avail,
        np.where(takes, np.minimum(fair, below), 0).clip(0),
        np.array([servers.setdefault(o.oss, len(servers)) for o in osts], np.int64),
        np.array(
            [0 if pool else kinds.setdefault(frozenset(o.pools) - own_pools, len(kinds)) for o in osts],
            np.int64,
        ),
    )


MOVING_SHARE = 0.3
"""Of what all OSTs can move: above, they are busy."""


class ServersBusy(msgspec.Struct, frozen=True):
    busy: bool
    moving_bytes_per_s: float
    can_bytes_per_s: float
    """Of the OSTs whose speed is known; 0: of none."""
    osts: int
    hot: tuple[str, ...]
    """Servers whose CPU or memory is loaded."""


def busy(now: Overview, fs_name: str = "") -> ServersBusy:
    """Of one file system, or of all."""
    osts = [o for o in now.targets if not fs_name or o.fs_name == fs_name]
    known = [o for o in osts if o.speed_bytes_per_s]
    moving = sum((o.writing_bytes_per_s or 0) + (o.reading_bytes_per_s or 0) for o in known)
    can = sum(o.speed_bytes_per_s or 0 for o in known)
    serving = {o.oss for o in osts}
    hot = tuple(s.name for s in now.servers if s.name in serving and s.hot)
    return ServersBusy(bool(hot) or moving > MOVING_SHARE * can, moving, can, len(osts), hot)
