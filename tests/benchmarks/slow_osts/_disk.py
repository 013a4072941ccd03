"""Disks that serve one I/O after another, and what a server would report of them at any moment.

As on a real server: `brw_stats` counts an I/O, its bytes and its time (in classes that double) when it has ended;
`obdfilter` counts a write when it begins; `diskstats` knows what is in flight, and for how long anything was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.ost_state import SICK
from tarazu.stats.diskstats import Device
from tarazu.stats.service import NOTHING, Watch
from tarazu.stats.slow_osts import SlowOstFinder
from tarazu.units import GIB, KIB, MIB
from tarazu.wire.reports import IoCounters, OstReport

Floats = NDArray[np.float64]

SEEK_S, BYTES_PER_S = 0.006, 150e6
NOISE = 0.9
"""Standard deviation of the logarithm of single times."""
STALL_EVERY, STALL_S = 20_000, 0.5
"""One I/O of so many takes an exponential time with this mean longer."""
IN_FLIGHT = 8
"""The most that are in flight on one OST."""


class Load(NamedTuple):
    """I/Os of one OST, ordered by when they are wanted."""

    at_s: Floats
    bytes: Floats

    def __add__(self, other: object) -> Load:
        assert isinstance(other, Load)
        at_s = np.concatenate([self.at_s, other.at_s])
        order = np.argsort(at_s, kind="stable")
        return Load(at_s[order], np.concatenate([self.bytes, other.bytes])[order])


class Disk:
    """Its whole life at once: `slower`, for each I/O, multiplies its time; at `held_bytes_per_s` from `held_s` on."""

    def __init__(
        self,
        load: Load,
        random: np.random.Generator,
        slower: Floats | float = 1.0,
        held_bytes_per_s: float = np.inf,
        held_s: float = 0.0,
    ) -> None:
        count = len(load.at_s)
        noise = random.lognormal(-(NOISE**2) / 2, NOISE, count)
        service_s = (SEEK_S + load.bytes / BYTES_PER_S) * noise * slower
        stalls = random.random(count) < 1 / STALL_EVERY
        service_s += np.where(stalls, random.exponential(STALL_S, count), 0.0)
        held = load.at_s >= held_s
        service_s = np.where(held, np.maximum(service_s, load.bytes / held_bytes_per_s), service_s)
        begun, ended, free = [], [], -np.inf
        for at, wanted_s, lasts_s in zip(range(count), load.at_s.tolist(), service_s.tolist()):
            begin = wanted_s if at < IN_FLIGHT else max(wanted_s, ended[at - IN_FLIGHT])
            free = max(begin, free) + lasts_s
            begun.append(begin)
            ended.append(free)
        self.begun, self.ended = np.array(begun), np.array(ended)
        self.service = np.concatenate([[0.0], np.cumsum(service_s)])
        self.served = self.ended - service_s
        """When its service began."""
        taken_ms = np.ceil((self.ended - self.begun) * 1e3)
        label = 2.0 ** np.ceil(np.log2(np.maximum(1.0, taken_ms)))
        self.taken_s = (self.ended - self.begun).tolist()
        in_flight = np.arange(1, count + 1) - np.searchsorted(self.ended, self.begun, side="right")
        self._sums = [
            np.concatenate([[0.0], np.cumsum(of)])
            for of in (load.bytes, np.where(label > 1, 750 * label, 1000), in_flight)
        ]

    def report(self, index: int, now: float) -> tuple[OstReport, Device]:
        ended = int(np.searchsorted(self.ended, now, side="right"))
        begun = int(np.searchsorted(self.begun, now, side="right"))
        size, usecs, in_flight = (int(of[ended]) for of in self._sums)
        busy_s = self.service[ended]
        if ended < begun:
            busy_s += max(0.0, now - max(self.served[ended], self.begun[ended]))
        writes = IoCounters("brw_stats", ended, size, usecs, in_flight, ended)
        report = OstReport("lustre", index, GIB, GIB, GIB, write_samples=begun, writes=writes)
        return report, Device(0, 0, 0, ended, size // 512, 0, int(busy_s * 1e3), 0, begun - ended, 0)


class Site:
    """OSTs on servers that report every interval, each at a time of its own."""

    def __init__(self, disks: list[Disk], per_server: int, interval_s: float, seed: int) -> None:
        self.disks, self.interval_s = disks, interval_s
        self.servers = {i: f"oss{i // per_server}" for i in range(len(disks))}
        names = list(dict.fromkeys(self.servers.values()))
        phases = np.random.default_rng(seed).random(len(names)) * interval_s
        self.phase = dict(zip(names, phases.tolist()))
        self.finder = SlowOstFinder("lustre")
        self.watches = {name: Watch() for name in names}

    def report(self, server: str, now: float) -> set[int]:
        """Let one server report; the OSTs that are sick then."""
        here = {i: self.disks[i].report(i, now) for i, name in self.servers.items() if name == server}
        waiting = self.watches[server].look(
            {str(i): report for i, (report, _) in here.items()}, {str(i): d for i, (_, d) in here.items()}
        )
        reports = []
        for i, (report, _) in here.items():
            waits = waiting.get(str(i), NOTHING)
            reports.append(msgspec.structs.replace(report, waiting_s=waits.seconds, waiting_ios=waits.ios))
        self.finder.update_server(reports, now)
        estimates = self.finder.estimates(None, self.servers)
        return {i for i, estimate in estimates.items() if estimate.relative < SICK}

    def run(self, begin_s: float, end_s: float) -> Iterator[tuple[float, str, set[int]]]:
        """(when, which server reported, what was sick then)."""
        reports = [
            (begin_s + phase + n * self.interval_s, name)
            for name, phase in self.phase.items()
            for n in range(int((end_s - begin_s) / self.interval_s))
        ]
        for now, name in sorted(reports):
            yield now, name, self.report(name, now)


def steady(random: np.random.Generator, begin_s: float, end_s: float, per_s: float, sizes: list[int]) -> Load:
    """Without end, at random moments."""
    count = random.poisson(per_s * (end_s - begin_s))
    return Load(np.sort(random.uniform(begin_s, end_s, count)), random.choice(sizes, count).astype(float))


def burst(at_s: float, size_bytes: int, each_bytes: int = 4 * MIB) -> Load:
    """All at once."""
    count = max(1, size_bytes // each_bytes)
    return Load(np.full(count, at_s), np.full(count, float(each_bytes)))


MIXED = [4 * KIB, 64 * KIB, MIB, 4 * MIB]
