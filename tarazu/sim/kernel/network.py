"""Flows over links on SimPy's clock: each flow an event that succeeds when its last unit has arrived.

Rates change only when a flow starts or ends or a link's capacity changes. All that happens at one simulated
time costs one sharing, at the end of that instant. Between two of them every rate is constant, so the next
end is known and nothing else is simulated.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import simpy
from numpy.typing import ArrayLike
from simpy.events import NORMAL, EventPriority

from tarazu.errors import TarazuError
from tarazu.sim.kernel.fluid import Floats, Ints, fair_rates
from tarazu.sim.kernel.like_flows import FlowClass, LikeFlows

LATE = EventPriority(2)
"""SimPy's priority of what comes after all else of an instant (its own are 0 and 1)."""
SAME_TIME = 1e-14
"""Ends that lie closer together than this part of the time passed are one instant: rounding, not order."""

EXACT, COARSE = 1e-12, 0.01
"""Shares that differ by less than this part are settled together: rounding; an error well below that of sharing
rarely, for a third of the time."""
CHANGED = 0.1
"""As soon as more than this part of the flows are others, rates are shared anew whatever the resolution."""
OVER = 0.5
"""Of a link's capacity: what it may carry above it until rates are shared anew."""
LEAST = 1e-3
"""Of a fair share: less than that is nothing."""
AT_ONCE = 1e300
"""Rate of a flow that nothing limits, units/s: it ends in the instant in which it starts."""

Curve = Callable[[Ints], Floats]
"""From streams (>= 1) to the factor of the capacity that a link then has; for many links at once."""


class Tick(simpy.Event):
    """A bare event at a time and a priority."""

    def __init__(
        self, env: simpy.Environment, delay: float, priority: EventPriority, call: Callable[[Any], None]
    ) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        self.callbacks.append(call)
        env.schedule(self, priority, delay)


class Network:
    """Links and the flows on them. The same calls in the same order give the same result, bit for bit.

    With `resolution_s` = 0 rates are exact at all times. Above 0 rates are shared anew once in so many seconds, or
    sooner when a tenth of the flows has changed, and are the fair ones to 1 %. In between all flows keep their
    rates. One that starts then gets an equal part of each link's capacity, as far as that does not
    load a link to more than half above its capacity; else it waits for the sharing. Ends at the rates in force are
    exact. docs/simulator.md has the errors that this makes.

    A network where no flow moves schedules nothing, and SimPy ends when nothing else is left to do; `run`
    says then which links are to blame. A process that comes back for ever must look at `stands_still`.
    """

    def __init__(self, env: simpy.Environment, resolution_s: float = 0.0) -> None:
        if not 0 <= resolution_s < math.inf:
            raise ValueError(f"resolution_s: a number of seconds >= 0 expected, {resolution_s} found")
        self.env = env
        self.resolution_s = resolution_s
        self._tolerance = COARSE if resolution_s else EXACT
        self.sharings = 0
        """Times at which bandwidth was shared anew."""
        self.names: list[str] = []
        self._flows = LikeFlows()
        self._started = 0
        self._base = np.zeros(64)
        self._capacity = np.zeros(64)
        self._streams = np.zeros(64, dtype=np.int64)
        self._weight = np.zeros(64)
        self._free = np.zeros(64)
        """Of the capacity, at the rates in force; kept, like `_weight`, where there is a resolution."""
        self._carried = np.zeros(64)
        self._curves: dict[Curve, list[int]] = {}
        self._curved: list[tuple[Curve, Ints]] | None = None
        self._shared_at = -math.inf
        """When rates were last shared, and when they will be next; inf: not before something changes."""
        self._share_at = math.inf
        self._sharing: Tick | None = None
        self._changed = self._shared_among = 0
        """Flows that have started or ended since then, and that were there."""
        self._due: list[tuple[float, int, FlowClass]] = []
        self._alarm: Tick | None = None
        self._alarm_at = math.inf

    # Links

    def link(self, capacity: float, name: str = "", curve: Curve | None = None) -> int:
        """A new link of `capacity` units/s; with `curve`, times curve(streams on it). Its number: 0, 1, ..."""
        number = len(self.names)
        if number >= len(self._base):
            for array in ("_base", "_capacity", "_streams", "_weight", "_free", "_carried"):
                old = getattr(self, array)
                setattr(self, array, np.concatenate([old, np.zeros_like(old)]))
        self.names.append(name or f"link {number}")
        self._base[number] = self._capacity[number] = _capacity(capacity, self.names[number])
        if curve is not None:
            self._curves.setdefault(curve, []).append(number)
            self._curved = None
        return number

    def set_capacity(self, link: int, capacity: float) -> None:
        """From now on; 0: flows over it stand still until it has capacity again."""
        self._base[link] = _capacity(capacity, self.names[link])
        self._change(self._shared_among + 1)  # at once, whatever the resolution

    def carried(self) -> Floats:
        """Units that each link has carried up to now (links,)."""
        carried = self._carried[: len(self.names)].copy()
        if len(self._flows):
            links, units = self._flows.under_way(self.env.now)
            carried += np.bincount(links, units, minlength=len(carried))
        return carried

    def streams(self) -> Ints:
        """Streams on each link now (links,)."""
        return self._streams[: len(self.names)].copy()

    # Flows

    def start(
        self,
        links: Sequence[int] | Ints,
        weights: ArrayLike | None,
        amount: float,
        limit: float = math.inf,
        streams: ArrayLike = 1,
    ) -> simpy.Event:
        """A flow of `amount` units that starts now; the event succeeds, with the time, when it has ended.

        At rate r it uses weights * r of its links (None: 1 each; a link of weight 0 is not used). Never faster
        than `limit`. It counts as `streams` streams on each link (one number, or one a link).
        """
        at = np.asarray(links, dtype=np.int64)
        weight = np.ones(len(at)) if weights is None else np.asarray(weights, dtype=np.float64)
        count = np.asarray(streams, dtype=np.int64)
        if not count.ndim:
            count = np.full(len(at), count)
        if weight.shape != at.shape or not limit > 0 or not 0 <= amount < math.inf:
            raise ValueError(
                f"flow: {len(at)} weights, a limit > 0 and an amount >= 0 expected, "
                f"{weight.size}, {limit} and {amount} found"
            )
        if len(at):
            least = weight.min()
            if not least >= 0:
                raise ValueError(f"flow: weights >= 0 expected, {least} found")
            if not least:
                used = weight > 0
                at, weight, count = at[used], weight[used], count[used]
            if at.view(np.uint64).max(initial=0) >= len(self.names):  # a number below 0 is a huge one
                raise ValueError(
                    f"flow: links 0 to {len(self.names) - 1} expected, {at.min()} to {at.max()} found"
                )
        done = self.env.event()
        now = self.env.now
        if amount == 0:
            return done.succeed(now)
        self._started += 1
        self._change(1)
        rate, apart = 0.0, 0
        if self.resolution_s:
            np.add.at(self._weight, at, weight)
            if self._share_at > now:
                rate = self._meanwhile(at, weight, limit)
                apart = self._started if rate else -self.sharings
        row = self._flows.find(at, weight, count, limit, apart, now)
        self._flows.join(row, self._started, float(amount), now, done)
        np.add.at(self._streams, at, count)
        if rate:
            self._flows.rate[row.row] = rate
            np.subtract.at(self._free, at, weight * rate)
            self._expect(row)
            self._set_alarm()
        return done

    def run(self, until: simpy.Event) -> Any:
        """Runs the clock until the event has happened.

        Raises TarazuError where it never can, because what is left to flow stands still."""
        try:
            return self.env.run(until)
        except RuntimeError:
            if until.triggered or not self.stands_still:
                raise
            dead = [
                self.names[n]
                for n in np.flatnonzero(self._capacity[: len(self.names)] == 0)
                if self._streams[n]
            ]
            raise TarazuError(
                f"simulation: {int(self._flows.count.sum())} flows never finish from {self.env.now:g} s on: "
                f"no capacity on {', '.join(dead[:5])}{' ...' if len(dead) > 5 else ''}"
            ) from None

    @property
    def stands_still(self) -> bool:
        """Flows are under way, and none of them moves, nor will any before a capacity changes."""
        return bool(len(self._flows)) and self._share_at == math.inf and not self._due

    # Time

    def _change(self, flows: int) -> None:
        """So many flows have started or ended: rates are to be shared anew, at the end of this instant or later."""
        now = self.env.now
        self._changed += flows
        at = max(now, self._shared_at + self.resolution_s)
        if self._changed > CHANGED * self._shared_among:
            at = now
        if at < self._share_at:
            self._share_at = at
            self._sharing = Tick(self.env, at - now, LATE, self._share)

    def _share(self, sharing: simpy.Event) -> None:
        """Rates anew, and from them who ends next."""
        if sharing is not self._sharing:
            return
        flows, now = self._flows, self.env.now
        self._share_at = math.inf
        self._shared_at = now
        self.sharings += 1
        flows.advance(now)
        number = len(self.names)
        capacity = self._capacity[:number]
        capacity[:] = self._base[:number]
        for curve, curved in self._by_curve():
            capacity[curved] *= curve(np.maximum(self._streams[curved], 1))
        rows, starts, entries = flows.incidence()
        links, weights = flows.links[entries], flows.weights[entries]
        counts = flows.count[rows]
        self._changed, self._shared_among = 0, int(counts.sum())
        rates = fair_rates(capacity, starts, links, weights, counts, flows.limit[rows], self._tolerance)
        flows.rate[rows] = np.minimum(rates, AT_ONCE)
        if self.resolution_s:
            load = weights * np.repeat(counts, np.diff(starts))
            self._weight[:number] = np.bincount(links, load, minlength=number)
            load *= np.repeat(flows.rate[rows], np.diff(starts))
            self._free[:number] = capacity - np.bincount(links, load, minlength=number)
        self._plan(rows)

    def _by_curve(self) -> list[tuple[Curve, Ints]]:
        if self._curved is None:
            self._curved = [(curve, np.array(links)) for curve, links in self._curves.items()]
        return self._curved

    def _plan(self, rows: Ints) -> None:
        """The ends before the next sharing at least, and the first one at most after it."""
        flows, now = self._flows, self.env.now
        left = np.maximum(flows.head[rows] - flows.service[rows], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = left / flows.rate[rows]
        wait[(left == 0) | (flows.rate[rows] == AT_ONCE)] = 0.0
        ends = now + wait
        first = float(ends.min()) if len(ends) else math.inf
        self._due = []
        if first < math.inf:
            near = ends <= max(first * (1 + SAME_TIME), now + self.resolution_s)
            for end, number in zip(ends[near].tolist(), rows[near].tolist()):
                row = flows.rows[number]
                assert row is not None
                self._due.append((end, row.members[0].number, row))
            heapq.heapify(self._due)
        self._set_alarm()

    def _set_alarm(self) -> None:
        at = self._due[0][0] if self._due else math.inf
        if at >= self._share_at:  # the sharing plans anew
            at = math.inf
        if at == self._alarm_at:
            return
        self._alarm_at = at
        self._alarm = None
        if at < math.inf:
            self._alarm = Tick(self.env, max(0.0, at - self.env.now), NORMAL, self._end)

    def _end(self, alarm: simpy.Event) -> None:
        """Every flow whose time has come, in the order of their starts."""
        if alarm is not self._alarm:
            return
        self._alarm, self._alarm_at = None, math.inf
        flows, now = self._flows, self.env.now
        horizon = now * (1 + SAME_TIME)
        ended = []
        while self._due and self._due[0][0] <= horizon:
            _, number, row = heapq.heappop(self._due)
            if not row.members or row.members[0].number != number:
                continue
            at = flows.links[row.first : row.first + row.length]
            weight = flows.weights[row.first : row.first + row.length]
            together = row.members[0].until + float(flows.rate[row.row]) * now * SAME_TIME
            while row.members and row.members[0].until <= together:
                member = flows.leave(row)
                ended.append(member)
                np.add.at(self._carried, at, weight * member.amount)
                np.subtract.at(self._streams, at, row.streams)
                if self.resolution_s:
                    np.subtract.at(self._weight, at, weight)
                    np.add.at(self._free, at, weight * flows.rate[row.row])
            if row.members:
                self._expect(row)
        ended.sort(key=lambda member: member.number)
        for member in ended:
            member.done.succeed(now)
        if ended:
            self._change(len(ended))
        self._set_alarm()

    def _meanwhile(self, at: Ints, weight: Floats, limit: float) -> float:
        """Until the next sharing: as if all flows of a link had the same, as far as it can carry that."""
        if not len(at):
            return min(limit, AT_ONCE)
        fair = float((self._capacity[at] / self._weight[at]).min())
        wanted = min(fair, limit, AT_ONCE)
        free = float(((self._free[at] + OVER * self._capacity[at]) / weight).min())
        return min(free, wanted) if free > LEAST * wanted else 0.0

    def _expect(self, row: FlowClass) -> None:
        """The end of the first member, at the rate in force."""
        r, flows = row.row, self._flows
        rate = float(flows.rate[r])
        if rate > 0:
            wait = (row.members[0].until - float(flows.service[r])) / rate if rate < AT_ONCE else 0.0
            end = float(flows.since[r]) + wait
            heapq.heappush(self._due, (max(end, self.env.now), row.members[0].number, row))


def _capacity(capacity: float, name: str) -> float:
    if not capacity >= 0:
        raise ValueError(f"{name}: a capacity >= 0 units/s expected, {capacity} found")
    return float(capacity)
