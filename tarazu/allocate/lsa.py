"""Lustre's standard allocator (LSA) as a model: what `lod_qos.c` and `lu_tgt_descs.c` of 2.16 and 2.17 do on the
MDS. (2.15 weighs available space times free inodes, beside which its penalties are nothing, and a pool by all OSTs.)

Round robin over an order that interleaves the servers while available space is even (`qos_threshold_rr`),
else weighted random on available space with penalties for recently used OSTs and servers (`qos_prio_free`).
Integer arithmetic as in the kernel. One creator; objects are always precreated; FLR and EC are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np

from tarazu.allocate.problem import Array
from tarazu.errors import InsufficientResources
from tarazu.model import Ost, SystemView

WIDE = (256 - 90 * 256 // 100) / 256
"""What `qos_prio_free` leaves for penalties by default."""
RESEED_MULTIPLE = 30
RESEED_MINIMUM = 2000
MAXAGE_S = 5
"""`qos_maxage`: age at which the MDS asks the OSTs for their space again."""
LOOK_MAXAGES = 2
"""So many times `qos_maxage` after the last time it computes mode and penalties anew (`lod_qos_statfs_update`)."""
DEGRADED_PASS = 2
"""Round robin tries three times: unused by other components, any, degraded ones too."""


@dataclass(slots=True)
class _RoundRobin:
    """Order and position of the round robin of one pool, or of all OSTs."""

    order: list[int]
    start: int = 0
    offset: int = 0
    left: int = 0
    """Allocations until the start is drawn again."""


class Used(NamedTuple):
    """What an OST's or a server's last objects have left behind."""

    penalty: int
    """In units of 256 bytes."""
    last_used_s: float


class Lsa:
    """The allocator's state: `create` once per component, in the order in which the MDS instantiates them.

    view: `osses` in the order in which their OSTs connected decides the round-robin order; servers that are
    not listed follow in order of their first OST. threshold_rr, prio_free, maxage_s: the tunables, in percent and
    seconds.
    """

    def __init__(
        self,
        view: SystemView,
        seed: int = 0,
        *,
        threshold_rr: int = 17,
        prio_free: int = 90,
        maxage_s: int = MAXAGE_S,
    ) -> None:
        self._random = Random(seed)
        self._threshold = threshold_rr * 256 // 100
        self._wide = 256 - prio_free * 256 // 100
        self._maxage_s = maxage_s
        self._now = 0.0
        self.index = [o.index for o in view.osts]
        self._pools = [set(o.pools) for o in view.osts]
        self._creatable = np.array([o.usable and o.files_free > 0 for o in view.osts])
        self._degraded = np.array([o.degraded for o in view.osts])
        self._available = np.array([o.avail_bytes for o in view.osts], np.int64)
        self._reserved = np.array([max(1 << 20, o.total_bytes >> 10) for o in view.osts], np.int64)
        self._servers = _server_order(view)
        names = {name: i for i, name in enumerate(self._servers)}
        self._server = np.array([names[o.oss] for o in view.osts], np.int64)
        self._members_of: dict[str, Array] = {}
        self._rings: dict[str, _RoundRobin] = {}
        osts, servers = len(view.osts), len(names)
        self._penalty = np.zeros(osts, np.int64)
        self._per_object = np.zeros(osts, np.int64)
        self._last_used = np.zeros(osts)
        self._server_penalty = np.zeros(servers, np.int64)
        self._server_per_object = np.zeros(servers, np.int64)
        self._server_last_used = np.zeros(servers)
        self._active_servers = servers
        self._dirty, self._reset, self._same_space = True, True, False
        self._changed, self._looked_s = False, 0.0

    def create(
        self, stripe_count: int, pool: str = "", used: frozenset[int] = frozenset()
    ) -> tuple[int, ...]:
        """OST indices of one new component; fewer than `stripe_count` where Lustre would make do with fewer.

        `used`: OSTs of the file's other components, avoided by round robin while it can.
        Raises InsufficientResources where Lustre says ENOSPC.
        """
        members = self._members(pool)
        chosen = self._weighted(members, stripe_count, pool) or self._round_robin(
            members, stripe_count, pool, used
        )
        if not chosen:
            raise InsufficientResources(
                f"LSA: expected an OST with space{' in ' + pool if pool else ''}, found none"
            )
        return tuple(self.index[i] for i in chosen)

    def start_at(self, ost: int, pool: str = "", offset: int = 0) -> None:
        """Let the next round-robin component begin at that OST, as if the random start had been this.

        offset: what precession has added in the rounds so far; it decides when the next round ends.
        """
        ring = self._ring(self._members(pool), pool)
        place = ring.order.index(self.index.index(ost))
        ring.start, ring.offset = (place - offset) % len(ring.order) - 1, offset
        ring.left = self._reseed(len(ring.order))

    def refresh(
        self,
        available: Mapping[int, int] | Array,
        seconds: float = LOOK_MAXAGES * MAXAGE_S,
        creatable: Array | None = None,
    ) -> None:
        """New `kbytesavail` (in bytes, by OST index, or of all in the view's order), `seconds` after the last one:
        weights follow it at once, mode and penalties at each 2 x `qos_maxage`. `creatable`: on which OSTs objects may
        be created from now on.
        """
        self._now += seconds
        if creatable is not None and (creatable != self._creatable).any():
            self._creatable = creatable.copy()
            self._dirty = True
        if isinstance(available, np.ndarray):
            new = available.astype(np.int64)
        else:
            new = np.array([available.get(i, int(b)) for i, b in zip(self.index, self._available)], np.int64)
        if (new != self._available).any():
            self._available, self._changed = new, True
        if self._now - self._looked_s >= LOOK_MAXAGES * self._maxage_s:
            self._dirty = self._dirty or self._changed
            self._changed, self._looked_s = False, self._now

    def create_from(self, ost: int, stripe_count: int, pool: str = "") -> tuple[int, ...]:
        """OST indices of a component with a start hint: from that OST on by index (`lod_alloc_specific`); as `create`
        where it cannot be there.
        """
        members = self._members(pool)
        usable = self._usable()
        indices = [self.index[i] for i in members]
        if ost not in indices or not usable[members[indices.index(ost)]]:
            return self.create(stripe_count, pool)
        first = indices.index(ost)
        chosen = [i for i in np.roll(members, -first).tolist() if usable[i]][:stripe_count]
        return tuple(self.index[i] for i in chosen)

    def take_over(
        self, osts: Mapping[int, Used], servers: Mapping[str, Used], now_s: float, *, weighing: bool = True
    ) -> None:
        """Go on from an MDS's own penalties, of OSTs by index and of servers by name, at that time.

        weighing: it weighed at its last creation; penalties of before a round robin do not outlive it.
        """
        self._now, self._dirty, self._reset = now_s, True, not weighing
        self._looked_s = now_s
        for i, index in enumerate(self.index):
            if index in osts:
                self._penalty[i], self._last_used[i] = osts[index]
        for s, name in enumerate(self._servers):
            if name in servers:
                self._server_penalty[s], self._server_last_used[s] = servers[name]

    def weights(self, pool: str = "") -> dict[int, int]:
        """Weight of each OST that the next component could get, by index, in units of 256 bytes; all 0: the first one.

        They count in weighted mode only.
        """
        members = self._members(pool)
        if pool:
            self._pool_penalties(members)
        else:
            self._penalties()
        candidates = self._candidates(members)
        indices = [self.index[i] for i in candidates.tolist()]
        return dict(zip(indices, self._weights()[candidates].tolist(), strict=True))

    def per_object(self) -> tuple[dict[int, int], dict[str, int]]:
        """What one object adds to the penalty of an OST, by index, and of a server, as computed last."""
        return (
            dict(zip(self.index, self._per_object.tolist(), strict=True)),
            dict(zip(self._servers, self._server_per_object.tolist(), strict=True)),
        )

    @property
    def round_robin(self) -> bool:
        """True while space counts as even."""
        return self._same_space

    def _members(self, pool: str) -> Array:
        if pool not in self._members_of:
            chosen = [i for i, pools in enumerate(self._pools) if not pool or pool in pools]
            self._members_of[pool] = np.array(chosen, np.int64)
        return self._members_of[pool]

    def _usable(self) -> Array:
        usable: Array = self._creatable & (self._available > self._reserved)
        return usable

    @staticmethod
    def _reseed(osts: int) -> int:
        return (RESEED_MINIMUM // max(1, osts) + RESEED_MULTIPLE) * max(1, osts)

    def _ring(self, members: Array, pool: str) -> _RoundRobin:
        ring = self._rings.get(pool)
        if ring is None:
            ring = self._rings[pool] = _RoundRobin(_interleaved(members.tolist(), self._server.tolist()))
        return ring

    def _round_robin(self, members: Array, stripe_count: int, pool: str, used: frozenset[int]) -> list[int]:
        ring = self._ring(members, pool)
        count = len(ring.order)
        if not count:
            return []
        ring.left -= 1
        if ring.left <= 0:
            ring.start = self._random.randrange(count)
            ring.left = self._reseed(count)
        elif ring.start >= count:
            ring.start -= count
            if stripe_count > 1 and count % stripe_count != 1:
                ring.offset += 1
        usable = self._usable()
        chosen: list[int] = []
        for attempt in range(DEGRADED_PASS + 1):
            position = 0
            for i in range(count):
                if len(chosen) >= stripe_count:
                    break
                if attempt < DEGRADED_PASS or i == 0:
                    ring.start += 1
                    position = ring.start + ring.offset
                else:
                    position += 1
                ost = ring.order[position % count]
                if not usable[ost] or ost in chosen:
                    continue
                if self._degraded[ost] and attempt < DEGRADED_PASS:
                    continue
                if attempt == 0 and self.index[ost] in used:
                    continue
                chosen.append(ost)
            if len(chosen) >= stripe_count:
                break
        return chosen

    def _weighted(self, members: Array, stripe_count: int, pool: str) -> list[int]:
        """Empty when round robin is to be used instead."""
        if self._threshold >= 256 or (not self._dirty and self._same_space and not pool):
            return []
        same_space = self._pool_penalties(members) if pool else self._penalties()
        if same_space:
            return []
        candidates = self._candidates(members)
        if len(candidates) < stripe_count:
            return []
        chosen: list[int] = []
        while len(chosen) < stripe_count:
            running = np.cumsum(self._weights()[candidates])
            total = int(running[-1])
            drawn = self._random.randrange(total) if total else 0
            place = int(np.searchsorted(running, drawn, side="left"))
            chosen.append(int(candidates[place]))
            candidates = np.delete(candidates, place)
            self._use(chosen[-1])
        return chosen

    def _candidates(self, members: Array) -> Array:
        """Those that may be drawn."""
        drawn: Array = members[self._usable()[members] & ~self._degraded[members]]
        return drawn

    def _weights(self) -> Array:
        weights: Array = (self._available >> 8) - self._penalty - self._server_penalty[self._server]
        return np.maximum(weights, 0)

    def _penalties(self) -> bool:
        """Penalties per object after the space changed; True when the space counts as even."""
        if not self._dirty:
            return self._same_space
        usable = self._creatable
        active = int(np.count_nonzero(usable))
        if active < 2:
            return True
        space = np.where(usable, self._available >> 8, 0)
        counted = usable & (space > 0)
        if not counted.any():
            return True
        per_server = np.bincount(self._server, space, len(self._servers)).astype(np.int64)
        self._active_servers = int(np.count_nonzero(per_server))
        targets = np.bincount(self._server, minlength=len(self._servers))
        self._per_object[counted] = (self._wide * space[counted] >> 9) // (active - 1)
        self._age(self._penalty, self._last_used, counted, self._reset)
        every = np.ones(len(self._servers), bool)
        self._age(self._server_penalty, self._server_last_used, every, self._reset)
        others = self._active_servers - 1
        if others < 1:
            # A single server cannot be penalised against others, so its OSTs are twice.
            others = 1
            self._per_object[usable] <<= 1
        self._server_per_object = ((self._wide * per_server >> 8) // (targets * others)) >> 1
        self._same_space = _even(space[counted], self._threshold)
        self._reset = self._same_space
        self._dirty = False
        return self._same_space

    def _age(self, penalty: Array, last_used: Array, which: Array, reset: bool) -> None:
        """Penalties halve with every 8 x `qos_maxage` without use, and vanish in round-robin mode."""
        age = (self._now - last_used).astype(np.int64) >> 3
        gone = which & (reset | (age > 32 * self._maxage_s))
        halved = which & ~gone & (age > self._maxage_s)
        penalty[gone] = 0
        penalty[halved] >>= np.minimum(age[halved] // self._maxage_s, 63)

    def _pool_penalties(self, members: Array) -> bool:
        """The simpler rule for a pool, at each component: only its OSTs' space and age, no servers."""
        live = members[self._creatable[members]]
        space = self._available[live] >> 8
        live, space = live[space > 0], space[space > 0]
        if len(members) < 2 or not len(live):
            return True
        self._per_object[live] = (self._wide * space >> 9) // (len(members) - 1)
        which = np.zeros(len(self._penalty), bool)
        which[live] = True
        self._age(self._penalty, self._last_used, which, reset=False)
        return _even(space, self._threshold)

    def _use(self, ost: int) -> None:
        """The chosen OST and its server get the greatest penalty, all others' shrinks by one object."""
        server = self._server[ost]
        self._penalty[ost] >>= 1
        self._server_penalty[server] >>= 1
        self._last_used[ost] = self._server_last_used[server] = self._now
        self._penalty[ost] += self._per_object[ost] * int(np.count_nonzero(self._creatable))
        self._server_penalty[server] += self._server_per_object[server] * self._active_servers
        self._server_penalty = np.maximum(0, self._server_penalty - self._server_per_object)
        lower = np.maximum(0, self._penalty - self._per_object)
        self._penalty = np.where(self._creatable, lower, self._penalty)


def _even(space: Array, threshold: int) -> bool:
    return bool((int(space.max()) * (256 - threshold)) // 256 < int(space.min()))


def _server_order(view: SystemView) -> list[str]:
    """Servers by number of OSTs, most first; among equals, in the order in which they got their last one."""
    rank = {oss.name: i for i, oss in enumerate(view.osses)}
    count: dict[str, int] = {}
    last: dict[str, int] = {}
    connected = sorted(view.osts, key=lambda o: (rank.get(o.oss, len(rank)), o.index))
    for position, ost in enumerate(connected):
        count[ost.oss] = count.get(ost.oss, 0) + 1
        last[ost.oss] = position
    return sorted(count, key=lambda name: (-count[name], last[name]))


def _interleaved(members: list[int], server: list[int]) -> list[int]:
    """Each server's OSTs evenly over the array, the next free place where one is taken."""
    count = len(members)
    slots: list[int | None] = [None] * count
    following = list(range(count))
    """Where to look next for a free place, from each place: a hundred thousand OSTs are found in one go."""
    total = Counter(server)
    of_server: dict[int, list[int]] = {}
    for ost in members:
        of_server.setdefault(server[ost], []).append(ost)
    for s in sorted(of_server):
        for j, ost in enumerate(of_server[s]):
            first = place = j * count // total[s] % count
            while slots[place] is not None:
                place = following[place]
            slots[place] = ost
            free = (place + 1) % count
            while first != place:
                following[first], first = free, following[first]
            following[place] = free
    return [ost for ost in slots if ost is not None]


def goes_round(osts: Sequence[Ost], threshold_rr: int = 17) -> bool:
    """Whether the space that is available on these OSTs, all or a pool's, is so even that Lustre goes round instead of
    weighing it.
    """
    space = np.array([o.avail_bytes for o in osts if o.usable and o.files_free > 0], np.int64) >> 8
    space = space[space > 0]
    return len(space) < 2 or _even(space, threshold_rr * 256 // 100)


def ring(osts: Sequence[Ost]) -> list[int]:
    """Indices of these OSTs in the order of the round robin."""
    servers = list(dict.fromkeys(o.oss for o in osts))
    return [osts[i].index for i in _interleaved(list(range(len(osts))), [servers.index(o.oss) for o in osts])]
