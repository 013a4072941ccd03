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
from tarazu.sim.kernel.like_flows import LikeFlows, Row

LATE = EventPriority(2)
"""SimPy's priority of what comes after all else of an instant (its own are 0 and 1)."""
SAME_TIME = 1e-12
"""Ends that lie closer together than this part of the time passed are one instant: rounding, not order."""

EXACT, COARSE = 1e-12, 0.01
"""Shares that differ by less than this part are settled together: rounding; an error well below that of sharing
rarely, for a third of the time."""
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

    With `resolution_s` = 0 rates are exact at all times. Above 0 rates are shared anew at most once in so many
    seconds: what a flow that ends leaves is used at the next sharing, and until then a flow that starts gets
    min(capacity / weight of all flows) over its links, which the exact rate is never below. So a link may
    for at most `resolution_s` carry more than its capacity, or less than it could; ends at the rates
    in force are exact. Rates are the fair ones to 1 %. docs/benchmarks.md has the errors that this makes.

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
        self._carried = np.zeros(64)
        self._curves: dict[Curve, list[int]] = {}
        self._shared_at = -math.inf
        """When rates were last shared, and when they will be next; inf: not before something changes."""
        self._share_at = math.inf
        self._due: list[tuple[float, int, Row]] = []
        self._alarm: Tick | None = None
        self._alarm_at = math.inf

    # Links

    def link(self, capacity: float, name: str = "", curve: Curve | None = None) -> int:
        """A new link of `capacity` units/s; with `curve`, times curve(streams on it). Its number: 0, 1, ..."""
        number = len(self.names)
        if number >= len(self._base):
            for array in ("_base", "_capacity", "_streams", "_weight", "_carried"):
                old = getattr(self, array)
                setattr(self, array, np.concatenate([old, np.zeros_like(old)]))
        self.names.append(name or f"link {number}")
        self._base[number] = self._capacity[number] = _capacity(capacity, self.names[number])
        if curve is not None:
            self._curves.setdefault(curve, []).append(number)
        return number

    def set_capacity(self, link: int, capacity: float) -> None:
        """From now on; 0: flows over it stand still until it has capacity again."""
        self._base[link] = _capacity(capacity, self.names[link])
        self._change()

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
        count = np.broadcast_to(np.asarray(streams, dtype=np.int64), at.shape)
        if weight.shape != at.shape or not limit > 0 or not 0 <= amount < math.inf:
            raise ValueError(
                f"flow: {len(at)} weights, a limit > 0 and an amount >= 0 expected, "
                f"{weight.size}, {limit} and {amount} found"
            )
        if weight.size and not weight.min() > 0:
            if not weight.min() >= 0:
                raise ValueError(f"flow: weights >= 0 expected, {weight.min()} found")
            used = weight > 0
            at, weight, count = at[used], weight[used], count[used]
        if at.size and not 0 <= at.min() <= at.max() < len(self.names):
            raise ValueError(
                f"flow: links 0 to {len(self.names) - 1} expected, {at.min()} to {at.max()} found"
            )
        done = self.env.event()
        if amount == 0:
            return done.succeed(self.env.now)
        now = self.env.now
        row = self._flows.find(at, weight, count, limit, now)
        self._started += 1
        self._flows.join(row, self._started, float(amount), now, done)
        np.add.at(self._streams, at, count)
        if self.resolution_s:
            np.add.at(self._weight, at, weight)
            if now < self._shared_at + self.resolution_s:
                self._meanwhile(row, at)
        self._change()
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
                f"simulation: {int(self._flows.count.sum())} flows stand still for ever from {self.env.now:g} s on: "
                f"no capacity on {', '.join(dead[:5])}{' ...' if len(dead) > 5 else ''}"
            ) from None

    @property
    def stands_still(self) -> bool:
        """Flows are under way, and none of them moves, nor will any before a capacity changes."""
        return bool(len(self._flows)) and self._share_at == math.inf and not self._due

    # Time

    def _change(self) -> None:
        if self._share_at == math.inf:
            now = self.env.now
            self._share_at = max(now, self._shared_at + self.resolution_s)
            Tick(self.env, self._share_at - now, LATE, self._share)

    def _share(self, _: simpy.Event) -> None:
        """Rates anew, and from them who ends next."""
        flows, now = self._flows, self.env.now
        self._share_at = math.inf
        self._shared_at = now
        self.sharings += 1
        flows.advance(now)
        number = len(self.names)
        capacity = self._capacity[:number]
        capacity[:] = self._base[:number]
        for curve, curved in self._curves.items():
            capacity[curved] *= curve(np.maximum(self._streams[curved], 1))
        rows, starts, entries = flows.incidence()
        links, weights = flows.links[entries], flows.weights[entries]
        counts = flows.count[rows]
        rates = fair_rates(capacity, starts, links, weights, counts, flows.limit[rows], self._tolerance)
        flows.rate[rows] = np.minimum(rates, AT_ONCE)
        if self.resolution_s:
            load = weights * np.repeat(counts, np.diff(starts))
            self._weight[:number] = np.bincount(links, load, minlength=number)
        self._plan(rows)

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
            if row.members:
                self._expect(row)
        ended.sort(key=lambda member: member.number)
        for member in ended:
            member.done.succeed(now)
        if ended:
            self._change()
        self._set_alarm()

    def _meanwhile(self, row: Row, at: Ints) -> None:
        """Until the next sharing a flow that started goes at a rate that it would get at least."""
        r = row.row
        if not self._flows.rate[r]:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = self._capacity[at] / self._weight[at]
            self._flows.rate[r] = min(float(share.min(initial=math.inf)), float(self._flows.limit[r]))
        self._expect(row)
        self._set_alarm()

    def _expect(self, row: Row) -> None:
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
