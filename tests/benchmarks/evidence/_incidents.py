"""Generated systems of 35, 480 and 3,600 OSTs, their load by day and night, and what goes wrong there.

Nothing here knows how a slow OST is found. What is well is calibrated on what a real server captured: single I/O times
spread by 0.8 to 1.0 (logarithmic), times in classes that double, stalls of half a second. Disks of one kind differ by
a fifth, and by a quarter from minute to minute; one in 30 does other work (a patrol read) at a time.

A stretch of time is healthy for its first half and has one incident in its second. The next one begins at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tarazu.units import KIB, MIB
from tarazu.wire.reports import OstReport
from tests.benchmarks.evidence._disks import NONE, Counters, Floats, Ints, Ios, Pace, play

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
STALL_EVERY, STALL_S = 20_000, 0.5
"""One I/O of so many takes an exponential time with this mean longer."""
APART, BY_MINUTE = 0.2, 0.25
"""Standard deviation of the logarithm of times: disks of one kind; one disk from minute to minute."""
PATROL_SHARE, PATROL_SPEED = 1 / 30, (0.75, 0.95)
DEPTH = 8
"""I/Os that are in flight on one OST at most; users who overload it keep more there."""
DEEP = 64
SICK = ("one", "one, now and then", "two", "server", "rack", "rebuild", "firmware", "link")
"""What is a sickness of OSTs or their server."""
WELL = ("overload", "all at once")
"""What is none: users who ask for too much, and everything slower at once, which is no OST's own fault."""


class System(NamedTuple):
    osts: int
    per_server: int
    rack_servers: int
    flash_servers: int
    """The last ones; a pool of their own."""
    jobs_per_hour: float
    base_per_s: float
    """Small and large I/Os of an OST, at any time of the day."""
    stretch_s: tuple[float, float]
    """Least and most length of an incident."""
    warm_up_s: float

    @property
    def servers(self) -> dict[int, str]:
        return {i: f"oss{i // self.per_server:03}" for i in range(self.osts)}

    @property
    def flash(self) -> int:
        """The first OST of the flash pool."""
        return self.osts - self.flash_servers * self.per_server

    @property
    def pools(self) -> dict[int, tuple[str, ...]]:
        return {i: ("flash",) if i >= self.flash else ("disk",) for i in range(self.osts)}


SYSTEMS = {
    35: System(35, 5, 2, 1, 6.0, 0.15, (1800.0, 3600.0), 8 * HOUR_S),
    480: System(480, 8, 4, 6, 20.0, 0.1, (1200.0, 1800.0), 4 * HOUR_S),
    3600: System(3600, 8, 10, 30, 60.0, 0.1, (900.0, 1500.0), 2 * HOUR_S),
}
INTERVAL_S = 60.0


class Incident(NamedTuple):
    kind: str
    """`healthy`: nothing happens."""
    osts: frozenset[int]
    factor: float
    """Times slower; of an overload: times what the disk can do."""
    begin_s: float
    end_s: float
    """Since the stretch began."""

    @property
    def sick(self) -> frozenset[int]:
        return self.osts if self.kind in SICK else frozenset()


class Stretch(NamedTuple):
    begin_s: float
    incident: Incident
    busy: dict[int, int]
    """OST → its I/Os that were begun in the incident."""
    rounds: list[tuple[float, list[OstReport]]]
    """(seconds since the stretch began, all OSTs' reports of that minute)."""
    at_s: Floats
    """(OST, round): when each was sent."""


class Site:
    """One system and its life."""

    def __init__(self, system: System, seed: int) -> None:
        self.system, self.random = system, np.random.default_rng([system.osts, seed])
        random, osts = self.random, system.osts
        self._flash = np.arange(osts) >= system.flash
        self._seek_s = np.where(self._flash, 3e-4, 6e-3)
        self._bytes_per_s = np.where(self._flash, 1.5e9, random.choice([120e6, 150e6, 200e6]))
        self._own = random.lognormal(0, APART, osts)
        self._noise = random.uniform(0.8, 1.0)
        servers = -(-osts // system.per_server)
        self._phase = np.repeat(random.uniform(0, INTERVAL_S, servers), system.per_server)[:osts]
        self._counters = Counters(osts, ~self._flash)
        self._now = random.uniform(0, DAY_S)
        """Time of the day at which the next stretch begins."""
        self._begun = 0.0

    def warm_up(self) -> Iterator[Stretch]:
        """Healthy stretches, before anything goes wrong."""
        length = min(2 * self.system.stretch_s[1], HOUR_S)
        for _ in range(int(self.system.warm_up_s / length)):
            yield self._stretch(Incident("healthy", frozenset(), 1.0, length, length), length)

    def stretch(self, kind: str) -> Stretch:
        """The next one, with such an incident in its second half."""
        low, high = self.system.stretch_s
        length = self.random.uniform(low, high) * (2 if kind == "rebuild" and self.system.osts < 100 else 1)
        length = INTERVAL_S * round(length / INTERVAL_S)
        incident = Incident(kind, self._chosen(kind), self._factor(kind), length, 2 * length)
        return self._stretch(incident, 2 * length)

    def _factor(self, kind: str) -> float:
        low, high = {"rebuild": (2, 4), "overload": (0.9, 4), "all at once": (2, 10)}.get(kind, (1.5, 50))
        return float(np.exp(self.random.uniform(np.log(low), np.log(high))))

    def _chosen(self, kind: str) -> frozenset[int]:
        random, system = self.random, self.system
        servers = -(-system.osts // system.per_server)
        if kind == "healthy":
            return frozenset()
        if kind == "all at once":
            share = random.uniform(0.6, 1.0)
            return frozenset(random.choice(system.osts, int(share * system.osts), replace=False).tolist())
        if kind in ("server", "link"):
            chosen = [int(random.integers(servers))]
        elif kind == "rack":
            first = int(random.integers(servers // system.rack_servers)) * system.rack_servers
            chosen = list(range(first, first + system.rack_servers))
        else:
            count = 2 if kind == "two" else int(random.integers(1, 9)) if kind == "overload" else 1
            return frozenset(random.choice(system.osts, count, replace=False).tolist())
        return frozenset(i for i, name in system.servers.items() if int(name[3:]) in chosen)

    def _stretch(self, incident: Incident, length_s: float) -> Stretch:
        random, system = self.random, self.system
        ios = self._load(length_s)
        depth = np.full(system.osts, DEPTH, np.int64)
        if incident.kind == "overload":
            ios += self._overload(incident)
            depth[list(incident.osts)] = DEEP
        minutes = np.exp(random.normal(0, BY_MINUTE, (system.osts, int(length_s / 60) + 2)))
        patrol = random.random(system.osts) < PATROL_SHARE
        own = self._own / np.where(patrol, random.uniform(*PATROL_SPEED, system.osts), 1.0)
        count = len(ios.ost)
        noise = random.lognormal(-(self._noise**2) / 2, self._noise, count)
        service_s = self._seek_s[ios.ost] + ios.bytes / self._bytes_per_s[ios.ost]
        service_s *= noise * own[ios.ost] * minutes[ios.ost, (ios.at_s / 60).astype(int)]
        # A small synchronous write also waits for the disk's own cache.
        service_s *= np.where((ios.bytes <= 4 * KIB) & ios.writes, 2.0, 1.0)
        stalls = random.random(count) < 1 / STALL_EVERY
        service_s += np.where(stalls, random.exponential(STALL_S, count), 0.0)
        paces = self._paces(incident, length_s)
        request_s = self._requests(ios, incident, length_s)
        played = play(ios, service_s, request_s, length_s, paces, depth)
        steps = np.arange(int(length_s / INTERVAL_S)) * INTERVAL_S
        at_s = self._phase[:, None] + steps
        rounds = list(zip((steps + INTERVAL_S).tolist(), self._counters.reports(played, at_s)))
        during = (ios.at_s >= incident.begin_s) & (ios.at_s < incident.end_s)
        busy = np.bincount(ios.ost[during], minlength=system.osts)
        began, self._begun = self._begun, self._begun + length_s
        self._now = (self._now + length_s) % DAY_S
        return Stretch(began, incident, {i: int(busy[i]) for i in incident.osts}, rounds, at_s)

    def _load(self, length_s: float) -> Ios:
        """What healthy users do: random I/O everywhere, and jobs, by day three times as many as by night."""
        random, system = self.random, self.system
        counts = random.poisson(system.base_per_s * random.lognormal(0, 1.0, system.osts) * length_s)
        total = int(counts.sum())
        parts = [
            Ios(
                np.repeat(np.arange(system.osts), counts),
                random.uniform(0, length_s, total),
                random.choice([4.0 * KIB, 64.0 * KIB, 1.0 * MIB, 4.0 * MIB], total),
                random.random(total) < 0.6,
            )
        ]
        hour = (self._now + length_s / 2) / HOUR_S
        by_day = 1 + 0.5 * np.sin((hour - 9) / 24 * 2 * np.pi)
        for begin_s in random.uniform(
            0, length_s, random.poisson(system.jobs_per_hour * by_day * length_s / HOUR_S)
        ):
            parts.append(self._job(float(begin_s), length_s))
        return Ios(*(np.concatenate(of) for of in zip(*parts)))

    def _job(self, begin_s: float, end_s: float) -> Ios:
        random = self.random
        osts = self._targets()
        kind = str(random.choice(["checkpoint", "stream", "small"], p=[0.5, 0.35, 0.15]))
        writes = bool(random.random() < (0.9 if kind == "checkpoint" else 0.5))
        if kind == "checkpoint":
            # Some waves of the same size, each at once on all of its OSTs.
            each = int(random.choice([6, 24, 96]))
            waves = begin_s + np.arange(int(random.integers(1, 7))) * random.uniform(120, 1200)
            at_s = [w + random.exponential(2.0, len(osts)) for w in waves if w < end_s - 60]
            if not at_s:
                return NONE
            ost = np.repeat(np.tile(osts, len(at_s)), each)
            size = np.full(len(ost), float(random.choice([MIB, 4 * MIB])))
            return Ios(ost, np.repeat(np.concatenate(at_s), each), size, np.full(len(ost), writes))
        if kind == "small":
            osts = osts[: int(random.integers(1, 9))]
        osts = osts[:32]
        per_s = random.uniform(1, 10) if kind == "small" else random.uniform(0.3, 3)
        sizes = [4.0 * KIB, 64.0 * KIB] if kind == "small" else [1.0 * MIB, 4.0 * MIB]
        lasts_s = min(random.uniform(300, HOUR_S), end_s - begin_s)
        return self._steady(osts, begin_s, lasts_s, per_s, [float(random.choice(sizes))], writes)

    def _targets(self) -> Ints:
        """OSTs of one pool: few or many."""
        random, system = self.random, self.system
        low, high = (0, system.flash) if random.random() < 0.8 else (system.flash, system.osts)
        width = int(random.choice([1, 4, 8, 16, max(1, (high - low) // 4), high - low]))
        return np.asarray(random.choice(np.arange(low, high), min(width, high - low), replace=False))

    def _steady(
        self, osts: Ints, begin_s: float, lasts_s: float, per_s: float, sizes: Sequence[float], writes: bool
    ) -> Ios:
        counts = self.random.poisson(per_s * lasts_s, len(osts))
        total = int(counts.sum())
        return Ios(
            np.repeat(osts, counts),
            begin_s + self.random.uniform(0, lasts_s, total),
            self.random.choice(np.array(sizes), total),
            np.full(total, writes),
        )

    def _overload(self, incident: Incident) -> Ios:
        """More than these disks can do, in large or in small I/Os; the queue grows, and users wait."""
        parts = []
        writes = bool(self.random.random() < 0.5)
        size = float(self.random.choice([4 * KIB, 64 * KIB, MIB, 4 * MIB]))
        for index in incident.osts:
            one_s = float((self._seek_s + size / self._bytes_per_s)[index] * self._own[index])
            lasts_s = incident.end_s - incident.begin_s
            # Flash would need more I/Os than can be played: then they come for a shorter time.
            per_s = incident.factor / one_s
            lasts_s = min(lasts_s, 60_000 / per_s)
            parts.append(self._steady(np.array([index]), incident.begin_s, lasts_s, per_s, [size], writes))
        return Ios(*(np.concatenate(of) for of in zip(*parts)))

    def _paces(self, incident: Incident, length_s: float) -> dict[int, Pace]:
        """Of the disks that are slow for a time."""
        if incident.kind in ("healthy", "overload", "link"):
            return {}
        paces = {}
        begin_s, end_s = incident.begin_s, incident.end_s
        slow = self._spells(incident)
        for index in incident.osts:
            if incident.kind == "firmware":
                slow = self._spells(incident)
            at_s, speed = [0.0], [1.0]
            for low, high in slow:
                if high > begin_s and low < end_s:
                    at_s += [max(low, begin_s), min(high, end_s)]
                    speed += [0.0 if incident.kind == "firmware" else 1 / incident.factor, 1.0]
            paces[index] = Pace(np.array(at_s), np.array(speed))
        return paces

    def _spells(self, incident: Incident) -> list[tuple[float, float]]:
        """When it is slow: all the time, for minutes, or for seconds every few minutes."""
        random, at_s = self.random, incident.begin_s
        if incident.kind not in ("one, now and then", "firmware"):
            return [(incident.begin_s, incident.end_s)]
        spells = []
        if incident.kind == "firmware":
            # Pauses of factor / 2 seconds: 1 to 25.
            every_s, lasts_s = random.uniform(60, 300), incident.factor / 2
        else:
            every_s = random.uniform(600, 1200)
            lasts_s = every_s * random.uniform(0.2, 0.6)
        while at_s < incident.end_s:
            spells.append((at_s, at_s + lasts_s * random.uniform(0.7, 1.3)))
            at_s += max(every_s, 1.5 * lasts_s) * random.uniform(0.8, 1.2)
        return spells

    def _requests(self, ios: Ios, incident: Incident, length_s: float) -> Floats:
        """Time of a request in network and threads; a slow link makes it longer on all OSTs of its server."""
        random, system = self.random, self.system
        servers = -(-system.osts // system.per_server)
        congested = np.exp(random.normal(0, 0.3, (servers, int(length_s / 60) + 2)))
        took_s = (5e-4 + ios.bytes / 4e8) * random.lognormal(0, 0.6, len(ios.ost))
        took_s *= congested[ios.ost // system.per_server, (ios.at_s / 60).astype(int)]
        if incident.kind == "link":
            slow = np.isin(ios.ost, list(incident.osts))
            slow &= (ios.at_s >= incident.begin_s) & (ios.at_s < incident.end_s)
            took_s *= np.where(slow, incident.factor, 1.0)
        return took_s
