"""How long a run's I/O takes, with and without each cause: the time of its slowest OST or server, and of its calls.

An OST takes the run's bytes at the rate that the application usually gets of one, and those of all jobs together at no
more than the highest rate seen of it; a slow one takes longer by its speed. A server's link carries the bytes of all
its OSTs. Calls, and files to create, take a process their time one after the other:

    seconds = max(over OSTs: max(own / rate, (own + others) / highest) / speed,
                  over servers: (own + others) / link)
              + calls of one process x their time + its files x CREATE_S x (how busy the MDS is)

Without a cause its part is put right: speeds 1, no others, even bytes, as many OSTs as usual, large calls, no files.
What a cause costs is its Shapley value (Shapley 1953): the mean, over all orders in which causes may be put right, of
the time that it takes with it. So what two cost only together is halved between them, no order is preferred, and all
values together are the time above that of a run without any cause.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.parts.why.facts import Kind, Run
from tarazu.parts.why.seen import LARGE_CALL_BYTES, SeenThen, full
from tarazu.then import System
from tarazu.units import MIB

CREATE_S = 1e-3
"""To create and close a file, for its process; an assumption, twice the MDS's own time (`sim.model.presets`)."""
OBJECT_BYTES = 256 * MIB
"""A shared file is worth an OST for so much of it (the house's rule for stripe counts)."""


class Rates(msgspec.Struct, frozen=True):
    """Bytes a second of one OST."""

    own: float
    """That the application gets of one that is well and its own."""
    highest: float
    """That one gives to all jobs together."""


class Usual(msgspec.Struct, frozen=True):
    """What is usual for the application, where earlier runs say so."""

    osts: int = 0
    """That it uses; 0: not known."""
    used: frozenset[int] = frozenset()
    """Any of them."""
    metadata_per_s: float | None = None


def more_osts(run: Run, system: System, usual: Usual) -> tuple[int, int]:
    """How many OSTs more the run would be on: (because those are full now, for another reason)."""
    count = len(run.ost_bytes)
    if not count:
        return 0, 0
    best = usual.osts
    if not best and run.largest_shared_bytes >= run.bytes / 2 and run.usable_osts:
        best = min(run.usable_osts, math.ceil(run.largest_shared_bytes / OBJECT_BYTES))
    lacking = max(0, best - count)
    away = [
        index
        for index, ost in system.osts.items()
        if index not in run.ost_bytes and full(ost) and (index in usual.used or not usual.used)
    ]
    gone = min(lacking, len(away))
    return gone, lacking - gone


def lowered(loads: NDArray[np.float64], amount: float) -> NDArray[np.float64]:
    """The loads without so much, taken from the largest: as if it had gone elsewhere."""
    falling = np.sort(loads)[::-1]
    counts = np.arange(1, len(loads) + 1)
    levels = (np.cumsum(falling) - amount) / counts
    below = np.append(falling[1:], -np.inf)
    level: float = levels[np.argmax(levels >= below)]
    return np.minimum(loads, max(level, 0.0))


class Model:
    """Of one run. `seconds` of a set of causes; `costs` of each."""

    def __init__(self, run: Run, system: System | None, rates: Rates, usual: Usual) -> None:
        self.run, self.rates, self.usual = run, rates, usual
        self.system = system or System()
        self.osts = sorted(run.ost_bytes)
        self.seen = SeenThen(run, self.system, self.osts)
        known = self.seen.osts
        self.own = np.array([run.ost_bytes[index] for index in self.osts], float)
        self.others = np.array(self.seen.others, float)
        places = range(len(self.osts))
        self.highest = np.array([self.seen.highest(n, rates.highest, rates.own) for n in places], float)
        speeds = np.array(self.seen.speeds, float)
        crowded = np.array([full(ost) for ost in known], bool)
        self.slow = np.where(crowded, 1.0, speeds)
        self.full = np.where(crowded, speeds, 1.0)
        self.gone, self.narrow = more_osts(run, self.system, usual)
        self.calls = self.seen.calls
        self._links = [
            (np.array([ost.server == name for ost in known], bool), server)
            for name, server in self.system.servers.items()
            if server.link_bytes_per_s >= 1 and server.bytes is not None
        ]

    @property
    def narrow_kind(self) -> Kind:
        """What the lack of OSTs that are not full is called."""
        shared = self.run.largest_shared_bytes >= self.run.bytes / 2
        return Kind.FEW_STRIPES if shared else Kind.IMBALANCE

    def present(self) -> list[Kind]:
        """Causes of which there is any sign."""
        run = self.run
        even = len(self.own) < 2 or self.own.max() <= 1.0001 * self.own.mean()
        signs = {
            Kind.SLOW_OST: bool((self.slow < 1).any()),
            Kind.FULL_OST: bool((self.full < 1).any()) or self.gone > 0,
            Kind.OTHER_JOBS: bool((self.others > 0).any()) or bool(self._links),
            Kind.IMBALANCE: not even or (self.narrow > 0 and self.narrow_kind is Kind.IMBALANCE),
            Kind.FEW_STRIPES: self.narrow > 0 and self.narrow_kind is Kind.FEW_STRIPES,
            Kind.SMALL_CALLS: 0 < run.bytes < self.calls * LARGE_CALL_BYTES,
            Kind.METADATA: run.files > 0,
            Kind.MDS_LOAD: self._mds() > 1,
        }
        return [kind for kind, there in signs.items() if there]

    def _mds(self) -> float:
        """How much busier the MDS is than usual."""
        now, usually = self.system.metadata_per_s, self.usual.metadata_per_s
        return max(1.0, now / usually) if now and usually else 1.0

    def seconds(self, there: Collection[Kind]) -> float:
        """With these causes alone."""
        run = self.run
        data_s = run.bytes / self.rates.own
        if len(self.own):
            own, more = self.own, 0 if Kind.FULL_OST in there else self.gone
            if more:
                own = lowered(own, own.sum() / (len(own) + more) * more)
            if Kind.IMBALANCE not in there:
                own = np.full(len(own), own.mean())
            if self.narrow_kind not in there:
                own = own * (len(own) / (len(own) + self.narrow))
            others = self.others if Kind.OTHER_JOBS in there else 0.0
            speed = (self.slow if Kind.SLOW_OST in there else 1.0) * (
                self.full if Kind.FULL_OST in there else 1.0
            )
            each = np.maximum(own / self.rates.own, (own + others) / self.highest) / speed
            data_s = float(each.max())
            if Kind.OTHER_JOBS in there:
                for mine, server in self._links:
                    alone = float(own[mine].sum())
                    if alone:
                        whole = alone + self.seen.during * max(0.0, (server.bytes or 0.0) - alone)
                        data_s = max(data_s, whole / server.link_bytes_per_s)
        ranks = max(run.ranks, 1)
        calls_s = 0.0
        if Kind.SMALL_CALLS in there:
            calls_s = max(0.0, self.calls - run.bytes / LARGE_CALL_BYTES) / ranks * self.seen.call_s
        create_s = run.files / ranks * CREATE_S * (self._mds() if Kind.MDS_LOAD in there else 1.0)
        return data_s + calls_s + (create_s if Kind.METADATA in there or Kind.MDS_LOAD in there else 0.0)

    def costs(self) -> dict[Kind, float]:
        """Seconds of each cause: Shapley values over those that are present."""
        kinds = self.present()
        n = len(kinds)
        times = {frozenset(of): self.seconds(of) for size in range(n + 1) for of in combinations(kinds, size)}
        costs = {}
        for kind in kinds:
            total = 0.0
            others = [k for k in kinds if k is not kind]
            for size in range(n):
                weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
                for of in combinations(others, size):
                    total += weight * (times[frozenset((*of, kind))] - times[frozenset(of)])
            costs[kind] = total
        return costs


def own_rate(run: Run, highest: float | None) -> float | None:
    """Bytes a second of one OST with which the model, with all that is known of an earlier run, takes its time.

    None where its layout or time is not known.
    """
    if run.io_s <= 0 or run.bytes <= 0:
        return None
    low, high = 1.0, 1e15
    for _ in range(80):
        rate = math.sqrt(low * high)
        model = Model(run, run.system, Rates(rate, max(rate, highest or rate)), Usual())
        if model.seconds(model.present()) > run.io_s:
            low = rate
        else:
            high = rate
    return high if high < 1e14 else None


def highest_rate(systems: Collection[System | None]) -> float | None:
    """Of OSTs of one kind: the middle of the highest seen."""
    peaks: Mapping[int, float] = {
        index: ost.peak_bytes_per_s
        for system in systems
        if system
        for index, ost in system.osts.items()
        if ost.peak_bytes_per_s and ost.peak_bytes_per_s >= 1
    }
    return float(np.median(list(peaks.values()))) if peaks else None
